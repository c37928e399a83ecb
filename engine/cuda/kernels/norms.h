// The arguments of the norms: of rows of the residual stream, of products on their way there, and of q and k.
#pragma once
#include "engine/cuda/kernels/product.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Norm {
    const RowList *rows;
    const float *hidden, *weight; // (nodes, stride); (width), or NULL: the rows as they are
    const float *bias;            // (width), or NULL; of LayerNorm
    bool layer;                   // LayerNorm
    float epsilon;
    int width, stride; // of a norm; from one row to the next, at least as much
    Activations to;    // from `column` on
    int column;
    float *residual; // (nodes, stride): the normed rows are put here as well; or NULL
    PutRows left;    // parts 0: none; else sums of the same rows, which are first put into `hidden`
} Norm;
void gpu_norm(const Norm *n, int most, void *stream);

// RMSNorm of a product's rows, which are then added to the residual stream.
typedef struct NormOutput {
    const RowList *rows;
    float *sums;         // (rows, width)
    const float *weight; // (width)
    float epsilon, scale;
    int width;
    float *hidden; // (nodes, width)
    PutRows left;  // parts 0: none; else those of the sums, PUT_LOGITS
} NormOutput;
void gpu_norm_output(const NormOutput *n, int most, void *stream);

// RMSNorm of all heads of q as one row, and of k, in place.
typedef struct NormRows {
    const RowList *rows;
    float *sums;         // (rows, stride): q, k, ..
    const float *weight; // (q_width + kv_width)
    float epsilon;
    int q_width, kv_width, stride;
} NormRows;
void gpu_norm_q_and_k(const NormRows *n, int most, void *stream);

// Norm of each head's q and k, between their product and rotation: RMSNorm, or LayerNorm with weights of each
// head.
typedef struct NormHeads {
    const RowList *rows;
    const float *sums, *weight; // (rows, q k v); (2, head_dim): of q's heads and of k's; or (heads, head_dim)
    bool own;                   // the second
    float epsilon;
    Put put; // PUT_QKV
} NormHeads;
void gpu_norm_heads(const NormHeads *n, int most, void *stream);

#ifdef __cplusplus
}
#endif
