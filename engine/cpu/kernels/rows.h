// Operations on one row at a time: norm, rotation, gate, softmax; part of each kernel set (see lanes.h).
// Plain loops if the compiler vectorises them, lanes by hand if it doesn't. Sums run in lanes.
#pragma once
#include "engine/cpu/kernels/lanes.h"
#include "engine/cpu/kernels/ops.h"

// --- lanes beyond the loads, stores and fused sums of products. By hand on AVX-512; otherwise loops over the
// sixteen, which must not be unrolled before they become vectors

// e^x for x up to 88: 2^n times a polynomial of degree 6 on [-ln2/2, ln2/2], at most 2 units in the last
// place off (tests/engine/cpu/kernels/lanes_test.c). Below -87.3 it's 0. Without branches, so that it
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

#if defined(__AVX512F__)
static inline __mmask16 first_lanes(int n) { return (__mmask16)((1u << n) - 1); }

// The first n > 0 numbers, at most LANES; the other lanes are `fill`.
static inline Lanes lanes_take(const float *from, int n, float fill) {
    return n >= LANES ? _mm512_loadu_ps(from)
                      : _mm512_mask_loadu_ps(_mm512_set1_ps(fill), first_lanes(n), from);
}
static inline void lanes_give(float *to, int n, Lanes x) {
    if (n >= LANES) _mm512_storeu_ps(to, x);
    else _mm512_mask_storeu_ps(to, first_lanes(n), x);
}
static inline Lanes lanes_max(Lanes a, Lanes b) { return _mm512_max_ps(a, b); }
static inline float lanes_highest(Lanes x) { return _mm512_reduce_max_ps(x); }
static inline Lanes lanes_inverse(Lanes x) { return _mm512_div_ps(_mm512_set1_ps(1), x); }

// fast_exp's polynomial, fused, 0 for the same x, and infinity at the other end. NaN stays NaN: min returns
// its second operand then.
static inline Lanes lanes_exp(Lanes x) {
    __mmask16 some = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.3f), _CMP_NLT_UQ);
    x = _mm512_min_ps(_mm512_set1_ps(89.0f), x);
    Lanes n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
    Lanes r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), r);
    Lanes p = _mm512_set1_ps(1.9875691500e-4f);
    p = lanes_fma(p, r, _mm512_set1_ps(1.3981999507e-3f));
    p = lanes_fma(p, r, _mm512_set1_ps(8.3334519073e-3f));
    p = lanes_fma(p, r, _mm512_set1_ps(4.1665795894e-2f));
    p = lanes_fma(p, r, _mm512_set1_ps(1.6666665459e-1f));
    p = lanes_fma(p, r, _mm512_set1_ps(5.0000001201e-1f));
    p = _mm512_add_ps(lanes_fma(p, _mm512_mul_ps(r, r), r), _mm512_set1_ps(1));
    return _mm512_maskz_scalef_ps(some, p, n);
}

#else
static inline Lanes lanes_take(const float *from, int n, float fill) {
    float x[LANES];
    if (n >= LANES) return lanes_load(from);
#pragma GCC unroll 1
    for (int i = 0; i < LANES; i++) x[i] = i < n ? from[i] : fill;
    return lanes_load(x);
}
static inline void lanes_give(float *to, int n, Lanes x) {
    float whole[LANES];
    lanes_store(n >= LANES ? to : whole, x);
    if (n < LANES) memcpy(to, whole, (size_t)n * sizeof *to);
}
static inline Lanes lanes_max(Lanes a, Lanes b) {
    float x[LANES], y[LANES];
    lanes_store(x, a);
    lanes_store(y, b);
#pragma GCC unroll 1
    for (int i = 0; i < LANES; i++) x[i] = x[i] > y[i] ? x[i] : y[i];
    return lanes_load(x);
}
static inline float lanes_highest(Lanes a) {
    float x[LANES], highest = -INFINITY;
    lanes_store(x, a);
    for (int i = 0; i < LANES; i++) highest = x[i] > highest ? x[i] : highest;
    return highest;
}
static inline Lanes lanes_inverse(Lanes a) {
    float x[LANES];
    lanes_store(x, a);
#pragma GCC unroll 1
    for (int i = 0; i < LANES; i++) x[i] = 1.0f / x[i];
    return lanes_load(x);
}
static inline Lanes lanes_exp(Lanes a) {
    float x[LANES];
    lanes_store(x, a);
#pragma GCC unroll 1
    for (int i = 0; i < LANES; i++) x[i] = fast_exp(x[i]);
    return lanes_load(x);
}
#endif

static inline Lanes lanes_times(Lanes a, Lanes b) { return lanes_fma(a, b, lanes_set(0)); }
static inline Lanes lanes_plus(Lanes a, Lanes b) { return lanes_fma(a, lanes_set(1), b); }

static inline Lanes sigmoid(Lanes x) {
    return lanes_inverse(lanes_plus(lanes_exp(lanes_times(x, lanes_set(-1))), lanes_set(1)));
}

static inline float highest_of(const float *x, int n) {
    Lanes highest = lanes_set(-INFINITY);
    for (int i = 0; i < n; i += LANES) highest = lanes_max(highest, lanes_take(x + i, n - i, -INFINITY));
    return lanes_highest(highest);
}

// --- rows

// Sixteen partial sums, added like lanes.
typedef struct Partial {
    float lane[LANES];
} Partial;

static inline float partial_sum(const Partial *p) { return lanes_sum(lanes_load(p->lane)); }

// By the exponential of the magnitude, with the sign restored: exact at both ends.
static inline float fast_tanh(float x) {
    float e = fast_exp(-2.0f * fabsf(x));
    return copysignf((1.0f - e) / (1.0f + e), x);
}

static inline float fast_gelu_tanh(float x) {
    return 0.5f * x * (1.0f + fast_tanh(0.79788456f * (x + 0.044715f * x * x * x)));
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

// Squares are summed after the mean is known: no digits cancel.
static inline void layernorm(const float *x, const Tensor *weight, const Tensor *bias, float epsilon, int n,
                             float *y) {
    Partial sum = {{0}}, squares = {{0}};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) sum.lane[j] += x[i + j];
    for (; i < n; i++) sum.lane[i % LANES] += x[i];
    float mean = partial_sum(&sum) / (float)n;
    for (i = 0; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) squares.lane[j] += (x[i + j] - mean) * (x[i + j] - mean);
    for (; i < n; i++) squares.lane[i % LANES] += (x[i] - mean) * (x[i] - mean);
    float scale = 1.0f / sqrtf(partial_sum(&squares) / (float)n + epsilon);
    for (i = 0; i < n; i++) {
        float b = bias->data ? dtype_load(bias->dtype, bias->data, (size_t)i) : 0;
        y[i] = (x[i] - mean) * scale * dtype_load(weight->dtype, weight->data, (size_t)i) + b;
    }
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
    switch (activation) {
    case ACTIVATION_SILU: gate_silu(gate, up, n); break;
    case ACTIVATION_GELU_TANH:
        for (int i = 0; i < n; i++) gate[i] = fast_gelu_tanh(gate[i]) * up[i];
        break;
    case ACTIVATION_GELU:
        for (int i = 0; i < n; i++) gate[i] = 0.5f * gate[i] * (1.0f + erff(gate[i] * 0.70710678f)) * up[i];
        break;
    case ACTIVATION_RELU2:
        for (int i = 0; i < n; i++) gate[i] = gate[i] > 0 ? gate[i] * gate[i] * up[i] : 0;
        break;
    }
}

// Turns scores, times `scale`, into weights that sum to one. Lane i has positions i, i + LANES, ... counted
// from the first visible one, which depends only on the query's position.
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

static inline float exp_sum(const float *x, int n, float *highest) {
    *highest = highest_of(x, n);
    if (*highest == -INFINITY) return 0;
    const Lanes one = lanes_set(1), down = lanes_set(-*highest);
    Lanes sum = lanes_set(0);
    for (int i = 0; i < n; i += LANES)
        sum = lanes_plus(sum, lanes_exp(lanes_fma(lanes_take(x + i, n - i, -INFINITY), one, down)));
    return lanes_sum(sum);
}
