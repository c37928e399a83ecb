// The insides of an open CPU instance, shared by cpu.c (its life), forward.c (layers) and head.c (what comes
// out).
//
// Buffers are allocated at open for the largest step; pages that a run never needs are never touched.
//
//      cache   keys, values: (layers, slots, kv_width)        written by commit only
//      step    keys, values: (layers, max_nodes, kv_width)    the open step's nodes
//      hidden  (max_nodes, width)                             the residual stream of each node
//      panel   scratch for PANEL rows on their way through a layer
#pragma once
#include "engine/cpu/ops.h"
#include "engine/cpu/pool.h"

enum {
    PANEL = 256, // rows that go through a layer together: beyond this the weights' stream no longer counts
    HEAD_SLICE = 64, // outputs of the head that a thread holds at a time
    HEAD_TOP_MAX = 64,
};

// Keys and values of one layer's rows, or of all layers behind each other.
typedef struct KeyValues {
    void *k, *v;
    size_t layer_bytes; // of k, and of v
} KeyValues;

typedef struct Panel {
    float *normed; // (PANEL, width)
    float *q;      // (PANEL, q_width)
    float *k, *v;  // (PANEL, kv_width), before they are stored
    float *mixed;  // (PANEL, q_width): attention's output
    float *delta;  // (PANEL, width): what o or down adds
    float *gate;   // (PANEL, mlp_width)
    float *up;     // (PANEL, mlp_width)
    void *packed;  // activations as the products read them
} Panel;

// What a thread has for itself.
typedef struct ThreadScratch {
    float *scores;    // (group, visible positions)
    KeySpan *spans;   // (max_nodes + 2)
    int *path;        // (max_nodes)
    float *logits;    // (PANEL, HEAD_SLICE)
    int *top_id;      // (PANEL, HEAD_TOP_MAX)
    float *top_logit; // (PANEL, HEAD_TOP_MAX)
} ThreadScratch;

typedef struct Cpu {
    const Model *model;
    const CpuOps *ops;
    Pool *pool;
    Compute compute;
    Dtype kv_dtype; // of cache and step area
    int context, max_nodes, slots;
    KeyValues cache, step;
    float *hidden;
    float *cosine, *sine; // (context, pairs)
    Panel panel;
    ThreadScratch *threads; // (pool_threads)
    size_t cache_bytes, step_bytes;
    double busy_seconds;
} Cpu;

static inline size_t kv_row_bytes(const Cpu *c) {
    return (size_t)shape_kv_width(&c->model->shape) * dtype_size(c->kv_dtype);
}

// Layers [a, b) for nodes [first, last); forward.c.
void cpu_forward(Cpu *c, const StepRun *run);

// The head for up to PANEL nodes at a time; head.c.
void cpu_head(Cpu *c, const int *nodes, int count, unsigned want, HeadOut *out);

// Rows of the final normed state, (count, width).
void cpu_normed(Cpu *c, const int *nodes, int count, float *rows);
