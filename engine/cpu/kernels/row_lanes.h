// What rows need of lanes beyond the products' loads, stores and fused sums; part of each kernel set. On
// AVX-512 by hand, else in loops over the sixteen, which must not be unrolled before they can become vectors.
#pragma once
#include "engine/cpu/kernels/lanes.h"

// e^x for x <= 0 and moderate x above: 2^n times a polynomial of degree 6 on [-ln2/2, ln2/2]; off by at most
// 2 units in the last place (tests/engine/cpu/kernels/lanes_test.c). Below -87.3 it is 0. No branch, so that
// it vectorises.
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

// The first n numbers, 0 < n, at most LANES of them; what is not there is `fill`.
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

// fast_exp's polynomial, fused, and 0 where that is; infinity at the other end. What is no number stays so:
// of two operands the second is given then.
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
