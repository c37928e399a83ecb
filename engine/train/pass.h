// A pass over a batch: the internal page of forward.c (layers), backward.c (the same layers from their end),
// head.c (the head in both directions, and the loss), eagle.c (the inputs of EAGLE's heads, their features
// and several forwards), attention.c and linear.c.
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

static inline LayerTrace *pass_trace(const Pass *p) { return &p->n->layers[p->layer + p->forward]; }
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

// All rows, in chunks, so that one product's output is still cached when the next one reads it. A thread's
// rows begin at a multiple of NORM_BLOCK, so that one thread sums a whole block; forward.c.
void pass_rows(Pass *p, RowsWork *work);

// Turns heads of q and k, rows of qkv, by the rows' positions, or their gradients back; forward.c.
void pass_turn(const Pass *p, float *qkv, int from, int to);

// --- products (linear.c) ---------------------------------------------------------------------------------

// y = x W^T for a weight W (outputs, inputs), and the two products of its gradients.
typedef struct Linear {
    const TrainKernels *kernels;
    float *scratch; // of this thread
    int inputs, outputs;
    size_t y_stride; // floats from one row of y, or dy, to the next
    float
        *panels; // the packed weight, for linear_forward or for linear_backward_input; NULL: each call packs
} Linear;

// The products of a thread with a matrix of the pass's layer, which matrices_pack has packed.
Linear pass_linear(const Pass *p, int thread, LayerMatrix m);

// Rows [from, to): y = x W^T, or y += x W^T.
void linear_forward(const Linear *l, const float *x, const float *weight, float *y, int from, int to,
                    bool add);

// Rows [from, to): dx = dy W.
void linear_backward_input(const Linear *l, const float *dy, const float *weight, float *dx, int from,
                           int to);

// A thread's share of the gradient of a weight, if the network has it, and of a bias, dy's rows being
// `stride` apart; backward.c.
void pass_weight(const Pass *p, const Linear *l, int thread, int threads, const float *dy, const float *x,
                 size_t weight);
void pass_bias(const Pass *p, int thread, int threads, const float *dy, int stride, int width, size_t bias);

// Adds the parts of a norm weight's gradient to it, in order; backward.c.
void pass_add_parts(const Pass *p, const float *parts, size_t weight);

// Outputs [from, to): dweight += dy^T x over all rows.
void linear_backward_weight(const Linear *l, const float *dy, const float *x, int rows, float *dweight,
                            int from, int to);

// Allocates n->panels for the matrices of any layer, and n->head_panels. False if memory runs out.
bool matrices_open(Network *n);

// The products with a head, which pass_pack_heads has packed.
Linear pass_head(const Pass *p, int thread, HeadProduct h);

// A thread's share of packing the frozen heads, when a network is opened, or else the one that learns;
// argument: the Pass.
void pass_pack_heads(void *argument, int thread, int threads);

// A thread's share of packing all matrices of the pass's layer for its direction; argument: the Pass.
void pass_pack(void *argument, int thread, int threads);

// --- attention (attention.c) -----------------------------------------------------------------------------

// Causal attention within one document, of one key head and the query heads that share it. No task writes
// what another task reads, so packed documents can't see each other.
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
    // Further keys and values that a row has for itself alone, one for each of `own` (rows, head_dim).
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

// --- EAGLE heads (eagle.c) -------------------------------------------------------------------------------

void eagle_input(const Pass *p, int thread, int from, int to); // rows of a forward: its trace's in and normed
void eagle_below(const Pass *p, int thread, int from, int to); // the same backward, from the slope of normed
void eagle_weights(const Pass *p, int thread, int threads); // a share of the gradients of what is in between

// EAGLE-1's second loss: how far row r's output is from the wanted state. The slope is added to normed_slope.
float eagle_distance(const Pass *p, int r);
void eagle_distance_backward(const Pass *p, int r);
