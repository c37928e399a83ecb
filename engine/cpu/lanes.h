// Sums over LANES partial sums, in C: element i goes to lane i mod LANES, and the lanes are added in one
// fixed tree. The order is a function of the length alone, and a compiler turns the loops into vectors of any
// width without changing it.
#pragma once
#include "engine/base/numbers.h"

#include <math.h>

enum { LANES = 16 };

// Adds the lanes: halves onto halves.
static inline float lanes_sum(const float *lane) {
    float s[LANES / 2];
    for (int i = 0; i < LANES / 2; i++) s[i] = lane[i] + lane[i + LANES / 2];
    for (int half = LANES / 4; half > 0; half /= 2)
        for (int i = 0; i < half; i++) s[i] += s[i + half];
    return s[0];
}

// e^x for x <= 0 and moderate x above: 2^n times a polynomial of degree 6 on [-ln2/2, ln2/2]; off by at most
// 2 units in the last place (tests/engine/cpu/lanes_test.c). Below -87.3 it is 0. No branch, so that it
// vectorises.
static inline float lanes_exp(float x) {
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
    int32_t exponent = (int32_t)n + 127;
    uint32_t bits = (uint32_t)exponent << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return x < -87.3f ? 0.0f : p * power;
}

static inline float lanes_silu(float x) { return x / (1.0f + lanes_exp(-x)); }

// tanh through the exponential, with the sign put back: both ends are exact.
static inline float lanes_gelu_tanh(float x) {
    float t = 0.79788456f * (x + 0.044715f * x * x * x), e = lanes_exp(-2.0f * fabsf(t));
    float tanh_t = copysignf((1.0f - e) / (1.0f + e), t);
    return 0.5f * x * (1.0f + tanh_t);
}
