// The insides of a pass over a batch, shared by forward.c (layers), backward.c (the same from their end) and
// head.c (the head in both directions, and the loss).
#pragma once
#include "engine/train/matrices.h"

#include <string.h>

// A part of the work of one layer, or of the head, for all threads.
typedef struct Pass {
    Network *n;
    const Batch *batch;
    int documents; // in n->documents
    int layer;
    int first, rows; // of the head's chunk
    float scale;     // of the loss
    bool agreement;  // is wanted too
} Pass;

static inline int pass_qkv_width(const Shape *s) { return shape_q_width(s) + 2 * shape_kv_width(s); }

// The product of a thread with a matrix of the pass's layer, which is packed.
static inline Linear pass_linear(const Pass *p, int thread, LayerMatrix m) {
    Linear l = matrix_linear(p->n, p->layer, m);
    l.scratch = p->n->scratch[thread];
    return l;
}

// Rows of a vocabulary that are masked have no part in it.
static inline Linear pass_head_linear(const Pass *p, int thread) {
    const Network *n = p->n;
    return (Linear){.kernels = n->kernels,
                    .scratch = n->scratch[thread],
                    .inputs = n->shape.width,
                    .outputs = n->shape.real_vocab,
                    .y_stride = n->logit_stride};
}

static inline float *pass_row(float *x, int row, int width) { return x + (size_t)row * (size_t)width; }

// Rows [from, to) of one stream into another.
static inline void pass_copy(const Network *n, float *to_rows, const float *from_rows, int from, int to) {
    size_t width = (size_t)n->shape.width;
    memcpy(to_rows + (size_t)from * width, from_rows + (size_t)from * width,
           (size_t)(to - from) * width * sizeof(float));
}

// Rows of a thread: cut so that the sums of a NORM_BLOCK stay in one hand.
static inline void pass_share(const Pass *p, int thread, int threads, int *from, int *to) {
    pool_share(p->batch->rows, NORM_BLOCK, thread, threads, from, to);
}

// What is done to rows [from, to) of a layer.
typedef void RowsWork(const Pass *p, int thread, int from, int to);

// A thread's rows in chunks, so that what one product gives is still in the cache when the next one reads it.
static inline void pass_chunks(const Pass *p, int thread, int threads, RowsWork *work) {
    int from, to;
    pass_share(p, thread, threads, &from, &to);
    for (; from < to; from += CHUNK_ROWS)
        work(p, thread, from, to - from < CHUNK_ROWS ? to : from + CHUNK_ROWS);
}

// The stream above a layer: the next layer's input.
static inline float *pass_above(const Network *n, int layer) {
    return layer + 1 < n->shape.layers ? n->layers[layer + 1].in : n->out;
}

// Every document and key head that are this thread's; pass.c.
void pass_attention(const Pass *p, int thread, int threads, bool backward);

// From tokens or states to out_normed; forward.c.
void pass_forward(Pass *p);

// From the head's gradient in slopes.normed down to the first layer's input; backward.c.
void pass_backward(Pass *p);
