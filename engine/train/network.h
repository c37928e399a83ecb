// A model while it learns: weights in f32, what a batch's forward pass leaves behind for the backward pass,
// and gradients.
//
// A batch is one strip of rows, a token each. Documents stand behind each other in it; start[r] is the row
// where r's document begins, and a row attends to [start[r], r]. Positions count from the document's start.
//
//      rows     0   1   2   3   4   5   6   7
//      tokens   a0  a1  a2  b0  b1  c0  c1  c2
//      start    0   0   0   3   3   5   5   5
//      targets  a1  a2  -1  b1  -1  c1  c2  -1      -1: nothing to learn here
//
// A gradient is the same, bit for bit, for any number of threads: products share out rows or outputs, and
// sums over rows are taken NORM_BLOCK rows at a time and then added in order. Nothing is allocated after
// open.
#pragma once
#include "engine/cpu/pool.h"
#include "engine/train/kernels.h"
#include "engine/train/parameters.h"

typedef struct Batch {
    const int *tokens, *targets, *start; // (rows)
    int rows;
} Batch;

enum {
    NORM_BLOCK = 64,  // rows whose part in a norm weight's gradient is summed by itself
    HEAD_ROWS = 1024, // rows whose logits are held at a time
};

// What a layer's forward pass leaves for its backward pass; each (rows, ...).
typedef struct LayerTrace {
    float *in;             // (width) the residual stream as it comes
    float *normed;         // (width)
    float *inverse;        // 1 / root mean square of `in`
    float *qkv;            // (q_width + 2 kv_width), turned by their positions
    float *mixed;          // (q_width) what attention gives
    float *middle;         // (width) the residual stream between attention and MLP
    float *middle_normed;  // (width)
    float *middle_inverse; // of `middle`
    float *gate_up;        // (2 mlp_width)
    float *active;         // (mlp_width): silu(gate) * up
} LayerTrace;

// Gradients on their way down; each (rows, ...).
typedef struct Slopes {
    float *stream;  // (width) of the residual stream above the layer, then below
    float *middle;  // (width) between attention and MLP
    float *normed;  // (width)
    float *qkv;     // (q_width + 2 kv_width)
    float *mixed;   // (q_width)
    float *gate_up; // (2 mlp_width)
    float *active;  // (mlp_width)
    float *attention_norm,
        *mlp_norm; // (blocks of NORM_BLOCK rows, width): parts of the norm weights' gradients
} Slopes;

// Rows [first, first + count) of a batch that are one document.
typedef struct DocumentRows {
    int first, count;
} DocumentRows;

typedef struct NetworkOptions {
    int rows;        // most in a batch
    int longest;     // document; at most the shape's context
    int threads;     // 0: one a core
    const char *isa; // NULL: the best there is
} NetworkOptions;

typedef struct Network {
    Shape shape;
    NetworkOptions options;
    const TrainKernels *kernels;
    Pool *pool;
    Parameters parameters;
    float *weights, *gradients; // (parameters.total)
    LayerTrace *layers;         // (shape.layers)
    float *out;                 // (rows, width) above the last layer
    float *out_normed;          // (rows, width)
    float *out_inverse;         // (rows)
    float *logits;              // (HEAD_ROWS, logit_stride)
    size_t logit_stride;
    float *losses; // (rows)
    Slopes slopes;
    DocumentRows *documents; // (rows)
    float *cosine, *sine;    // (longest, pairs)
    float **scratch;         // (threads)
} Network;

// False with e filled, n then empty. Weights are zero: parameters_start or a checkpoint fills them.
bool network_open(Network *n, const Shape *shape, const NetworkOptions *o, Error *e);
void network_close(Network *n); // takes an empty or half-built one

// Sum of -log p(target) over the batch's targets.
double network_loss(Network *n, const Batch *batch);

// The same, and adds the gradient of scale * that sum to n->gradients.
double network_learn(Network *n, const Batch *batch, float scale);
