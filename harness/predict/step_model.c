#include "harness/predict/step_model.h"

#include "engine/base/shipped.h"
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "engine/model/shapes.h"

enum { MOST_BYTES = 1 << 20 };

StepModel step_model(const Shape *s, double weight_bytes) {
    return (StepModel){.layers = s->layers,
                       .width = s->width,
                       .q_width = shape_q_width(s),
                       .kv_width = shape_kv_width(s),
                       .mlp_width = s->mlp_width,
                       .vocab = s->vocab,
                       .window = s->window,
                       .weight_bytes = weight_bytes,
                       .cache_bytes = 2,
                       .score_bytes = (double)SCORE_BYTES * s->heads};
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

bool machine_open(const char *name, Hardware *out, Error *e) {
    char *path = shipped_named("hardware", "machine", name, e);
    bool ok = path && hardware_open(path, out, e);
    mem_free(path);
    return ok;
}
