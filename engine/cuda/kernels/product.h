// Matrices on the device, their product, and the use of its outputs. Plain data for C and CUDA.
#pragma once
#include "engine/core/shape.h"
#include "engine/core/shared.h"
#include "engine/cuda/kernels/cutting.h"
#include "engine/cuda/kernels/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PACKED_K = 64,    // the columns of packed weights and activations are padded with zeros to a multiple,
    PLAIN_K = 128,    // those of plain ones too
    TILE_ROWS = 128,  // packed weights are also padded to whole tiles of a product
    PANEL_ROWS = 128, // rows that a block of a product takes at most
    PARTS_MAX = 4,    // of a sum: as many as a block of product_narrow.cu has warps
};

// The layout of a product's operands, which also decides the kernel that reads them.
typedef enum {
    FORM_PLAIN,  // weights of any type, activations of f32: row after row
    FORM_PACKED, // bf16 or f16: weights as tensor cores read them (product.cu), activations in 8x8 blocks
    FORM_ROWS,   // bf16 or f16, row after row: for cuBLASLt
    FORMS,
} Form;

// Pieces of the weights of the product that follows, which a product asks L2 for at its end (choices.c).
typedef struct Prefetch {
    const void *from;
    size_t step;      // bytes from one piece to the next
    int count, bytes; // count 0: none; bytes: of a piece, a multiple of 16
} Prefetch;

// Weights (rows, columns).
typedef struct Matrix {
    void *data;
    int rows, columns, pitch; // pitch: columns with padding
    Dtype dtype;
    Form form;
    bool library;           // cuBLASLt multiplies it
    int splits;             // parts of a packed product's sum
    int experts;            // such matrices one after another, of as many experts; 0: one matrix
    int bits;               // of a packed matrix's codes, 4 or 8 (codes.cuh); 0: it has values
    int group;              // columns that share a scale, 32, 64 or 128; of full ones of 8 bits 16
    bool full;              // scales are f32, of 4 bits with a low each; else f16
    uint8_t cut[CUT_SIZES]; // Cutting, where one was measured to be the fastest (choices.c)
    Prefetch next;
} Matrix;
size_t gpu_matrix_bytes(const Matrix *m); // of one

// choices.c. What OUTPACE_PREFETCH wants of this card; makes m's product ask for so many bytes of `next`.
size_t prefetch_bytes(const GpuFacts *card);
void prefetch_next(Matrix *m, const Matrix *next, size_t bytes);

// Of a coded matrix: the groups of a padded row; the bytes of its codes, which the scales follow; those of a
// group's scale.
HOST_AND_DEVICE static inline int matrix_groups(const Matrix *m) {
    return (m->pitch + m->group - 1) / m->group;
}
HOST_AND_DEVICE static inline size_t matrix_code_bytes(const Matrix *m) {
    size_t tiles = (size_t)((m->rows + TILE_ROWS - 1) / TILE_ROWS);
    return tiles * TILE_ROWS * (size_t)m->pitch / 8 * (size_t)m->bits;
}
HOST_AND_DEVICE static inline size_t matrix_scale_bytes(const Matrix *m) {
    return m->full ? (m->bits == 4 ? 2 : 1) * sizeof(float) : sizeof(uint16_t);
}

// A finite number that becomes infinite when rounded to f16 stores its place here; the lowest place wins.
typedef struct Overflow {
    unsigned *least; // NULL: not recorded
    unsigned place;
} Overflow;

// A product's input: (rows, pitch).
typedef struct Activations {
    void *data;
    int pitch;
    Form form;
    Dtype dtype; // that they are rounded to; plain ones are stored as f32
    Overflow overflow;
} Activations;

// Puts rows of a model's tensor into a matrix. Source row r becomes row base + stride * r. If `pairs` isn't
// 0, the first 2 * pairs rows of each `head` are first put in the order 0, pairs, 1, pairs + 1, ..
typedef struct Pack {
    const void *from;   // (rows, columns) of dtype, on the device; codes if the matrix is coded
    const void *scales; // of codes: (rows, groups) of f16, of f32, or of pairs of f32, scale and low
    Dtype dtype;
    int rows, columns, first; // first: the first of these rows in the whole tensor
    int base, stride, head, pairs;
    Matrix to;
} Pack;
void gpu_pack(const Pack *p, void *stream);
HOST_AND_DEVICE static inline int pack_row(int row, int base, int stride, int head, int pairs) {
    int i = pairs ? row % head : 0;
    if (i < 2 * pairs) row += (i < pairs ? 2 * i : 2 * (i - pairs) + 1) - i;
    return base + stride * row;
}

// The use of a product's outputs, two neighbours (2j, 2j + 1) at a time.
typedef enum {
    PUT_LOGITS,    // stored by row; those from `real` on are -INFINITY
    PUT_RESIDUAL,  // added to the node's hidden state
    PUT_QKV,       // bias; rotation of q and k, whose pairs are neighbours here; q by row, k and v by node
    PUT_GATED,     // activation(gate 2j) * up 2j + 1: activation j
    PUT_ACTIVATED, // activation(2j), activation(2j + 1)
    PUT_ACTIVATED_RESIDUAL, // the same, added to the node's hidden state
} PutKind;

typedef struct Heads {
    int heads, kv_heads, head_dim, pitch; // pitch: elements of one head of q, k or v, padded with zeros
    Dtype dtype;                          // of q, k and v
    int pairs;                            // rotated pairs of a head: its first dimensions
    Overflow overflow;                    // of q, k and v
} Heads;

typedef struct Put {
    PutKind kind;
    const float *bias; // (rows of the matrix), or NULL
    float *out;        // logits (rows, stride) or hidden states (nodes, stride)
    int stride, real;
    Activations to;
    float scale; // of logits, and of sums added to the hidden state; 0: none
    Activation activation;
    float cap; // of logits; 0: none
    Heads heads;
    void *q;                    // (rows, heads, pitch)
    void *k, *v;                // of this layer's step area: (kv_heads, area, pitch)
    int area;                   // nodes that fit there
    const float *cosine, *sine; // (nodes, pairs)
} Put;

// The nodes of a launch's rows (kernels.h).
typedef struct RowList {
    int count;
    int first;  // row r is node first + r; or, if negative,
    int node[]; // (count)
} RowList;

// The rows of an expert: slots [first, first + count) of activations and outputs. `first` is a multiple of 8.
typedef struct Slice {
    int first, count;
} Slice;

// Puts sums (rows, stride) that are in memory already, in parts.
typedef struct PutRows {
    const RowList *rows;
    const float *sums;
    int outputs, stride, parts;
    size_t part; // elements from one part to the next
    Put put;
} PutRows;
void gpu_put_rows(const PutRows *p, int most, void *stream);

typedef struct Product {
    const RowList *rows;
    const Slice *slices; // (w.experts): each expert multiplies its slots; `put` is by row. NULL: one matrix
    Matrix w;
    Activations x;
    Put put;
    float *parts;        // (splits, panels * PANEL_ROWS, rows of w up to a multiple of 16) if splits > 1
    size_t expert_bytes; // from an expert's matrix to the next
    PutRows *left;       // of the host: if not NULL, parts that are in memory are left to be put by this
} Product;
void gpu_product(const Product *p, int most, const GpuFacts *card, void *stream);

// Panels of a launch for up to so many rows.
static inline int product_panels(int most) { return (most + PANEL_ROWS - 1) / PANEL_ROWS; }

// The number of parts of a packed product's sum, a power of two: enough that 96 blocks or more work on it, if
// every part has 512 columns. A function of the shape alone: it's part of the definition of the numbers.
static inline int gpu_product_splits(int rows, int pitch) {
    int n = 1, tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    while (n < PARTS_MAX && n * tiles < 96 && pitch / 512 >= 2 * n) n *= 2;
    return n;
}

#ifdef __cplusplus
}
#endif
