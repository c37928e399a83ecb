// A model in training: weights in f32, activations that a forward pass keeps for the backward one, gradients
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
// each forward after the first reads its own outputs, or masks, instead of the target's states. A draft of
// blocks (block.c) reads blocks of masks that see the target's states.
// A gradient is the same, bit for bit, for any number of threads: threads divide rows or outputs of a
// product, and sums over rows are NORM_BLOCK rows' at a time, added in order. Open allocates everything.
#pragma once
#include "engine/base/memory.h"
#include "engine/cpu/pool.h"
#include "engine/train/kernels/kernels.h"
#include "engine/train/parameters.h"
#include "engine/train/trace.h"

typedef struct Batch {
    const int *tokens, *targets, *start; // (rows); adapters have no tokens, targets but -1 are `wanted`
    int rows;
    const float *states; // (rows, width): an adapter's input; EAGLE-3's has several
    const float *wanted; // (rows, wanted_width): final normed states; an EAGLE head has FORWARDS_MAX - 1 more
    const int *blocks;   // (rows): where r's block begins, in a draft of blocks, whose tokens have masks
    const int *text;     // (rows): its tokens without masks
} Batch;

enum {
    NORM_BLOCK = 64,        // rows whose part of a norm weight's gradient is one sum
    HEAD_ROWS = 1024,       // rows whose logits are in memory at a time
    EAGLE_LOOKS = 5,        // forwards at least that network_loss goes through, whatever training has
    CHUNK_ROWS = 96,        // rows that go through a layer's operations together, in a core's cache
    PARTS_MAX = BLOCK_MOST, // of a loss
};

// The matrices of a layer, and that of a draft's inputs.
typedef enum { MATRIX_QKV, MATRIX_O, MATRIX_GATE_UP, MATRIX_DOWN, MATRIX_JOIN, LAYER_MATRICES } LayerMatrix;
// The products with a head: its logits, the gradient of its input, the target's or teacher's logits.
typedef enum { HEAD_FORWARD, HEAD_BACKWARD, HEAD_WANTED, HEAD_PRODUCTS } HeadProduct;
// A part of the loss, in the last pass: of a network, an EAGLE head's forward, or a slot of blocks.
typedef struct Part {
    double loss;         // summed over its rows
    int learned, agreed; // rows with a target, and those whose likeliest token is the wanted one
} Part;

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
    const float *target_embedding; // (target's vocab, width), which drafts read; else NULL
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
    const float *target_embedding; // (vocab, width), of a draft
    LayerTrace *layers;            // (forward_count, shape.layers)
    Forward *forwards;             // (forward_count)
    int forward_count;             // of an EAGLE head those of training, and EAGLE_LOOKS at least; else 1
    int learned_forwards;          // those of training
    bool recycles_normed;          // later forwards read the final norm's output in the one before (MTP)
    Part parts[PARTS_MAX];
    int part_count;
    BlockTrace block;
    float *out_normed;      // (rows, width)
    float *logits, *wanted; // (HEAD_ROWS, logit_stride): the network's, and the target's or teacher's
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
// EAGLE-1's rows have their state's distance too. Of several parts it is the sum by their weights,
// part_weight. Fills in n->parts.
double network_loss(Network *n, const Batch *batch);

// Returns the same sum, and adds the gradient of scale * sum to n->gradients. Agreement isn't counted.
double network_learn(Network *n, const Batch *batch, float scale);
double part_weight(const Network *n, int part); // in the loss; 0: it is only looked at
static inline bool network_is_block(const Network *n) { return n->shape.input == INPUT_BLOCK; }
static inline bool network_is_eagle(const Network *n) {
    return shape_reads_both(&n->shape) && !network_is_block(n);
}
// P-EAGLE: an EAGLE head whose forwards after the first read masks.
static inline bool network_is_parallel(const Network *n) {
    return n->shape.input == INPUT_PAIRED && n->shape.mask_token;
}
