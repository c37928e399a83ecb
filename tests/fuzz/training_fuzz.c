// A training run's YAML, a model's and an adapter's: accepted values are within the limits of their keys.
#include "harness/train/train.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_model(const TrainFile *f) {
    const Shape *s = &f->config.shape;
    demand(f->out && f->tokenizer && f->files.count > 0);
    demand(s->layers >= 1 && s->width >= 1 && s->heads >= 1 && s->kv_heads >= 1 && s->context >= 2);
    demand(f->config.pass >= 1 && s->rope.theta >= 1);
}

static void check(const char *bytes, size_t n, TrainKind kind) {
    TrainFile f;
    Error e = {0};
    if (!train_file_parse(&f, bytes, n, "fuzz", kind, &e)) {
        demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz") && !f.tree.root);
        return;
    }
    const OptimizerOptions *o = &f.config.optimizer;
    demand(o->steps >= 0 && o->rate >= 0 && o->beta1 < 1 && o->beta2 < 1 && isfinite(o->clip));
    demand(f.config.batch >= 1 && f.checkpoint_every >= 1 && f.held_out_every >= 1);
    if (kind == TRAIN_MODEL) check_model(&f);
    train_file_release(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check((const char *)data, size, TRAIN_MODEL);
    check((const char *)data, size, TRAIN_ADAPTER);
    return 0;
}
