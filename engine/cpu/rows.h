// What happens to one row at a time: norm, rotation, gate, softmax; part of each kernel set (see lanes.h).
// Plain loops that the compiler turns into vectors. Sums go in lanes; nothing here is fused, so all sets
// agree.
#pragma once
#include "engine/cpu/lanes.h"
#include "engine/cpu/ops.h"

// Sixteen partial sums, added like lanes.
typedef struct Partial {
    float lane[LANES];
} Partial;

static inline float partial_sum(const Partial *p) { return lanes_sum(lanes_load(p->lane)); }

// e^x for x <= 0 and moderate x above: 2^n times a polynomial of degree 6 on [-ln2/2, ln2/2]; off by at most
// 2 units in the last place (tests/engine/cpu/lanes_test.c). Below -87.3 it is 0. No branch, so that it
// vectorises.
static inline float fast_exp(float x) {
    float clamped = x < -87.3f ? -87.3f : x > 88.0f ? 88.0f : x;
    float n = clamped * 1.44269504f;
    n = (n + 12582912.0f) - 12582912.0f; // to the nearest integer
    float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    uint32_t bits = (uint32_t)((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return x < -87.3f ? 0.0f : p * power;
}

static inline float fast_silu(float x) { return x / (1.0f + fast_exp(-x)); }

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

static inline void gate(float *gate, const float *up, int n, Activation activation) {
    if (activation == ACTIVATION_SILU)
        for (int i = 0; i < n; i++) gate[i] = fast_silu(gate[i]) * up[i];
    else
        for (int i = 0; i < n; i++) gate[i] = fast_gelu_tanh(gate[i]) * up[i];
}

// Scores become weights that sum to one. Lane i holds positions i, i + LANES, ... counted from the first
// visible one, which is a function of the query's position alone.
static inline void softmax(float *scores, int n) {
    float highest = -INFINITY;
    Partial sum = {{0}};
    int i = 0;
    for (i = 0; i < n; i++) highest = scores[i] > highest ? scores[i] : highest;
    for (i = 0; i < n; i++) scores[i] = fast_exp(scores[i] - highest);
    for (i = 0; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) sum.lane[j] += scores[i + j];
    for (; i < n; i++) sum.lane[i % LANES] += scores[i];
    float scale = 1.0f / partial_sum(&sum);
    for (i = 0; i < n; i++) scores[i] *= scale;
}
