// The insides of a pass over a batch, shared by forward.c and backward.c.
#pragma once
#include "engine/train/linear.h"
#include "engine/train/network.h"

// A part of the work of one layer, or of the head, for all threads.
typedef struct Pass {
    Network *n;
    const Batch *batch;
    int documents; // in n->documents
    int layer;
    int first, rows; // of the head's chunk
    float scale;     // of the loss
} Pass;

// A product of a thread in this pass; y's rows are contiguous.
static inline Linear pass_linear(const Pass *p, int thread, int inputs, int outputs) {
    return (Linear){.kernels = p->n->kernels,
                    .scratch = p->n->scratch[thread],
                    .inputs = inputs,
                    .outputs = outputs,
                    .y_stride = (size_t)outputs};
}

static inline int pass_qkv_width(const Shape *s) { return shape_q_width(s) + 2 * shape_kv_width(s); }

static inline float *pass_row(float *x, int row, int width) { return x + (size_t)row * (size_t)width; }

// Rows of a thread: cut so that the sums of a NORM_BLOCK stay in one hand.
static inline void pass_share(const Pass *p, int thread, int threads, int *from, int *to) {
    pool_share(p->batch->rows, NORM_BLOCK, thread, threads, from, to);
}

// The stream above a layer: the next layer's input.
static inline float *pass_above(const Network *n, int layer) {
    return layer + 1 < n->shape.layers ? n->layers[layer + 1].in : n->out;
}

// Calls work for every document and key head that are this thread's.
void pass_attention(const Pass *p, int thread, int threads, bool backward);

// From tokens to out_normed.
void pass_forward(Pass *p);
// Logits of rows [p->first, + p->rows) become probabilities, and n->losses is filled; forward.c.
void pass_head(Pass *p);
// From the head's gradient in slopes.normed down to the embedding; backward.c.
void pass_backward(Pass *p);
// Probabilities of the same rows become gradients; slopes.normed and the embedding's gradient get their part.
void pass_head_backward(Pass *p);
