// A pass over a batch: the internal page of forward.c (layers), backward.c (the same layers from their end),
// head.c (the head in both directions, and the loss), eagle.c (the inputs of EAGLE's heads, their features
// and several forwards), block.c (the context and the heads of drafts of blocks), attention.c and linear.c.
//
// Work goes to all threads of the pool, phase by phase. Between two phases a thread writes only rows, outputs
// or attention tasks of its own, so no result depends on the order of threads or on their number.
#pragma once
#include "engine/train/network.h"

#include <string.h>

typedef struct Pass Pass;

// Works on rows [from, to) of a layer.
typedef void RowsWork(const Pass *p, int thread, int from, int to);

struct Pass {
    Network *n;
    const Batch *batch;
    int documents;   // in n->documents
    int layer;       // that the phase works on
    int forward;     // likewise; 0, but in an EAGLE head
    int first, rows; // of the chunk that the head works on
    float scale;     // of the loss
    bool agreement;  // whether to fill n->agreeing
    bool backward;   // the layers' direction
    bool frozen;     // pass_pack_heads: those that are
    bool carried;    // backward: slopes.stream has a later forward's slopes of this one's output
    RowsWork *work;  // of pass_rows
};

void pass_forward(Pass *p);  // from tokens or states to n->out_normed; forward.c
void pass_backward(Pass *p); // from the head's gradient in normed_slope to the layers' input; backward.c

static inline LayerTrace *pass_trace(const Pass *p) {
    return &p->n->layers[p->forward * p->n->shape.layers + p->layer];
}
static inline Forward *pass_here(const Pass *p) { return &p->n->forwards[p->forward]; }

// --- rows ------------------------------------------------------------------------------------------------

static inline int pass_qkv_width(const Shape *s) { return shape_q_width(s) + 2 * shape_kv_width(s); }

static inline int pass_heads_width(const Shape *s) { return (s->heads + s->kv_heads) * (s->head_dim + 1); }

static inline float *pass_row(float *x, int row, int width) { return x + (size_t)row * (size_t)width; }

// Copies rows [from, to) of one stream to another.
static inline void pass_copy(const Network *n, float *to_rows, const float *from_rows, int from, int to) {
    size_t width = (size_t)n->shape.width;
    memcpy(to_rows + (size_t)from * width, from_rows + (size_t)from * width,
           (size_t)(to - from) * width * sizeof(float));
}

// to += by * from
static inline void pass_add_times(float by, const float *from, size_t count, float *to) {
    for (size_t i = 0; i < count; i++) to[i] += by * from[i];
}

// All rows, in chunks, so that one product's output is still cached when the next one reads it. A thread's
// rows begin at a multiple of NORM_BLOCK, so that one thread sums a whole block; forward.c.
void pass_rows(Pass *p, RowsWork *work);

// Heads of q and k in rows of qkv, from head `first` on: turns them by the rows' positions, or their
// gradients back; norms them, keeping t->heads, or takes gradients through the norms; forward.c, backward.c.
void pass_turn(const Pass *p, float *qkv, int first, int from, int to);
void pass_norm_heads(const Pass *p, LayerTrace *t, int first, int from, int to);
void pass_heads_backward(const Pass *p, const LayerTrace *t, float *slopes, int first, int from, int to);

void pass_norm(const Network *n, const float *x, size_t weight, float *y, float *inverse, int from, int to);

// --- attention (attention.c) -----------------------------------------------------------------------------

// Causal attention within one document, of one key head and the query heads that share it. No task writes
// what another task reads, so packed documents can't see each other. Rows of a block see keys and values up
// to the block's beginning, and the block's own.
typedef struct AttentionTask {
    int rows;            // of the document
    int group, head_dim; // the query heads of this key head, and their size
    size_t stride;       // floats from one row to the next in q, k, v and their gradients
    size_t mixed_stride; // likewise in mixed and dmixed
    const float *q;      // (rows, group, head_dim)
    const float *k, *v;  // (rows, head_dim)
    float *mixed;        // (rows, group, head_dim); forward writes it
    const float *dmixed; // backward reads it
    float *dq, *dk, *dv; // backward writes dq, and adds to dk and dv
    const int *begin;    // (rows): where the row's block begins; NULL: there are no blocks
    int first;           // the document's first row, which `begin` counts with
    // Further keys and values of a row: for itself alone, one for each of `own` (rows, head_dim), or of its
    // block, at most `own` rows of own_k[0] and own_v[0].
    int own;
    const float *own_k[FORWARDS_MAX], *own_v[FORWARDS_MAX];
    float *own_dk[FORWARDS_MAX], *own_dv[FORWARDS_MAX]; // backward adds to them
} AttentionTask;

// Floats of scratch that a task of at most `rows` rows needs.
size_t attention_scratch(const TrainKernels *k, int rows, int group, int head_dim);

void attention_forward(const AttentionTask *t, const TrainKernels *k, float *scratch);
void attention_clear(const AttentionTask *t); // zeroes the gradients that backward adds to
void attention_backward(const AttentionTask *t, const TrainKernels *k, float *scratch);

// A thread's share of the tasks of the pass's layer, in its direction; argument: the Pass; forward.c.
void pass_attention(void *argument, int thread, int threads);

// --- the loss (head.c) -----------------------------------------------------------------------------------

// The part that a row of the batch is in.
static inline int pass_part(const Pass *p, int row) {
    return p->batch->blocks ? row - p->batch->blocks[row] : p->forward;
}
// The weight of row r of the chunk in the loss.
static inline float pass_scale(const Pass *p, int r) {
    return p->scale * (float)part_weight(p->n, pass_part(p, p->first + r));
}

// --- drafts of blocks (block.c) --------------------------------------------------------------------------

// The context of the pass's layer: keys and values; the slopes below it; the weights' share.
void block_context(const Pass *p, int thread, int from, int to);
void block_below(const Pass *p, int thread, int from, int to);
void block_weights(void *argument, int thread, int threads);

// The Markov head on rows [from, to) of the chunk's logits, and back; the loss of row r's confidence; their
// weights' share.
void block_bias(const Pass *p, int thread, int from, int to);
void block_bias_backward(const Pass *p, int thread, int from, int to);
float block_doubt(const Pass *p, int r, const float *chances, const float *wanted);
void block_head_weights(void *argument, int thread, int threads);

// --- EAGLE heads (eagle.c) -------------------------------------------------------------------------------

void eagle_input(const Pass *p, int thread, int from, int to); // rows of a forward: its trace's in and normed
void eagle_below(const Pass *p, int thread, int from, int to); // the same backward, from the slope of normed
void eagle_weights(const Pass *p, int thread, int threads); // a share of the gradients of what is in between

// EAGLE-1's second loss: how far row r's output is from the wanted state. The slope is added to normed_slope.
float eagle_distance(const Pass *p, int r);
void eagle_distance_backward(const Pass *p, int r, float scale);
