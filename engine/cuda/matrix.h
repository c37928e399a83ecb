// Weights and activations on the device, in the forms that products read.
#pragma once
#include "engine/base/numbers.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __CUDACC__
#define HOST_AND_DEVICE __host__ __device__
#else
#define HOST_AND_DEVICE
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PACKED_K = 64,       // packed weights and activations are padded to a multiple of this many columns, with
                         // zeros,
    PLAIN_K = 128,       // plain ones to a multiple of this
    TILE_ROWS = 256,     // and packed weights to whole tiles of a product, which have one of these
    LOW_TILE_ROWS = 192, // numbers of rows: no tile ends before its last
};

// How the operands of a product stand in memory, and so which product reads them.
typedef enum {
    FORM_PLAIN,  // weights of any type, activations of f32: row after row
    FORM_PACKED, // bf16 or f16: weights as a tensor core's lanes hold them (pack.cu), activations in 8x8
                 // blocks
    FORM_ROWS,   // bf16, row after row: for cuBLASLt
    FORMS,
} Form;

// Weights (rows, columns).
typedef struct Matrix {
    void *data;
    int rows, columns, pitch; // pitch: columns with padding
    Dtype dtype;
    Form form;
    bool library; // cuBLASLt multiplies it
    int splits;   // of a packed product's sum
} Matrix;

// Where a number that was finite and becomes infinite as it is rounded to f16 is told: the lowest place that
// one came to stays in *least.
typedef struct Overflow {
    unsigned *least; // NULL: nobody asks
    unsigned place;
} Overflow;

// What a product reads, (rows, pitch).
typedef struct Activations {
    void *data;
    int pitch;
    Form form;
    Dtype dtype; // that they are rounded to; plain ones are kept as f32
    Overflow overflow;
} Activations;

// Puts rows of a model's tensor into a matrix. Row r of the source becomes row base + stride * r; where
// `pairs` is set, the first 2 * pairs rows of each `head` are first put in the order 0, pairs, 1, pairs + 1,
// ..
typedef struct Pack {
    const void *from; // (rows, columns) of dtype, on the device
    Dtype dtype;
    int rows, columns, first; // first: of these rows in the whole tensor
    int base, stride, head, pairs;
    Matrix to;
} Pack;
void gpu_pack(const Pack *p, void *stream);
HOST_AND_DEVICE static inline int pack_row(int row, int base, int stride, int head, int pairs) {
    int i = pairs ? row % head : 0;
    if (i < 2 * pairs) row += (i < pairs ? 2 * i : 2 * (i - pairs) + 1) - i;
    return base + stride * row;
}
size_t gpu_matrix_bytes(const Matrix *m);

#ifdef __cplusplus
}
#endif
