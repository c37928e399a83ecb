// Hidden states from one card or instance to another, by copies between devices or within one. Instances that
// share a stream do all of it in the order in which the host says it, and where a copy goes from card to
// card, either stream waits for the other: so the host waits for nothing.
#include "engine/cuda/cards.h"

bool cuda_pass(Cuda *from, Cuda *to, float *there, const float *here, size_t bytes, Error *e) {
    return cuda_begin(from, PHASE_IDLE, e) &&
           cuda_ok(from, gpu_event_record(from->passed, from->stream), "cannot mark its work", e) &&
           cuda_ok(to, gpu_stream_after(to->stream, from->passed), "cannot wait for another card", e) &&
           cuda_begin(to, PHASE_RUN, e) &&
           cuda_ok(to, gpu_copy_peer(there, to->ordinal, here, from->ordinal, bytes, to->stream),
                   "cannot copy from another card", e) &&
           cuda_ok(to, gpu_event_record(to->passed, to->stream), "cannot mark its work", e) &&
           cuda_ok(from, gpu_stream_after(from->stream, to->passed), "cannot wait for another card", e);
}

// The card of `self` that has the same stream as the other's first, which reads the states.
static float *take(void *self, void *other, size_t bytes) {
    Cuda *first = self;
    const Cuda *to = other;
    void *rows = NULL;
    Cuda *lender = first;
    while (lender && lender->stream != to->stream) lender = lender->next;
    if (!lender || gpu_use(lender->ordinal) || gpu_take(&rows, bytes)) return NULL;
    first->lender = lender;
    return rows;
}

static void drop(void *self, float *rows) {
    const Cuda *c = self;
    gpu_use(c->lender->ordinal);
    gpu_give(rows);
}

static float *row_of(const Cuda *c, int node) {
    return c->hidden + (size_t)node * (size_t)c->model->shape.width;
}

static bool copy(Cuda *c, float *to, const float *from, Error *e) {
    size_t bytes = (size_t)c->model->shape.width * sizeof *to;
    return cuda_ok(c, gpu_copy(to, from, bytes, c->stream), "cannot copy within it", e);
}

// A normed state is the last card's; where another has the row, it goes by way of the logits' room.
static bool keep_normed(Cuda *c, Cuda *lender, int node, float *row, Error *e) {
    size_t bytes = (size_t)c->model->shape.width * sizeof *row;
    if (!cuda_begin(c, PHASE_HEAD, e)) return false;
    if (c == lender) return cuda_norm_to(c, &node, 1, row, e);
    return cuda_norm_to(c, &node, 1, c->logits, e) && cuda_pass(c, lender, row, c->logits, bytes, e);
}

static bool keep_raw(Cuda *c, Cuda *lender, int node, float *row, Error *e) {
    size_t bytes = (size_t)c->model->shape.width * sizeof *row;
    if (c != lender) return cuda_pass(c, lender, row, row_of(c, node), bytes, e);
    return cuda_begin(c, PHASE_HEAD, e) && copy(c, row, row_of(c, node), e);
}

// The other instance's work comes next, and is counted as its own: so this one's ends here.
static bool keep(void *self, int node, HiddenKind kind, float *row, Error *e) {
    Cuda *c = self, *lender = c->lender;
    bool ok = kind == HIDDEN_NORMED ? keep_normed(cuda_last(c), lender, node, row, e)
                                    : keep_raw(c->holder[node], lender, node, row, e);
    return ok && cuda_begin(lender, PHASE_IDLE, e);
}

static bool give(void *self, int node, const float *row, Error *e) {
    Cuda *c = self;
    c->holder[node] = c;
    return cuda_begin(c, PHASE_RUN, e) && copy(c, row_of(c, node), row, e);
}

const HiddenMemory cuda_hidden = {take, drop, keep, give};
