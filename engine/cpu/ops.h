// The table of CPU operations: one row a kernel set. A set that lacks a faster version of an operation holds
// the pointer of the set below it, so every row is whole.
//
//      reference  sums in double, written to be read: what all tests compare with
//      portable   C that any compiler vectorises
//      ...        sets for more capable processors override upwards
//
// Exactness, for every set by itself: an output element is a function of its own row and weights alone. Its
// sum is taken in one order that depends on the length of the sum only, never on the number of rows, on the
// columns asked for, or on threads. Two sets may differ in the last bits.
#pragma once
#include "engine/core/backend.h"
#include "engine/model/model.h"

// Consecutive positions whose keys (and values) stand `stride` elements apart.
typedef struct KeySpan {
    const void *k, *v;
    int count;
} KeySpan;

// Attention of one node for one key head and the query heads that share it.
typedef struct Attend {
    const float *q; // (group, head_dim)
    int group, head_dim;
    float scale;          // of q . k
    const KeySpan *spans; // (span_count), in ascending order of position, the node itself last
    int span_count;
    int visible;   // positions in all spans
    size_t stride; // elements from one position to the next
    Dtype dtype;   // of keys and values: F32 or BF16
    float *scores; // (group, visible rounded up to 16) scratch
    float *out;    // (group, head_dim)
} Attend;

typedef struct CpuOps {
    const char *name;
    bool (*available)(void); // on this processor

    // Activations in the form that matmul reads: rounded to bf16 for COMPUTE_BF16. x is (rows, columns).
    size_t (*packed_bytes)(int rows, int columns);
    void (*pack)(const float *x, int rows, int columns, Compute compute, void *packed);
    // y[r * stride + n - from] = sum over k of w[n][k] * x[r][k], for n in [from, to). from is a multiple of
    // MATMUL_UNIT.
    void (*matmul)(const Tensor *w, const void *packed, int rows, Compute compute, float *y, size_t stride,
                   int from, int to);

    void (*rmsnorm)(const float *x, const Tensor *weight, float epsilon, int n, float *y);
    // Rotates the two halves of a head: (x[i], x[i + pairs]) by the angle whose cosine and sine are given.
    void (*rope)(float *head, const float *cosine, const float *sine, int pairs);
    // gate = activation(gate) * up
    void (*gate)(float *gate, const float *up, int n, Activation activation);
    void (*attend)(const Attend *a);
} CpuOps;

enum { MATMUL_UNIT = 32, ATTEND_UNIT = 16 };

// The best set that this processor has, or the one named; NULL with e filled (the message lists them).
const CpuOps *cpu_ops_find(const char *name, Error *e);

// All sets, slowest first.
const CpuOps *const *cpu_ops_table(size_t *count);

extern const CpuOps cpu_ops_reference, cpu_ops_portable;
