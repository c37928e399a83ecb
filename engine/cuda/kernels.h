// What the kernels are given, and the functions that put them into a stream. Plain data for C and CUDA alike.
//
// Exactness: an output element is summed in an order that depends on the length of the sum alone.
#pragma once
#include "engine/cuda/product.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HEAD_DIM_MAX = 128,
    TOP_MAX = 64,
};

typedef struct Norm {
    const RowList *rows;
    const float *hidden; // (nodes, width)
    const float *weight; // (width), or NULL: the rows as they are
    float epsilon;
    int width;
    Activations to;
} Norm;
void gpu_norm(const Norm *n, int most, void *stream);

// RMSNorm of each head's q and k, between their product and rotation.
typedef struct NormHeads {
    const RowList *rows;
    const float *sums;   // (rows, q k v)
    const float *weight; // (2, head_dim): of q's heads and of k's
    float epsilon;
    Put put; // PUT_QKV
} NormHeads;
void gpu_norm_heads(const NormHeads *n, int most, void *stream);

// Hidden states from the embedding, where there is one, and the angles of each node's position.
typedef struct Embed {
    const Step *step;
    Matrix table;            // data NULL: the hidden states are there already
    float *hidden;           // (nodes, width)
    const double *frequency; // (pairs)
    double factor;
    int pairs;
    float *cosine, *sine; // (nodes, pairs)
} Embed;
void gpu_embed(const Embed *e, int most, void *stream);

// Keys and values of this layer stand in areas (kv_heads, slots or nodes, pitch).
typedef struct Attention {
    const Step *step;
    Heads heads;
    const void *q, *cache_k, *cache_v, *step_k, *step_v;
    int slots, area; // of the cache; of the step area
    int window;      // 0: none
    bool ring;       // position p stands in slot p mod slots
    Activations to;  // (rows, heads * head_dim)
    float *parts;    // (tiles at a time, blocks of heads, spans) of what a tile's queries know of a span
    size_t parts_floats;
    unsigned *done; // (tiles, heads), zeros between launches
} Attention;
// As many tiles as the step has. spans: an upper bound of the spans that one of them sees.
void gpu_attention(const Attention *a, int tiles, int spans, void *stream);
void gpu_attention_plain(const Attention *a, int tiles, int first, int spans, void *stream); // of f32
size_t gpu_attention_plain_part(const Heads *h, int spans);
// Floats that one tile's parts take; parts_floats is at least one tile's.
size_t gpu_attention_part(const Heads *h, int spans);

// The best k of each row of logits (rows, stride), largest first, lowest id first among equals.
typedef struct Top {
    const RowList *rows;
    const float *logits;
    int stride, real, k;
    int *id, *slice_id;         // (rows, k), (rows, TOP_SLICES, k)
    float *logit, *slice_logit; // likewise
    unsigned *done;             // (rows)
} Top;
enum { TOP_SLICES = 16 };
void gpu_top(const Top *t, int most, void *stream);

// Draws from rows of logits (rows, stride), and chances (backend.h, HeadDraws; draw.cu). What they ask comes
// up in one copy.
typedef struct DrawAsks {
    double inverse; // 1 / temperature
    double top_p;
    int top_k, vocab, real; // vocab <= real
    double u[PANEL_ROWS];
    int first[PANEL_ROWS + 1];
    int token[]; // (first[rows])
} DrawAsks;
typedef struct Draw {
    const RowList *rows;
    int row; // the first
    const DrawAsks *asks;
    const float *logits;
    int stride;
    int *drawn;         // (rows)
    double *chance;     // (tokens)
    double *confidence; // (rows), or NULL
    float *p;           // (vocab): the distribution of one row; or NULL
} Draw;
void gpu_draw(const Draw *d, int most, void *stream);

// Keys and values of nodes to slots, all layers; the list stands on the device.
typedef struct CommitList {
    int count;
    int pair[]; // (count): node, slot
} CommitList;
typedef struct Commit {
    const CommitList *list;
    void *cache_k, *cache_v;
    const void *step_k, *step_v; // (layers, kv_heads, slots or nodes, pitch)
    int layers, slots, area;
    Heads heads;
} Commit;
void gpu_commit(const Commit *c, int count, void *stream);

// Floors: reads `bytes`; or multiplies in registers, by mma of bf16 or by fused multiply-adds of f32, and
// gives the operations that the call does.
void gpu_probe_read(const void *data, size_t bytes, int blocks, uint32_t *sink, void *stream);
double gpu_probe_mma(int rounds, int blocks, float *sink, void *stream);
double gpu_probe_fma(int rounds, int blocks, float *sink, void *stream);

#ifdef __cplusplus
}
#endif
