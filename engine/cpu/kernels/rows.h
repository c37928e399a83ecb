// What happens to one row at a time: norm, rotation, gate, softmax; part of each kernel set (see lanes.h).
// Plain loops that the compiler turns into vectors, and lanes by hand where it does not. Sums go in lanes.
#pragma once
#include "engine/cpu/kernels/ops.h"
#include "engine/cpu/kernels/row_lanes.h"

// Sixteen partial sums, added like lanes.
typedef struct Partial {
    float lane[LANES];
} Partial;

static inline float partial_sum(const Partial *p) { return lanes_sum(lanes_load(p->lane)); }

// tanh through the exponential, with the sign put back: both ends are exact.
static inline float fast_gelu_tanh(float x) {
    float t = 0.79788456f * (x + 0.044715f * x * x * x), e = fast_exp(-2.0f * fabsf(t));
    float tanh_t = copysignf((1.0f - e) / (1.0f + e), t);
    return 0.5f * x * (1.0f + tanh_t);
}

static inline void rmsnorm(const float *x, const Tensor *weight, float epsilon, int n, float *y) {
    Partial sum = {{0}};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) sum.lane[j] += x[i + j] * x[i + j];
    for (; i < n; i++) sum.lane[i % LANES] += x[i] * x[i];
    float scale = 1.0f / sqrtf(partial_sum(&sum) / (float)n + epsilon);
    const uint16_t *h = weight->data;
    const float *f = weight->data;
    if (weight->dtype == DTYPE_BF16)
        for (i = 0; i < n; i++) y[i] = x[i] * scale * bf16_to_f32(h[i]);
    else if (weight->dtype == DTYPE_F32)
        for (i = 0; i < n; i++) y[i] = x[i] * scale * f[i];
    else
        for (i = 0; i < n; i++) y[i] = x[i] * scale * dtype_load(weight->dtype, weight->data, (size_t)i);
}

static inline void rope(float *head, const float *cosine, const float *sine, int pairs) {
    for (int i = 0; i < pairs; i++) {
        float a = head[i], b = head[i + pairs];
        head[i] = a * cosine[i] - b * sine[i];
        head[i + pairs] = b * cosine[i] + a * sine[i];
    }
}

static inline void gate_silu(float *gate, const float *up, int n) {
    for (int i = 0; i < n; i += LANES) {
        Lanes x = lanes_take(gate + i, n - i, 0);
        lanes_give(gate + i, n - i, lanes_times(lanes_times(x, sigmoid(x)), lanes_take(up + i, n - i, 0)));
    }
}

static inline void gate(float *gate, const float *up, int n, Activation activation) {
    if (activation == ACTIVATION_SILU) gate_silu(gate, up, n);
    else
        for (int i = 0; i < n; i++) gate[i] = fast_gelu_tanh(gate[i]) * up[i];
}

// Scores, times `scale`, become weights that sum to one. Lane i holds positions i, i + LANES, ... counted
// from the first visible one, which is a function of the query's position alone.
static inline void softmax(float *scores, int n, float scale) {
    const Lanes by = lanes_set(scale), down = lanes_set(-scale * highest_of(scores, n));
    Lanes sum = lanes_set(0);
    for (int i = 0; i < n; i += LANES) {
        Lanes e = lanes_exp(lanes_fma(lanes_take(scores + i, n - i, -INFINITY), by, down));
        lanes_give(scores + i, n - i, e);
        sum = lanes_plus(sum, e);
    }
    Lanes share = lanes_set(1.0f / lanes_sum(sum));
    for (int i = 0; i < n; i += LANES)
        lanes_give(scores + i, n - i, lanes_times(lanes_take(scores + i, n - i, 0), share));
}
