#include "harness/predict/step_model.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "engine/model/shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20, MOST_PATH = 4096 };

StepModel step_model(const Shape *s, double weight_bytes) {
    return (StepModel){.layers = s->layers,
                       .width = s->width,
                       .q_width = shape_q_width(s),
                       .kv_width = shape_kv_width(s),
                       .mlp_width = s->mlp_width,
                       .vocab = s->vocab,
                       .window = s->window,
                       .weight_bytes = weight_bytes,
                       .cache_bytes = 2};
}

bool step_model_open(const char *name, StepModel *out, Error *e) {
    Model m = {0};
    char *data = NULL, *path = shape_file(name, e);
    size_t size;
    bool ok = path && file_read(path, MOST_BYTES, &data, &size, e) && config_parse(&m, data, size, path, e);
    if (ok) *out = step_model(&m.shape, 2);
    mem_free(data);
    mem_free(path);
    return ok;
}

// --- machines --------------------------------------------------------------------------------------------

// The i-th place of the file; false if it does not apply.
static bool place(int i, const char *name, char out[MOST_PATH]) {
    const char *configs = getenv("OUTPACE_CONFIGS");
    char own[MOST_PATH / 2];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = 0;
    char *slash = strrchr(own, '/');
    if (slash) *slash = 0;
    int n = i == 0   ? snprintf(out, MOST_PATH, "%s/hardware/%s.json", configs ? configs : "", name)
            : i == 1 ? snprintf(out, MOST_PATH, "%s/configs/hardware/%s.json", own, name)
            : i == 2 ? snprintf(out, MOST_PATH, "%s/../share/outpace/configs/hardware/%s.json", own, name)
                     : snprintf(out, MOST_PATH, "configs/hardware/%s.json", name);
    return n > 0 && n < MOST_PATH && (i > 0 || configs) && file_exists(out);
}

bool machine_open(const char *name, Hardware *out, Error *e) {
    char path[MOST_PATH];
    if (strchr(name, '/') || strstr(name, ".json")) return hardware_open(name, out, e);
    for (int i = 0; i < 4; i++)
        if (place(i, name, path)) return hardware_open(path, out, e);
    return error_input(
        e,
        "there is no machine '%s' in configs/hardware; give one of its files without .json, or "
        "the path of a file of your own",
        name);
}
