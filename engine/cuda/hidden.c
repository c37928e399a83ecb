// Hidden states from one instance to another, by copies within the device. Instances that share a stream do
// all of it in the order in which the host says it, so nothing is waited for.
#include "engine/cuda/instance.h"

static float *take(void *self, void *other, size_t bytes) {
    const Cuda *from = self, *to = other;
    void *rows = NULL;
    if (from->stream != to->stream || gpu_use(from->ordinal) || gpu_take(&rows, bytes)) return NULL;
    return rows;
}

static void drop(void *self, float *rows) {
    const Cuda *c = self;
    gpu_use(c->ordinal);
    gpu_give(rows);
}

static float *row_of(const Cuda *c, int node) {
    return c->hidden + (size_t)node * (size_t)c->model->shape.width;
}

static bool copy(Cuda *c, float *to, const float *from, Error *e) {
    size_t bytes = (size_t)c->model->shape.width * sizeof *to;
    return cuda_ok(c, gpu_copy(to, from, bytes, c->stream), "cannot copy within it", e);
}

// The other instance's work comes next, and is counted as its own: so this one's ends here.
static bool keep(void *self, int node, HiddenKind kind, float *row, Error *e) {
    Cuda *c = self;
    if (!cuda_begin(c, PHASE_HEAD, e)) return false;
    bool ok = kind == HIDDEN_NORMED ? cuda_norm_to(c, &node, 1, row, e) : copy(c, row, row_of(c, node), e);
    return ok && cuda_begin(c, PHASE_IDLE, e);
}

static bool give(void *self, int node, const float *row, Error *e) {
    Cuda *c = self;
    return cuda_begin(c, PHASE_RUN, e) && copy(c, row_of(c, node), row, e);
}

const HiddenMemory cuda_hidden = {take, drop, keep, give};
