// The table of CPU operations: one row per kernel set. If a set lacks a faster version of an operation, it
// has the one of the set below, so every row is complete.
//
//      reference    sums in double, written to be read: all tests compare with it
//      portable     the lanes of lanes.h in plain C, which any compiler vectorises
//      avx2         the same lanes on AVX2 with fused multiply-add
//      avx_vnni     sums of bytes for compute int8, the rest as avx2
//      avx512       on AVX-512
//      avx512_vnni  sums of bytes for compute int8, the rest as avx512
//      avx512_bf16  products of bf16 pairs, the rest as avx512_vnni
//      amx          products and attention in bf16 on matrix tiles, the rest as avx512_bf16
//
// On a 64-bit Arm, instead of the last six:
//
//      neon         the lanes on NEON
//      neon_bf16    products of bf16 pairs, the rest as neon
//
// Exactness, within each set: an output element is a function of its own row and weights only. Its sum is
// taken in one order, which depends only on the length of the sum: never on the number of rows, the columns
// computed, the slots of keys, or threads. Two sets may differ in the last bits; in compute int8 (int8.h)
// their products do not.
#pragma once
#include "engine/core/backend.h"
#include "engine/cpu/kernels/keys.h"
#include "engine/model/model.h"
#include "engine/model/tensor.h"

// Activations in the form that products with weights of one type read.
typedef struct Packed {
    void *data;
    int rows, columns;
    Compute compute; // their rounding; int8 only with coded weights
    Dtype weights;
    int bits;      // of the codes, for int8
    void *decoded; // scratch of the thread: MATMUL_UNIT rows of bf16; NULL if no weights are coded or f16
} Packed;

// For products with w, and with weights of the same packing.
static inline Packed packed_for(const Tensor *w, Compute compute, int rows, void *data) {
    bool int8 = compute == COMPUTE_INT8 && w->codes.bits;
    return (Packed){.data = data,
                    .rows = rows,
                    .columns = w->columns,
                    .compute = int8 || compute != COMPUTE_INT8 ? compute : COMPUTE_BF16,
                    .weights = w->dtype,
                    .bits = int8 ? w->codes.bits : 0};
}
static inline bool packed_alike(const Tensor *a, const Tensor *b, Compute compute) {
    return a->dtype == b->dtype && (compute != COMPUTE_INT8 || a->codes.bits == b->codes.bits);
}

// Consecutive keys of one head, in ascending order of position: keys [first, first + count) of an area.
typedef struct KeySpan {
    const void *k, *v; // of the head, see keys.h
    int first, count;
} KeySpan;

// Attention of neighbouring nodes for one key head and the query heads that share it. A node sees, in order
// of position: spans of its own, spans that all nodes here share (listed once), and spans of its own again.
// Windows are the cause of spans before the shared ones, the tree of spans after them.
//
//      node 0   | before | shared ............ | after |
//      node 1       | before | shared ........ | after     |
//      spans    shared, before of node 0, after of node 0, before of node 1, ..
//
// It's one call, or three for plain attention (BackendOptions): the scores; the weights, which replace them;
// the sum of the values. Only `scores` is kept between the calls.
typedef enum { ATTEND_WHOLE, ATTEND_SCORES, ATTEND_WEIGHTS, ATTEND_VALUES } AttendPart;
typedef struct Attend {
    AttendPart part;
    int nodes, group, head_dim;
    const KeyLayout *layout;
    float scale;    // of q . k
    float cap;      // then a score x becomes cap * tanh(x / cap); 0: it stays
    const float *q; // node n's heads at q + n * row: (group, head_dim); rounded to the type of keys
    float *out;     // the same
    size_t row;     // elements from one node to the next
    const KeySpan *span;
    int shared_spans, shared;              // spans, and positions in them
    const int *before_spans, *after_spans; // (nodes)
    const int *before;                     // (nodes): positions in a node's spans before the shared ones
    const int *visible;                    // (nodes): positions that it sees in total
    const int *first;                      // (nodes): the first of these in the text
    float *scores;                         // (queries, score_row) scratch
    size_t score_row;                      // at least the largest `first` + `visible` and SCORE_PAD
    float *sums;                           // (queries, head_dim rounded up to LANE_PAIRS) scratch
} Attend;

static inline bool attend_does(const Attend *a, AttendPart part) {
    return a->part == ATTEND_WHOLE || a->part == part;
}

// Scratch is for nodes * group queries, rounded up to QUERY_TILE.
enum { QUERY_TILE = 16, SCORE_PAD = 32 };
static inline size_t attend_queries(int nodes, int group) {
    return ((size_t)nodes * (size_t)group + QUERY_TILE - 1) / QUERY_TILE * QUERY_TILE;
}

typedef struct CpuOps {
    const char *name;
    int pack_unit; // rows packed together
    size_t (*packed_bytes)(int rows, int columns);
    // Packs rows [first, last) of x, (rows, columns). first is a multiple of pack_unit; so is last, or it's
    // the end.
    void (*pack)(const float *x, const Packed *p, int first, int last);
    // y[r * stride + n - from] = sum over k of w[n][k] * x[r][k], for n in [from, to). from is a multiple of
    // MATMUL_UNIT.
    void (*matmul)(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to);

    // y may be x.
    void (*rmsnorm)(const float *x, const Tensor *weight, float epsilon, int n, float *y);
    // The mean is taken away first; bias may have no data. y may be x.
    void (*layernorm)(const float *x, const Tensor *weight, const Tensor *bias, float epsilon, int n,
                      float *y);
    // Rotates the two halves of a head: (x[i], x[i + pairs]) by the angle with this cosine and sine.
    void (*rope)(float *head, const float *cosine, const float *sine, int pairs);
    // gate = activation(gate) * up
    void (*gate)(float *gate, const float *up, int n, Activation activation);
    void (*attend)(const Attend *a);
    // Returns the sum of e^(x - highest), and the largest of n >= 1 numbers; 0 if that is -INFINITY.
    float (*exp_sum)(const float *x, int n, float *highest);
    // Multiply-adds in registers and nothing else, in the way of products with bf16 weights (COMPUTE_BF16),
    // with codes of 4 bits (COMPUTE_INT8) or with all others; returns the number of operations.
    double (*peak)(Compute compute, long rounds);
} CpuOps;

// The row of a set whose source has a function of its own for every operation, under these names.
#define CPU_OPS_ROW(set)                                                                           \
    {                                                                                              \
        .name = set, .pack_unit = 1, .packed_bytes = packed_bytes, .pack = pack, .matmul = matmul, \
        .rmsnorm = rmsnorm, .layernorm = layernorm, .rope = rope, .gate = gate, .attend = attend,  \
        .exp_sum = exp_sum, .peak = peak                                                           \
    }

enum { MATMUL_UNIT = 32 };

// The set with this name or, if name is NULL or empty, the best set on this processor. NULL, with e filled,
// if there isn't such a set (the message lists them all).
const CpuOps *cpu_ops_find(const char *name, Error *e);

// The sets of this build, slowest first. available (may be NULL): whether this processor has it.
size_t cpu_ops_count(void);
const CpuOps *cpu_ops_at(size_t i, bool *available);

extern const CpuOps cpu_ops_reference, cpu_ops_portable, cpu_ops_avx2, cpu_ops_avx_vnni, cpu_ops_avx512,
    cpu_ops_avx512_vnni, cpu_ops_avx512_bf16, cpu_ops_amx, cpu_ops_neon, cpu_ops_neon_bf16;

// Whether this processor's tiles multiply correctly: a virtual machine may report tiles that don't work.
bool cpu_amx_works(void);
