// What happens to one row at a time, forward and backward; part of each kernel set (see
// engine/cpu/lanes.h). Plain loops that the compiler turns into vectors; sums go in lanes.
#pragma once
#include "engine/cpu/rows.h"
#include "engine/train/kernels.h"

// Sum over i of a[i] b[i].
static inline float dot(const float *a, const float *b, int n) {
    Partial sum = {{0}};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) sum.lane[j] += a[i + j] * b[i + j];
    for (; i < n; i++) sum.lane[i % LANES] += a[i] * b[i];
    return partial_sum(&sum);
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

// The same turn by the opposite angle: a rotation's transpose is its inverse.
static inline void rope_backward(float *head, const float *cosine, const float *sine, int pairs) {
    for (int i = 0; i < pairs; i++) {
        float a = head[i], b = head[i + pairs];
        head[i] = a * cosine[i] + b * sine[i];
        head[i + pairs] = b * cosine[i] - a * sine[i];
    }
}

static inline float sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

static inline void swiglu_forward(const float *gate_in, const float *up, int n, float *y) {
    for (int i = 0; i < n; i++) y[i] = gate_in[i] * sigmoid(gate_in[i]) * up[i];
}

// silu'(x) = s + x s (1 - s), with s = sigmoid(x).
static inline void swiglu_backward(const float *dy, const float *gate_in, const float *up, int n,
                                   float *dgate, float *dup) {
    for (int i = 0; i < n; i++) {
        float x = gate_in[i], s = sigmoid(x), d = dy[i];
        dgate[i] = d * up[i] * (s + x * s * (1.0f - s));
        dup[i] = d * x * s;
    }
}

static inline float highest_of(const float *x, int n) {
    Partial high;
    float highest = -INFINITY;
    int i = 0;
    for (int j = 0; j < LANES; j++) high.lane[j] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) high.lane[j] = x[i + j] > high.lane[j] ? x[i + j] : high.lane[j];
    for (; i < n; i++) high.lane[i % LANES] = x[i] > high.lane[i % LANES] ? x[i] : high.lane[i % LANES];
    for (int j = 0; j < LANES; j++) highest = high.lane[j] > highest ? high.lane[j] : highest;
    return highest;
}

// x becomes e^(scale (x - highest)); gives their sum.
static inline float exponentials(float *x, float scale, float highest, int n) {
    Partial sum = {{0}};
    int i = 0;
    for (i = 0; i < n; i++) x[i] = fast_exp((x[i] - highest) * scale);
    for (i = 0; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) sum.lane[j] += x[i + j];
    for (; i < n; i++) sum.lane[i % LANES] += x[i];
    return partial_sum(&sum);
}

static inline void multiply(float *x, float by, int n) {
    for (int i = 0; i < n; i++) x[i] *= by;
}

static inline void softmax_forward(float *scores, float scale, int visible, int n) {
    float sum = exponentials(scores, scale, highest_of(scores, visible), visible);
    multiply(scores, 1.0f / sum, visible);
    memset(scores + visible, 0, (size_t)(n - visible) * sizeof *scores);
}

// ds = scale * p (dp - sum of p dp)
static inline void softmax_backward(float *dp, const float *p, float scale, int visible, int n) {
    float sum = dot(dp, p, visible);
    for (int i = 0; i < visible; i++) dp[i] = scale * p[i] * (dp[i] - sum);
    memset(dp + visible, 0, (size_t)(n - visible) * sizeof *dp);
}

// The target's logit is taken before it is gone: the probability itself may be 0.
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
