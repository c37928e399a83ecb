// The table of CPU operations: one row per kernel set. A set that lacks a faster version of an operation
// holds the pointer of the set below it, so every row is whole.
//
//      reference    sums in double, written to be read: what all tests compare with
//      portable     the lanes of lanes.h in C that any compiler vectorises
//      avx2         the same lanes on AVX2 with fused multiply-add
//      avx512       on AVX-512
//      avx512_bf16  products of bf16 pairs, the rest as avx512
//      amx          products and attention in bf16 on matrix tiles, the rest as avx512_bf16
//
// On a 64-bit Arm, in place of the last four:
//
//      neon         the lanes on NEON
//      neon_bf16    products of bf16 pairs, the rest as neon
//
// Exactness, for every set by itself: an output element is a function of its own row and weights alone. Its
// sum is taken in one order that depends on the length of the sum only, never on the number of rows, on the
// columns asked for, on where keys stand, or on threads. Two sets may differ in the last bits.
#pragma once
#include "engine/core/backend.h"
#include "engine/cpu/kernels/keys.h"
#include "engine/model/model.h"

// Activations in the form that a product with weights of that type reads.
typedef struct Packed {
    void *data;
    int rows, columns;
    Compute compute; // what they are rounded to
    Dtype weights;
} Packed;

// Consecutive keys of one head, in ascending order of position: keys [first, first + count) of an area.
typedef struct KeySpan {
    const void *k, *v; // of the head, see keys.h
    int first, count;
} KeySpan;

// Attention of neighbouring nodes for one key head and the query heads that share it. What a node sees is, in
// order of position: spans of its own, spans that all nodes here share (told once), spans of its own again. A
// window gives it some before the shared ones, the tree some after them.
//
//      node 0   | before | shared ............ | after |
//      node 1       | before | shared ........ | after     |
//      spans    shared, before of node 0, after of node 0, before of node 1, ..
//
// It is taken whole, or in three calls, for plain attention (core/attention.h): the scores; the weights,
// which take their place; the values' sum. Between the calls nothing but `scores` is kept.
typedef enum { ATTEND_WHOLE, ATTEND_SCORES, ATTEND_WEIGHTS, ATTEND_VALUES } AttendPart;
typedef struct Attend {
    AttendPart part;
    int nodes, group, head_dim;
    const KeyLayout *layout;
    float scale;    // of q . k
    const float *q; // node n's heads at q + n * row: (group, head_dim); rounded to what keys are
    float *out;     // likewise
    size_t row;     // elements from one node to the next
    const KeySpan *span;
    int shared_spans, shared;              // spans, and positions in them
    const int *before_spans, *after_spans; // (nodes)
    const int *before;                     // (nodes): positions in a node's spans before the shared ones
    const int *visible;                    // (nodes): positions that it sees in all
    const int *first;                      // (nodes): where in the text these begin
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
    int pack_unit; // rows that are packed together
    size_t (*packed_bytes)(int rows, int columns);
    // Rows [first, last) of x, (rows, columns); first is a multiple of pack_unit, last too or the end.
    void (*pack)(const float *x, const Packed *p, int first, int last);
    // y[r * stride + n - from] = sum over k of w[n][k] * x[r][k], for n in [from, to). from is a multiple of
    // MATMUL_UNIT.
    void (*matmul)(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to);

    // y may be x.
    void (*rmsnorm)(const float *x, const Tensor *weight, float epsilon, int n, float *y);
    // Rotates the two halves of a head: (x[i], x[i + pairs]) by the angle whose cosine and sine are given.
    void (*rope)(float *head, const float *cosine, const float *sine, int pairs);
    // gate = activation(gate) * up
    void (*gate)(float *gate, const float *up, int n, Activation activation);
    void (*attend)(const Attend *a);
    // Multiply-adds in registers, nothing else, as products of bf16 weights do them or as all others do;
    // gives how many operations it did.
    double (*peak)(Compute compute, long rounds);
} CpuOps;

enum { MATMUL_UNIT = 32 };

// The best set that this processor has, or the one named; NULL with e filled (the message lists them).
const CpuOps *cpu_ops_find(const char *name, Error *e);

// All sets of this build, slowest first; available: whether this processor has it (may be NULL).
size_t cpu_ops_count(void);
const CpuOps *cpu_ops_at(size_t i, bool *available);

extern const CpuOps cpu_ops_reference, cpu_ops_portable, cpu_ops_avx2, cpu_ops_avx512, cpu_ops_avx512_bf16,
    cpu_ops_amx, cpu_ops_neon, cpu_ops_neon_bf16;

// Whether this processor's tiles multiply as they should: a virtual machine may name what it cannot do.
bool cpu_amx_works(void);
