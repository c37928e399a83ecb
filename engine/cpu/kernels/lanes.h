// Sixteen f32 lanes: one AVX-512 register, two of AVX2, four of NEON, or a vector that the compiler lowers.
// Code written in lanes is compiled once for each kernel set, and the order of every sum is the same in all
// sets.
//
// A sum over k runs in lanes; at its end the lanes are added, halves onto halves. bf16 is read in pairs: of
// 32 neighbours, a shift turns the even ones into f32, a mask the odd ones.
#pragma once
#include "engine/base/numbers.h"

#include <math.h>

enum { LANES = 16, LANE_PAIRS = 2 * LANES };

// For functions that must see their counts as constants.
#define INLINE static inline __attribute__((always_inline))

// The blocks that products and attention keep in registers: OUTPUTS x ROWS sums and OUTPUTS weights.
#if defined(__AVX512F__)
#include <immintrin.h>
enum { BLOCK_OUTPUTS = 4, BLOCK_ROWS = 6, BLOCK_QUERIES = 8 };
typedef __m512 Lanes;

static inline Lanes lanes_set(float x) { return _mm512_set1_ps(x); }
static inline Lanes lanes_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void lanes_store(float *p, Lanes x) { _mm512_storeu_ps(p, x); }
static inline Lanes lanes_mul(Lanes a, Lanes b) { return _mm512_mul_ps(a, b); }
static inline Lanes lanes_fma(Lanes a, Lanes b, Lanes c) { return _mm512_fmadd_ps(a, b, c); }
static inline Lanes lanes_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline Lanes lanes_bf16_even(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16));
}
static inline Lanes lanes_bf16_odd(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(-65536)));
}

static inline float lanes_sum(Lanes x) {
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Four sums at once, each in the order of lanes_sum, with a third of the shuffles.
static inline void lanes_sum_four(Lanes a, Lanes b, Lanes c, Lanes d, float sums[4]) {
    Lanes eight_ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    Lanes eight_cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    Lanes four = _mm512_add_ps(_mm512_shuffle_f32x4(eight_ab, eight_cd, 0x88),
                               _mm512_shuffle_f32x4(eight_ab, eight_cd, 0xdd));
    Lanes two = _mm512_add_ps(four, _mm512_permute_ps(four, 0xee));
    Lanes one = _mm512_add_ps(two, _mm512_movehdup_ps(two));
    _mm_storeu_ps(sums, _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, one)));
}

#if defined(__AVX512BF16__)
// sum + a . b of the two bf16 in each lane, 32 neighbours as they are: without shifts and masks. Subnormals
// are zero.
enum { HAS_PAIRS = 1 };
static inline Lanes lanes_pairs(Lanes a, Lanes b, Lanes sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
#endif

#elif defined(__AVX2__)
#include <immintrin.h>
enum { BLOCK_OUTPUTS = 2, BLOCK_ROWS = 3, BLOCK_QUERIES = 4 };
typedef struct {
    __m256 a, b;
} Lanes;

static inline Lanes lanes_set(float x) { return (Lanes){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
static inline Lanes lanes_load(const float *p) { return (Lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
static inline void lanes_store(float *p, Lanes x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
static inline Lanes lanes_mul(Lanes a, Lanes b) {
    return (Lanes){_mm256_mul_ps(a.a, b.a), _mm256_mul_ps(a.b, b.b)};
}
static inline Lanes lanes_fma(Lanes a, Lanes b, Lanes c) {
    return (Lanes){_mm256_fmadd_ps(a.a, b.a, c.a), _mm256_fmadd_ps(a.b, b.b, c.b)};
}
static inline Lanes lanes_f16(const uint16_t *p) {
    const __m128i *h = (const __m128i *)(const void *)p;
    return (Lanes){_mm256_cvtph_ps(_mm_loadu_si128(h)), _mm256_cvtph_ps(_mm_loadu_si128(h + 1))};
}
static inline __m256 even_of_8(const uint16_t *p) {
    __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}
static inline __m256 odd_of_8(const uint16_t *p) {
    __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(-65536)));
}
static inline Lanes lanes_bf16_even(const uint16_t *p) { return (Lanes){even_of_8(p), even_of_8(p + 16)}; }
static inline Lanes lanes_bf16_odd(const uint16_t *p) { return (Lanes){odd_of_8(p), odd_of_8(p + 16)}; }

static inline float lanes_sum(Lanes x) {
    __m256 eight = _mm256_add_ps(x.a, x.b);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#elif defined(__aarch64__) && !defined(LANES_PLAIN)
#include "engine/cpu/kernels/lanes_neon.h"
#else
#include "engine/cpu/kernels/lanes_plain.h"
#endif

#if !defined(__AVX512F__)
static inline void lanes_sum_four(Lanes a, Lanes b, Lanes c, Lanes d, float sums[4]) {
    sums[0] = lanes_sum(a);
    sums[1] = lanes_sum(b);
    sums[2] = lanes_sum(c);
    sums[3] = lanes_sum(d);
}
#endif

#if !defined(__AVX512BF16__) && !defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
enum { HAS_PAIRS = 0 }; // lanes_pairs is never called
static inline Lanes lanes_pairs(Lanes a, Lanes b, Lanes sum) { return (void)a, (void)b, sum; }
#endif
