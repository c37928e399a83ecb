// An experiment's YAML: an accepted one expands to distinct points, each of which its method's parser reads
// back, or to one line. The same bytes as a value of --set and as --model.
#include "engine/base/text.h"
#include "harness/config/sweep.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_point(const Experiment *x, const Point *p) {
    _Alignas(64) static unsigned char values[1 << 14]; // of any method's parameter struct
    const MethodInfo *info = x->methods[p->method].info;
    size_t n = strlen(info->name);
    demand(info->param_size <= sizeof values && strncmp(p->decoder, info->name, n) == 0);
    demand(p->decoder[n] == 0 ||
           args_parse(info->params, info->param_count, values, p->decoder + n + 1, NULL));
    demand(p->model >= 0 && p->model < x->model_count && strlen(p->hash) == SHA256_TEXT - 1);
    demand(p->dataset >= 0 && p->dataset < x->dataset_count);
}

static void check(const char *bytes, size_t n, const ExperimentChanges *changes) {
    Experiment x;
    Sweep s = {0};
    Error e = {0};
    bool ok = experiment_parse(&x, bytes, n, "fuzz", changes, &e);
    if (ok && sweep_expand(&x, &s, &e)) {
        demand(s.count > 0 && s.count <= SWEEP_MAX);
        for (int i = 0; i < s.count; i++) check_point(&x, &s.points[i]);
        for (int i = 1; i < s.count; i++) demand(strcmp(s.points[i - 1].hash, s.points[i].hash) != 0);
    } else demand(e.kind == ERROR_INPUT && (strstr(e.text, "fuzz") || strstr(e.text, "--")) && s.count == 0);
    sweep_release(&s);
    experiment_release(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char base[] = "name: n\nmodels: [m]\ndatasets: [d]\nmethods: [{name: lookahead}]\n";
    Text text = {0}, set = {0};
    text_add(&text, (const char *)data, size);
    text_puts(&set, "methods.lookahead.matrix=");
    text_puts(&set, text_get(&text));
    check(text_get(&text), text.length, NULL);
    check(text_get(&text), text.length, &(ExperimentChanges){.scale = "smoke"});
    Words sets = {{text_get(&set)}, 1};
    check(base, strlen(base), &(ExperimentChanges){.sets = &sets});
    check(base, strlen(base), &(ExperimentChanges){.model = text_get(&text)});
    sets = (Words){{text_get(&text)}, 1};
    check(base, strlen(base), &(ExperimentChanges){.sets = &sets});
    text_release(&text);
    text_release(&set);
    return 0;
}
