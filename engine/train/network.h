// A model in training: weights in f32, the activations that a batch's forward pass keeps for the backward
// pass, and gradients.
//
// A batch is one strip of rows, one token each, with its documents one after another; start[r] is the row
// where r's document begins, and a row attends to [start[r], r]. Positions count from the document's start.
//
//      rows     0   1   2   3   4   5   6   7
//      tokens   a0  a1  a2  b0  b1  c0  c1  c2
//      start    0   0   0   3   3   5   5   5
//      targets  a1  a2  -1  b1  -1  c1  c2  -1      -1: nothing to learn here
//
// An adapter's network reads a target's states instead of tokens, and learns distributions instead of tokens:
// the target's head applied to the states in `wanted`. Its head is frozen, or its own. A model can learn a
// teacher's distributions in the same way. An EAGLE head (eagle.c) goes through a batch several times, and in
// each forward after the first reads its own outputs instead of the target's states.
// A gradient is the same, bit for bit, for any number of threads: threads divide rows or outputs of a
// product, and sums over rows are taken NORM_BLOCK rows at a time and then added in order. Nothing is
// allocated after open.
#pragma once
#include "engine/base/memory.h"
#include "engine/cpu/pool.h"
#include "engine/train/kernels/kernels.h"
#include "engine/train/parameters.h"

typedef struct Batch {
    const int *tokens, *targets, *start; // (rows); adapters have no tokens, targets but -1 are `wanted`
    int rows;
    const float *states; // (rows, width): an adapter's input; EAGLE-3's has several
    const float *wanted; // (rows, wanted_width): final normed states; an EAGLE head has FORWARDS_MAX - 1 more
} Batch;

enum {
    NORM_BLOCK = 64,  // rows whose part of a norm weight's gradient is one sum
    HEAD_ROWS = 1024, // rows whose logits are in memory at a time
    EAGLE_LOOKS = 5,  // forwards at least that network_loss goes through, whatever training has
    CHUNK_ROWS = 96,  // rows that go through a layer's operations together, in a core's cache
};

// The matrices of a layer, and that of an EAGLE head's inputs.
typedef enum { MATRIX_QKV, MATRIX_O, MATRIX_GATE_UP, MATRIX_DOWN, MATRIX_JOIN, LAYER_MATRICES } LayerMatrix;
// The products with a head: its logits, the gradient of its input, the target's or teacher's logits.
typedef enum { HEAD_FORWARD, HEAD_BACKWARD, HEAD_WANTED, HEAD_PRODUCTS } HeadProduct;
// Activations of a layer, kept from its forward pass for its backward pass; each (rows, ...).
typedef struct LayerTrace {
    float *in;             // (width) the residual stream below the layer
    float *normed;         // (width); in EAGLE-3 (2 width), the normed embedding before it
    float *inverse;        // 1 / root mean square of `in`
    float *heads;          // (q_width + kv_width) q and k before their norms, if any; then their inverses
    float *qkv;            // (q_width + 2 kv_width), rotated by their positions
    float *mixed;          // (q_width) the output of attention
    float *middle;         // (width) the residual stream between attention and MLP
    float *middle_normed;  // (width)
    float *middle_inverse; // of `middle`
    float *gate_up;        // (2 mlp_width); an MLP without up has ones in its place
    float *active;         // (mlp_width): silu(gate) * up
} LayerTrace;

// The gradients of a layer's activations; each (rows, ...).
typedef struct Slopes {
    float *stream;  // (width) of the residual stream above the layer, then below
    float *middle;  // (width) between attention and MLP
    float *mixed;   // (q_width)
    float *gate_up; // (2 mlp_width)
    float *active;  // (mlp_width)
    float *join;    // (2 width): of an EAGLE head's inputs
    // of norm weights, (blocks of NORM_BLOCK rows, width), of heads' q's, then k's, (blocks, 2 head_dim)
    float *attention_norm, *mlp_norm, *token_norm, *head_norms;
} Slopes;

// One forward of a pass: its loss, and what the traces don't have, activations and gradients (rows, ...).
typedef struct Forward {
    float *out;               // (width) above the last layer
    float *out_inverse;       // of `out`
    float *join;              // (2 width): EAGLE-1's embedding and state
    float *embedding_inverse; // of EAGLE-3's embedding
    float *normed_slope;      // like a trace's normed; first that of the normed output
    float *qkv_slope;         // (q_width + 2 kv_width)
    double loss;              // of the last pass, summed over its rows
    int learned, agreed;      // rows with a target, and those whose likeliest token is the wanted one
} Forward;

// Rows [first, first + count) of a batch that are one document.
typedef struct DocumentRows {
    int first, count;
} DocumentRows;

typedef struct NetworkOptions {
    int rows;        // maximum in a batch
    int longest;     // document; at most the shape's context
    int threads;     // 0: one per core
    const char *isa; // NULL: the best of this processor
    Pool *pool;      // shared threads, instead of `threads` of its own; outlives the network. NULL: none
    const float *wanted_head; // (vocab, wanted_width): a teacher's, which outlives the network; NULL: none
    int wanted_width;
    float *wanted_panels; // of that head, of another network that outlives this one; NULL: packed again
} NetworkOptions;

typedef struct AdapterPart {
    AdapterKind kind;
    int head;                      // 0 .. kind.heads - 1
    const Model *target;           // outlives the network
    const float *target_head;      // (target's vocab, width), outlives it too
    const float *target_embedding; // (target's vocab, width), which an EAGLE head reads; else NULL
    int forwards; // an EAGLE head's in training, each after the first on outputs of the one before
} AdapterPart;

typedef struct Network {
    Shape shape;
    NetworkOptions options;
    const TrainKernels *kernels;
    Pool *pool;
    Parameters parameters;
    float *weights, *gradients; // (parameters.total)
    const float *head;          // (vocab, width)
    const float *target_head;   // (vocab, wanted_width); NULL: tokens are learned
    int wanted_width;
    const float *target_embedding; // (vocab, width), of an EAGLE head
    LayerTrace *layers;            // (shape.layers, or forward_count of one layer)
    Forward *forwards;             // (forward_count)
    int forward_count;             // of an EAGLE head those of training, and EAGLE_LOOKS at least; else 1
    int learned_forwards;          // those of training
    float *out_normed;             // (rows, width)
    float *logits, *wanted;        // (HEAD_ROWS, logit_stride): the network's, and the target's or teacher's
    size_t logit_stride;
    float *losses;  // (rows)
    bool *agreeing; // (rows): whether the likeliest token is the wanted one
    Slopes slopes;
    DocumentRows *documents;           // (rows)
    float *cosine, *sine;              // (longest + forward_count - 1, pairs)
    float **scratch;                   // (threads)
    float *panels[LAYER_MATRICES];     // of the pass's current layer, packed for its direction
    float *head_panels[HEAD_PRODUCTS]; // of a frozen head packed once, of one that learns in each pass
    MemBlocks blocks;                  // all of these
} Network;

// False with e filled, and n empty, if memory runs out or the shape can't be trained. Weights are zero until
// parameters_start, target_start or a checkpoint fills them.
bool network_open(Network *n, const Shape *shape, const NetworkOptions *o, Error *e);
bool network_open_adapter(Network *n, const AdapterPart *part, const NetworkOptions *o, Error *e);
void network_close(Network *n); // takes an empty or half-built one

// Returns the sum of -log p(target) over the batch's targets, or of -sum of wanted log p for distributions;
// EAGLE-1's rows have their state's distance too. Of an EAGLE head's forwards it is the sum by their weights,
// forward_weight. Fills in the losses of n->forwards.
double network_loss(Network *n, const Batch *batch);

// Returns the same sum, and adds the gradient of scale * sum to n->gradients. Agreement isn't counted.
double network_learn(Network *n, const Batch *batch, float scale);
double forward_weight(const Network *n, int forward); // in the loss; 0: it is only looked at
static inline bool network_is_eagle(const Network *n) { return shape_reads_both(&n->shape); }
