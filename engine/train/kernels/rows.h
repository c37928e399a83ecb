// What happens to one row at a time, forward and backward; part of each kernel set (see
// engine/cpu/kernels/lanes.h). Lanes by hand where a loop is not turned into vectors; sums go in lanes.
#pragma once
#include "engine/train/kernels/kernels.h"
#include "engine/cpu/kernels/rows.h"

// Sum over i of a[i] b[i].
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

// The same turn by the opposite angle: a rotation's transpose is its inverse.
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

// x becomes e^(scale (x - highest)); gives their sum.
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
