// The table of training kernels: one row per instruction set, each compiled from kernels_lanes.c in the lanes
// of engine/cpu/kernels/lanes.h. Every x_forward is followed by its x_backward.
//
//      product    the only matrix product of training (product.h, product_bf16.h)
//      the rest   operations on one row at a time
//
// Exactness, within each set: an element of a product is summed over k in ascending order in one accumulator,
// K_BLOCK terms at a time, whatever its neighbours in the matrix are. So results depend neither on the number
// of threads nor on how rows are divided among them. Two sets may differ in the last bits.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

// A matrix seen through strides: element (i, j) is data[i * row + j * column]. One of the two is 1.
typedef struct View {
    const float *data;
    size_t row, column;
} View;

static inline View view_rows(const float *data, size_t stride) { return (View){data, stride, 1}; }
static inline View view_transposed(const float *data, size_t stride) { return (View){data, 1, stride}; }

// A matrix b as products read it, packed once by the set's `pack` for every product that uses it.
typedef struct Panels {
    float *data;
    int k, n; // of b
} Panels;

// c = a b, or c += a b.
typedef struct Product {
    View a;        // (m, k)
    View b;        // (k, n); not read if there are panels
    Panels panels; // of a matrix whose first k rows and n columns are b; data NULL: the product packs b
    float *c;      // (m, n), rows `stride` apart
    size_t stride; // elements
    int m, n, k;
    bool add; // c += a b
} Product;

// One step of AdamW (Loshchilov and Hutter, 2019, algorithm 2) for a run of parameters.
typedef struct AdamStep {
    float rate;             // of learning, in this step
    float decay;            // the share of a weight that a step at rate 1 removes
    float beta1, beta2;     // of the moving averages
    float epsilon;          // added to the root of the second one
    float unbias1, unbias2; // 1 / (1 - beta^t)
    float gradient_scale;   // clipping
} AdamStep;

typedef struct TrainKernels {
    const char *name;
    bool rounds_to_bf16; // the operands of products, to nearest even; sums are f32
    int row_unit;        // rows of c that are computed together: threads divide m at multiples of it
    size_t scratch;      // floats of scratch that product needs
    void (*product)(const Product *p, float *scratch);
    size_t (*panels_size)(int k, int n); // floats of the panels of b (k, n)
    // Packs columns [from, end) of b: both are multiples of panel_unit, except at the end of b.
    void (*pack)(const View *b, const Panels *to, int from, int end);
    int panel_unit;

    // y = x * inverse * weight; returns inverse = 1 / sqrt(mean of squares + epsilon).
    float (*rmsnorm_forward)(const float *x, const float *weight, float epsilon, int n, float *y);
    // dx = past + the gradient through the norm; adds to dweight. `past`, the residual's gradient, may be dx.
    void (*rmsnorm_backward)(const float *dy, const float *x, const float *weight, float inverse, int n,
                             const float *past, float *dx, float *dweight);
    // Rotates a head (2 * pairs) by the angles of the given cosines and sines; backward rotates it back.
    void (*rope_forward)(float *head, const float *cosine, const float *sine, int pairs);
    void (*rope_backward)(float *head, const float *cosine, const float *sine, int pairs);
    // y = silu(gate) * up
    void (*swiglu_forward)(const float *gate, const float *up, int n, float *y);
    void (*swiglu_backward)(const float *dy, const float *gate, const float *up, int n, float *dgate,
                            float *dup);
    // Turns the first `visible` of n scores, times scale, into weights that sum to one; the others become 0.
    void (*softmax_forward)(float *scores, float scale, int visible, int n);
    // Turns dp, the gradient of the weights, into the gradient of the scores.
    void (*softmax_backward)(float *dp, const float *p, float scale, int visible, int n);
    // Turns logits into probabilities; returns -log of the target's.
    float (*cross_entropy_forward)(float *logits, int target, int n);
    // Turns probabilities into the gradient of scale * loss by the logits.
    void (*cross_entropy_backward)(float *p, int target, float scale, int n);
    // The same for a distribution: the loss is -sum of wanted log p.
    float (*distillation_forward)(float *logits, const float *wanted, int n);
    void (*distillation_backward)(float *p, const float *wanted, float scale, int n);

    void (*add)(float *to, const float *from, size_t n); // to += from
    double (*sum_of_squares)(const float *x, size_t n);
    // Updates weight, mean and square (the moving averages) by one step.
    void (*adamw)(const AdamStep *s, float *weight, const float *gradient, float *mean, float *square,
                  size_t n);
} TrainKernels;

// Returns the named set, or the best set of this processor if name is NULL. NULL with e filled if there is no
// such set, or the processor can't run it; the message lists those it can.
const TrainKernels *train_kernels_find(const char *name, Error *e);

// All sets of this build, slowest first; *available: whether this processor can run it (may be NULL).
size_t train_kernels_count(void);
const TrainKernels *train_kernels_at(size_t i, bool *available);

extern const TrainKernels train_kernels_portable, train_kernels_neon, train_kernels_avx2,
    train_kernels_avx512_bf16;
