#include "tests/soft_null.h"

#include "engine/null/null.h"
#include "tests/check.h"

typedef struct {
    void *inner;
    Softness softness;
    int vocab, real_vocab;
    int position[TREE_MAX_NODES]; // of the step's nodes
} Soft;

static bool soft_run(void *self, const StepRun *run, Error *e) {
    Soft *s = self;
    for (int i = run->first; i < run->last; i++) s->position[i] = tree_position(run->tree, i);
    return null_backend.run(s->inner, run, e);
}

// What a node says is the token one past its position.
static bool soft_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    const float sure = 1000;
    Soft *s = self;
    if (!null_backend.head(s->inner, nodes, count, want, out, e)) return false;
    for (int i = 0; want & HEAD_LOGITS && i < count; i++) {
        bool certain = s->position[nodes[i]] + 1 < s->softness.certain;
        float *row = out->logits + (size_t)i * (size_t)s->vocab;
        for (int v = 0; v < s->real_vocab; v++) row[v] *= certain ? sure : (float)s->softness.scale;
    }
    return true;
}

static bool soft_get(void *self, const int *nodes, int count, HiddenKind kind, float *rows, Error *e) {
    return null_backend.get_hidden(((Soft *)self)->inner, nodes, count, kind, rows, e);
}

static bool soft_set(void *self, int first, int count, const float *rows, Error *e) {
    return null_backend.set_hidden(((Soft *)self)->inner, first, count, rows, e);
}

static bool soft_commit(void *self, const int *nodes, const int *slots, int count, Error *e) {
    return null_backend.commit(((Soft *)self)->inner, nodes, slots, count, e);
}

static void soft_reset(void *self) { null_backend.reset(((Soft *)self)->inner); }

static void soft_report(const void *self, BackendReport *out) {
    null_backend.report(((const Soft *)self)->inner, out);
}

static void soft_close(void *self) {
    null_backend.close(((Soft *)self)->inner);
    test_free(self);
}

static const Backend SOFT = {.name = "soft",
                             .run = soft_run,
                             .head = soft_head,
                             .get_hidden = soft_get,
                             .set_hidden = soft_set,
                             .commit = soft_commit,
                             .reset = soft_reset,
                             .report = soft_report,
                             .close = soft_close};

// The null session's own instance, wrapped.
void soft_session_open(Session *s, const NullSetup *setup, const Softness *softness) {
    Soft *soft = test_calloc(1, sizeof *soft);
    null_session_open(s, setup);
    soft->inner = s->self;
    soft->softness = *softness;
    soft->vocab = setup->vocab;
    soft->real_vocab = setup->vocab - setup->masked;
    s->self = soft;
    s->backend = &SOFT;
}
