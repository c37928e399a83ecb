// A set of training kernels. This source is compiled once for each set, as kernels_SET.o, with the set's name
// in SET and under the set's own compiler flags (sets.mk). With PRODUCT_BF16 its products round their
// operands to bf16; everything else is f32 in every set.
//
// A row operation sums in lanes (engine/cpu/kernels/lanes.h), in an order that depends only on the row's
// length. Lanes are written by hand where the compiler doesn't vectorise the loop.
#include "engine/train/kernels/kernels.h"

#if defined(PRODUCT_BF16)
#include "engine/train/kernels/product_bf16.h"
enum { ROUNDS_TO_BF16 = 1 };
#else
#include "engine/train/kernels/product.h"
enum { ROUNDS_TO_BF16 = 0 };
#endif

#include "engine/cpu/kernels/rows.h"

#if !defined(SET) // for tools that read only this source
#define SET portable
#endif

// The sum over i of a[i] b[i].
static inline float dot(const float *a, const float *b, int n) {
    Lanes sum = lanes_set(0);
    for (int i = 0; i < n; i += LANES)
        sum = lanes_fma(lanes_take(a + i, n - i, 0), lanes_take(b + i, n - i, 0), sum);
    return lanes_sum(sum);
}

static inline float rmsnorm_forward(const float *x, const float *weight, float epsilon, int n, float *y) {
    float inverse = 1.0f / sqrtf(dot(x, x, n) / (float)n + epsilon);
    for (int i = 0; i < n; i++) y[i] = x[i] * inverse * weight[i];
    return inverse;
}

// With u = x * inverse and g = dy * weight: dx = inverse * (g - u * mean(g u)), dweight = dy * u.
static inline void rmsnorm_backward(const float *dy, const float *x, const float *weight, float inverse,
                                    int n, const float *past, float *dx, float *dweight) {
    Partial sum = {{0}};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) sum.lane[j] += dy[i + j] * weight[i + j] * x[i + j];
    for (; i < n; i++) sum.lane[i % LANES] += dy[i] * weight[i] * x[i];
    float mean = partial_sum(&sum) * inverse * inverse / (float)n;
    for (i = 0; i < n; i++) dweight[i] += dy[i] * x[i] * inverse;
    for (i = 0; i < n; i++) dx[i] = past[i] + inverse * (dy[i] * weight[i] - x[i] * mean);
}

static inline void rope_forward(float *head, const float *cosine, const float *sine, int pairs) {
    rope(head, cosine, sine, pairs);
}

// Rotates by the opposite angle: a rotation's transpose is its inverse.
static inline void rope_backward(float *head, const float *cosine, const float *sine, int pairs) {
    for (int i = 0; i < pairs; i++) {
        float a = head[i], b = head[i + pairs];
        head[i] = a * cosine[i] + b * sine[i];
        head[i + pairs] = b * cosine[i] - a * sine[i];
    }
}

static inline void swiglu_forward(const float *gate_in, const float *up, int n, float *y) {
    for (int i = 0; i < n; i += LANES) {
        Lanes x = lanes_take(gate_in + i, n - i, 0);
        lanes_give(y + i, n - i, lanes_times(lanes_times(x, sigmoid(x)), lanes_take(up + i, n - i, 0)));
    }
}

// silu'(x) = s + x s (1 - s), with s = sigmoid(x).
static inline void swiglu_backward(const float *dy, const float *gate_in, const float *up, int n,
                                   float *dgate, float *dup) {
    const Lanes one = lanes_set(1), minus = lanes_set(-1);
    for (int i = 0; i < n; i += LANES) {
        Lanes x = lanes_take(gate_in + i, n - i, 0), d = lanes_take(dy + i, n - i, 0), s = sigmoid(x);
        Lanes xs = lanes_times(x, s), slope = lanes_fma(xs, lanes_fma(s, minus, one), s);
        lanes_give(dgate + i, n - i, lanes_times(lanes_times(d, lanes_take(up + i, n - i, 0)), slope));
        lanes_give(dup + i, n - i, lanes_times(d, xs));
    }
}

// Replaces each x by e^(scale (x - highest)) and returns the sum.
static inline float exponentials(float *x, float scale, float highest, int n) {
    const Lanes by = lanes_set(scale), down = lanes_set(-highest);
    Lanes sum = lanes_set(0);
    for (int i = 0; i < n; i += LANES) {
        Lanes e = lanes_exp(lanes_times(lanes_plus(lanes_take(x + i, n - i, -INFINITY), down), by));
        lanes_give(x + i, n - i, e);
        sum = lanes_plus(sum, e);
    }
    return lanes_sum(sum);
}

static inline void multiply(float *x, float by, int n) {
    for (int i = 0; i < n; i += LANES)
        lanes_give(x + i, n - i, lanes_times(lanes_take(x + i, n - i, 0), lanes_set(by)));
}

static inline void softmax_forward(float *scores, float scale, int visible, int n) {
    float sum = exponentials(scores, scale, highest_of(scores, visible), visible);
    multiply(scores, 1.0f / sum, visible);
    memset(scores + visible, 0, (size_t)(n - visible) * sizeof *scores);
}

// ds = scale * p (dp - sum of p dp)
static inline void softmax_backward(float *dp, const float *p, float scale, int visible, int n) {
    const Lanes by = lanes_set(scale), down = lanes_set(-dot(dp, p, visible));
    for (int i = 0; i < visible; i += LANES) {
        Lanes weight = lanes_times(lanes_take(p + i, visible - i, 0), by);
        lanes_give(dp + i, visible - i,
                   lanes_times(weight, lanes_plus(lanes_take(dp + i, visible - i, 0), down)));
    }
    memset(dp + visible, 0, (size_t)(n - visible) * sizeof *dp);
}

static inline void add(float *to, const float *from, size_t n) {
    for (size_t i = 0; i < n; i++) to[i] += from[i];
}

static inline double sum_of_squares(const float *x, size_t n) {
    double sum[LANES] = {0}, total = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) sum[j] += (double)x[i + (size_t)j] * (double)x[i + (size_t)j];
    for (; i < n; i++) sum[i % LANES] += (double)x[i] * (double)x[i];
    for (int j = 0; j < LANES; j++) total += sum[j];
    return total;
}

static inline void adamw(const AdamStep *s, float *weight, const float *gradient, float *mean, float *square,
                         size_t n) {
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i] * s->gradient_scale;
        float m = mean[i] + (1.0f - s->beta1) * (g - mean[i]);
        float v = square[i] + (1.0f - s->beta2) * (g * g - square[i]);
        float step = m * s->unbias1 / (sqrtf(v * s->unbias2) + s->epsilon);
        mean[i] = m;
        square[i] = v;
        weight[i] -= s->rate * (step + s->decay * weight[i]);
    }
}

// --- losses ----------------------------------------------------------------------------------------------

// Reads the target's logit before it becomes a probability, which may round to 0.
static inline float cross_entropy_forward(float *logits, int target, int n) {
    float highest = highest_of(logits, n), wanted = logits[target];
    float sum = exponentials(logits, 1.0f, highest, n);
    multiply(logits, 1.0f / sum, n);
    return logf(sum) + highest - wanted;
}

static inline void cross_entropy_backward(float *p, int target, float scale, int n) {
    multiply(p, scale, n);
    p[target] -= scale;
}

// wanted sums to one, so the sum of -wanted log p is the logits' normaliser less their mean under wanted.
static inline float distillation_forward(float *logits, const float *wanted, int n) {
    float highest = highest_of(logits, n), mean = dot(logits, wanted, n);
    float sum = exponentials(logits, 1.0f, highest, n);
    multiply(logits, 1.0f / sum, n);
    return logf(sum) + highest - mean;
}

static inline void distillation_backward(float *p, const float *wanted, float scale, int n) {
    const Lanes by = lanes_set(scale), minus = lanes_set(-1);
    for (int i = 0; i < n; i += LANES) {
        Lanes apart = lanes_fma(lanes_take(wanted + i, n - i, 0), minus, lanes_take(p + i, n - i, 0));
        lanes_give(p + i, n - i, lanes_times(apart, by));
    }
}

// --- the set ---------------------------------------------------------------------------------------------

#define TEXT_OF(name)      #name
#define NAME_OF(set)       TEXT_OF(set)
#define PASTE(left, right) left##right
#define KERNELS_OF(set)    PASTE(train_kernels_, set)

#define BOTH_WAYS(name) .name##_forward = name##_forward, .name##_backward = name##_backward
const TrainKernels KERNELS_OF(SET) = {BOTH_WAYS(rmsnorm),
                                      BOTH_WAYS(rope),
                                      BOTH_WAYS(swiglu),
                                      BOTH_WAYS(softmax),
                                      BOTH_WAYS(cross_entropy),
                                      BOTH_WAYS(distillation),
                                      .name = NAME_OF(SET),
                                      .rounds_to_bf16 = ROUNDS_TO_BF16,
                                      .row_unit = TILE_ROWS,
                                      .scratch = PRODUCT_SCRATCH,
                                      .product = product,
                                      .panels_size = panels_size,
                                      .pack = pack,
                                      .panel_unit = PANEL,
                                      .add = add,
                                      .sum_of_squares = sum_of_squares,
                                      .adamw = adamw};
