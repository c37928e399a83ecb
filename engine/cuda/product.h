// A product, and what becomes of its outputs.
#pragma once
#include "engine/core/shape.h"
#include "engine/cuda/matrix.h"
#include "engine/cuda/runtime.h"
#include "engine/cuda/step_rows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PANEL_ROWS = 128, // rows that one launch of a product takes
    PARTS_MAX = 8,    // of a sum: as many blocks as every card of 9.0 lets read one another's memory
};

// What becomes of a product's outputs, two neighbours (2j, 2j + 1) at a time.
typedef enum {
    PUT_LOGITS,    // stored by row; those from `real` on are -INFINITY
    PUT_RESIDUAL,  // added to the node's hidden state
    PUT_QKV,       // bias; rotation of q and k, whose pairs are neighbours here; q, and k and v of the node
    PUT_GATED,     // activation(gate 2j) * up 2j + 1: activation j
    PUT_ACTIVATED, // activation(2j), activation(2j + 1)
    PUT_ACTIVATED_RESIDUAL, // the same, added to the node's hidden state
} PutKind;

typedef struct Heads {
    int heads, kv_heads, head_dim, pitch; // pitch: elements of one head of q, k or v, padded with zeros
    Dtype dtype;                          // of q, k and v
    int pairs;                            // of a head, that are rotated: its first dimensions
    Overflow overflow;                    // of q, k and v
} Heads;

typedef struct Put {
    PutKind kind;
    const float *bias; // (rows of the matrix), or NULL
    float *out;        // logits (rows, stride) or hidden states (nodes, stride)
    int stride, real;
    Activations to;
    Activation activation;
    Heads heads;
    void *q;                    // (rows, heads, pitch)
    void *k, *v;                // of this layer's step area: (kv_heads, area, pitch)
    int area;                   // nodes that fit there
    const float *cosine, *sine; // (nodes, pairs)
} Put;

typedef struct Product {
    const RowList *rows;
    Matrix w;
    Activations x;
    Put put;
    float *parts; // (splits, PANEL_ROWS, rows of w up to a multiple of 16) where splits > 1
} Product;
// Sums (rows, stride) that are there already, in parts, and what becomes of them.
typedef struct PutRows {
    const RowList *rows;
    int first; // of the list's rows, the sums' first
    const float *sums;
    int outputs, stride, parts;
    size_t part; // elements from one part to the next
    Put put;
} PutRows;
void gpu_put_rows(const PutRows *p, int most, void *stream);

// How many parts a packed product's sum has: enough that 132 blocks work on it, by shape alone. 132 is no
// card's count here, but a part of the definition of the numbers.
static inline int gpu_product_splits(int rows, int pitch) {
    int n = 132 / ((rows + 255) / 256), most = pitch / 512 < PARTS_MAX ? pitch / 512 : PARTS_MAX;
    if (n > most) n = most;
    return n > 1 ? n : 1;
}

void gpu_product(const Product *p, int most, const GpuFacts *card, void *stream);
void gpu_product_plain(const Product *p, int most, void *stream); // of a plain matrix; gpu_product knows

#ifdef __cplusplus
}
#endif
