// 1 / sum of exp(x - largest). Loops that a compiler turns into vectors of any width: the terms of a block,
// then LANES sums of floats, taken over into doubles before they grow inexact.
#include "engine/core/chance.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16, BLOCK = 32 * LANES };

static inline __attribute__((always_inline)) int32_t bits_of(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline __attribute__((always_inline)) float float_of(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// exp for x <= 0: 2 to the nearest whole number of x / ln 2 through the exponent's bits, times a polynomial
// (Taylor's of 2^f, f in [-1/2, 1/2], within 2e-7). What is below -80 counts as that: nothing beside the
// largest, which is 1. It is compared by its bits, since a loop that compares floats is not made a vector's.
static inline __attribute__((always_inline)) float exp_below(float x) {
    const int32_t magnitude = 0x7FFFFFFF, most = 0x42A00000; // 80
    int32_t size = bits_of(x) & magnitude;
    float t = float_of(size < most ? size : most) * -1.44269504f;
    int32_t n = (int32_t)(t - 0.5f);
    float f = t - (float)n, p = 1.54035304e-4f;
    p = p * f + 1.33335581e-3f;
    p = p * f + 9.61812911e-3f;
    p = p * f + 5.55041087e-2f;
    p = p * f + 2.40226507e-1f;
    p = p * f + 6.93147181e-1f;
    p = p * f + 1.0f;
    return float_of(bits_of(p) + n * (1 << 23));
}

static inline __attribute__((always_inline)) double sum_block(const float *x, int n, float largest) {
    float terms[BLOCK], lanes[LANES] = {0};
    double sum = 0;
    for (int i = 0; i < n; i++) terms[i] = exp_below(x[i] - largest);
    for (int i = n; i < BLOCK; i++) terms[i] = 0;
    for (int i = 0; i < BLOCK; i += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] += terms[i + k];
    for (int k = 0; k < LANES; k++) sum += (double)lanes[k];
    return sum;
}

// The same source for wider vectors: the same operations in the same order, so the same bits.
typedef double Sum(const float *x, int n, float largest);

static double sum_plain(const float *x, int n, float largest) { return sum_block(x, n, largest); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) static double sum_avx2(const float *x, int n, float largest) {
    return sum_block(x, n, largest);
}

__attribute__((target("avx512f"))) static double sum_avx512(const float *x, int n, float largest) {
    return sum_block(x, n, largest);
}

static Sum *widest_sum(void) {
    if (__builtin_cpu_supports("avx512f")) return sum_avx512;
    return __builtin_cpu_supports("avx2") ? sum_avx2 : sum_plain;
}
#else
static Sum *widest_sum(void) { return sum_plain; }
#endif

double top_chance(const float *logits, int n, float largest) {
    Sum *sum_of = widest_sum();
    double sum = 0;
    for (int i = 0; i < n; i += BLOCK) sum += sum_of(logits + i, n - i < BLOCK ? n - i : BLOCK, largest);
    return 1 / sum;
}
