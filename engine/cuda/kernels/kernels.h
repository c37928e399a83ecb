// The arguments of the kernels, and the functions that put them into a stream. Plain data for C and CUDA.
//
// Rows are the nodes that a run takes through layers, or those that the head looks at. A node is a number in
// the step area, where each of the sequences that share steps has a range of nodes. The number of rows, and
// all else that changes from step to step, is read on the device, from one buffer filled by one copy:
//
//      | RowList of the run | of given rows | of the head | Step | Tile 0, .. | Turn 0, .. | StepNode 0, .. |
//
// So a launch's arguments never change, and it can be part of a graph. A launch is sized by `most`, an upper
// bound of the rows; blocks without work return at once. The order in which an output element is summed
// depends only on the length of the sum.
#pragma once
#include "engine/cuda/kernels/moves.h"
#include "engine/cuda/kernels/norms.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct StepNode {
    int token; // or -1 - row: the likeliest id of that row of the head in front, which the host hasn't seen
    int position;
    int parent; // whose output it starts from, in a model of tokens and hidden states; negative: it's given
} StepNode;

typedef struct Step {
    int tiles, turns, quads, spans; // spans: the most that a quad leaves to one of its tiles
} Step;

// Attention cuts positions at multiples of 16 into blocks and of SPAN into spans. The queries of a tile's
// nodes go through attention together. A turn is a block for those of the nodes whose paths agree in it, up
// to where each ends; a fully committed block is one turn for all and isn't listed (turns.c). QUAD_TILES
// neighbouring tiles of a sequence, or fewer, are a quad: together they take the spans in which all of their
// nodes see one path, up to its end: the committed ones, or all if the step is a chain.
enum { TILE_NODES = 16, BLOCK = 16, SPAN = 128, SPAN_TURNS = 16, STEP_SPANS = 9, NO_KEY = 0xffff };
enum { QUAD_TILES = 4, GROUP_SPANS = 4 };
HOST_AND_DEVICE static inline int block_of(int position) { return position / BLOCK * BLOCK; }

typedef struct Tile {
    int nodes;                // of one sequence; 0: a launch has more tiles than the step
    int lowest, highest;      // positions that any of them sees
    int context;              // committed positions
    int cache, first;         // the number of their cache or copy; the sequence's first node in the step area
    int quad, quad_tiles;     // of the i-th tile: where the i-th quad begins, and its tiles
    int wide;                 // spans [0, wide) are its quad's
    int chain;                // of a quad's last tile: its turns, if the whole quad sees them
    int turn[STEP_SPANS + 1]; // [turn[k], turn[k + 1]): of the k-th span from `context`'s on
    int position[TILE_NODES];
    uint16_t row[TILE_NODES];
} Tile;

typedef struct Turn {
    int base;            // the block's first position
    uint16_t nodes;      // a bit for each of the tile's
    uint16_t last;       // where in the block the path ends
    uint16_t key[BLOCK]; // the path's nodes, from the tile's `first` on; NO_KEY: committed, or behind the
                         // path's end
} Turn;

// Hidden states from the embedding, and the angles of each node's position.
typedef struct Embed {
    const RowList *rows;
    const Step *step;
    Matrix table;              // data NULL: the hidden states are there already
    Matrix positions;          // learned rows, which are added; data NULL: none
    float *hidden;             // (nodes, width)
    float scale;               // of the embedding
    const uint64_t *likeliest; // keys of the head in front (outputs.h)
    const int *names;          // tokens of its ids; NULL: the same
    const double *frequency;   // (ropes, pairs)
    double factor[ROPES_MAX];  // of a rope's cosines and sines
    int ropes, pairs;
    size_t table_size;    // numbers from one rope's cosines to the next's
    float *cosine, *sine; // (ropes, nodes, pairs)
} Embed;
void gpu_embed(const Embed *e, int most, void *stream);

// The start of a model of tokens and hidden states (shape.h), before fc's product is added to `hidden`. A row
// is given, or the parent's output. INPUT_FUSED: fc's input is [token; row], the hidden state zeros.
// INPUT_MTP: the row is put into `given`, for norms that make fc's input; the hidden state zeros.
// INPUT_PAIRED: fc's input is a given row, the hidden state zeros; or else zeros, and the parent's output.
typedef struct Join {
    const RowList *rows;
    const Step *step;
    const float *tokens;   // (nodes, width), NULL: INPUT_PAIRED
    float *given, *hidden; // (nodes, width or states * width), (nodes, width)
    int width, states;
    Activations to; // data NULL: no row of the run is given, or INPUT_MTP
} Join;
void gpu_join(const Join *j, int most, void *stream);

// Copies hidden states to columns [column, column + width) of (nodes, stride).
typedef struct Keep {
    const RowList *rows;
    float *hidden, *kept;
    int width, stride, column;
} Keep;
void gpu_keep(const Keep *k, int most, void *stream);

// Keys and values of this layer are in areas (kv_heads, slots or nodes, pitch).
enum { HEAD_DIM_MAX = 256, HEAD_DIM_USUAL = 128 };
typedef struct Attention {
    const Step *step;
    Heads heads;
    const void *q, *cache_k, *cache_v, *step_k, *step_v;
    int slots, area, window; // slots of the cache; nodes of the step area; window 0: none
    float scale, inner;  // a score, for powers of two: scale * (q . k), or scale * tanh(inner * (q . k)) if
                         // inner isn't 0 (attention_scale)
    bool ring;           // position p is in slot p mod slots
    size_t cache_bytes;  // from a sequence's cache, or copy, to the next: all layers of each
    Activations to;      // (rows, heads * head_dim)
    float *parts;        // (tiles at a time, blocks of heads, spans): the state of a tile's queries in a span
    size_t parts_floats; // room for at least one tile's (gpu_attention_part)
    int processors;      // of the card: fewer blocks than fill it do without quads
    unsigned *done;      // (tiles, heads), zeros between launches
    // Of an attention that isn't fused (tiles of one node): the scores, (tiles at a time, heads, length).
    float *scores; // NULL: fused
    size_t scores_floats;
    int length; // positions
} Attention;
void attention_scale(const Shape *s, Attention *a); // fills scale and inner
// Upper bounds of a step's tiles and quads, of a tile's spans, and of those that no quad takes (own).
typedef struct StepSizes {
    int tiles, spans, quads, own;
    bool batch; // of several sequences
} StepSizes;
void gpu_attention(const Attention *a, const StepSizes *s, void *stream);
bool gpu_attention_quads(const Heads *h);             // whether quads do anything
size_t gpu_attention_shared(const Heads *h);          // bytes of shared memory that a block needs
size_t gpu_attention_part(const Heads *h, int parts); // floats of one tile's parts

// The numbers of a model without files (synth_run), made on the device.
typedef struct Numbers {
    void *to;
    Dtype dtype;
    bool bytes; // of codes
    uint64_t seed, stream;
    size_t first, count;
    float centre, spread;
} Numbers;
void gpu_numbers(const Numbers *n, void *stream);

#ifdef __cplusplus
}
#endif
