#include "tests/support/soft_null.h"

#include "engine/null/null.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

enum { SOFT_DRAWN_VOCAB = 64 };

typedef struct {
    void *inner;
    Backend backend; // its abilities: SOFT, and perhaps draws
    Softness softness;
    int vocab, real_vocab, fetched;
    int position[TREE_MAX_NODES]; // of the step's nodes
} Soft;

static bool soft_run(void *self, const StepRun *run, Error *e) {
    Soft *s = self;
    for (int i = run->first; i < run->last; i++) s->position[i] = tree_position(run->tree, i);
    return null_backend.run(s->inner, run, e);
}

// A node's prediction is the token one past its position.
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

// --- draws

static void draw_row(const HeadDraws *d, int i, const float *p) {
    float left[SOFT_DRAWN_VOCAB];
    memcpy(left, p, (size_t)d->vocab * sizeof *left);
    for (int k = d->first[i]; k < d->first[i + 1]; k++) {
        int id = d->token[k];
        for (int j = d->first[i]; j < k; j++) assert_int_not_equal(d->token[j], id); // as backend.h has it
        d->chance[k] = id < d->vocab ? (double)p[id] : 0;
        if (id < d->vocab) left[id] = 0;
    }
    d->drawn[i] = sampler_draw(left, d->vocab, d->u[i]);
    if (!(left[d->drawn[i]] > 0)) d->drawn[i] = -1;
}

static bool distribution(void *self, int node, const Sampling *sampling, int vocab, float *p, Error *e) {
    Soft *s = self;
    float logits[SOFT_DRAWN_VOCAB];
    Sampler sampler;
    HeadOut out = {.logits = logits};
    assert_true(s->vocab <= SOFT_DRAWN_VOCAB);
    sampler_init(&sampler, sampling, vocab);
    bool ok = soft_head(self, &node, 1, HEAD_LOGITS, &out, e);
    sampler_distribution(&sampler, logits, p);
    sampler_release(&sampler);
    return ok;
}

static bool soft_distribution(void *self, int node, const Sampling *sampling, int vocab, float *p, Error *e) {
    ((Soft *)self)->fetched++;
    return distribution(self, node, sampling, vocab, p, e);
}

static bool sure_of(void *self, int node, double *sure, Error *e) {
    const Sampling plain = {.temperature = 1, .top_p = 1};
    float p[SOFT_DRAWN_VOCAB];
    int vocab = ((Soft *)self)->vocab;
    if (!distribution(self, node, &plain, vocab, p, e)) return false;
    *sure = 0;
    for (int i = 0; i < vocab; i++)
        if ((double)p[i] > *sure) *sure = (double)p[i];
    return true;
}

static bool drawing_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    if (!soft_head(self, nodes, count, want & ~(unsigned)HEAD_DRAW, out, e)) return false;
    for (int i = 0; want & HEAD_DRAW && i < count; i++) {
        float p[SOFT_DRAWN_VOCAB];
        if (!distribution(self, nodes[i], &out->draws->sampling, out->draws->vocab, p, e)) return false;
        draw_row(out->draws, i, p);
        if (out->draws->confidence && !sure_of(self, nodes[i], &out->draws->confidence[i], e)) return false;
    }
    return true;
}

static bool soft_get(void *self, const int *nodes, int count, HiddenKind kind, float *rows, Error *e) {
    return null_backend.get_hidden(((Soft *)self)->inner, nodes, count, kind, rows, e);
}

static bool soft_set(void *self, int first, int count, const float *rows, Error *e) {
    return null_backend.set_hidden(((Soft *)self)->inner, first, count, rows, e);
}

static bool soft_capture(void *self, const Captures *captures, Error *e) {
    return null_backend.capture(((Soft *)self)->inner, captures, e);
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
                             .capture = soft_capture,
                             .commit = soft_commit,
                             .reset = soft_reset,
                             .report = soft_report,
                             .close = soft_close};

void soft_session_draws(Session *s, bool draws) {
    Soft *soft = s->self;
    soft->backend.head = draws ? drawing_head : soft_head;
    soft->backend.distribution = draws ? soft_distribution : NULL;
}

// The null session's own instance, wrapped.
void soft_session_open(Session *s, const NullSetup *setup, const Softness *softness) {
    Soft *soft = test_calloc(1, sizeof *soft);
    null_session_open(s, setup);
    soft->inner = s->self;
    soft->softness = *softness;
    soft->vocab = setup->vocab;
    soft->real_vocab = setup->vocab - setup->masked;
    soft->backend = SOFT;
    s->self = soft;
    s->backend = &soft->backend;
}

int soft_session_fetched(const Session *s) { return ((const Soft *)s->self)->fetched; }
