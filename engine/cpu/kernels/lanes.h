// Sixteen f32 lanes: one AVX-512 register, two of AVX2, four of NEON, or a vector that the compiler lowers.
// Code written in lanes is compiled once for each kernel set, and the order of every sum is the same in all
// sets.
//
// A sum over k runs in lanes; at its end the lanes are added, halves onto halves. bf16 is read in pairs: of
// 32 neighbours, a shift turns the even ones into f32, a mask the odd ones.
#pragma once
#include "engine/model/tensor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

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
#define LANES_HALVED 1 // a block adds eight lanes at a time
enum { BLOCK_OUTPUTS = 3, BLOCK_ROWS = 4, BLOCK_QUERIES = 4 };
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

#if !defined(LANES_HALVED)
#define LANES_HALVED 0
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

// --- a step of codes (engine/model/tensor.h) as values, for codes.h
//
// Those of 5 and 6 bits are read as bytes from 0 on, so that 6 bits have a low, too: -32 times the scale.
//
// A group's book turns its codes into values. It has the scale and the low in every lane; for groups of 16,
// half a step each, the scales of both halves. With CODE_TABLES it is, for 4 bits, a table of the values in
// f32, or with PAIR_BOOKS in bf16, twice.
typedef struct Book {
    Lanes of, low;
} Book;

// Codes in memory. Of those in two planes it's the lower bits; `upper` is unused by others.
typedef struct CodesAt {
    const unsigned char *codes, *upper;
} CodesAt;
INLINE CodesAt codes_of_row(const unsigned char *row, int columns) {
    return (CodesAt){row, row + columns / 2};
}
INLINE CodesAt codes_after(int bits, CodesAt at, int columns) {
    at.codes += (size_t)columns * (size_t)(codes_planes(bits) ? PLANE_BITS : bits) / 8;
    at.upper += codes_planes(bits) ? (size_t)columns * (size_t)(bits - PLANE_BITS) / 8 : 0;
    return at;
}

// To bf16: 65535 x, rounded to f32, is 65536 x less the rounded x. It needs 0 or 2^-126 <= |x| < 2^111, as
// tensor.h promises. A zero loses its sign, which no sum shows: sums begin with +0.
static inline Lanes lanes_bf16_round(Lanes x) {
    return lanes_fma(x, lanes_set(65536), lanes_mul(x, lanes_set(-65535)));
}

// How far to the right a word's bits in the upper plane go, to be above the lower ones; all such bits.
INLINE int upper_shift(int bits, int word) {
    return word / (bits - PLANE_BITS) * (bits - PLANE_BITS) - PLANE_BITS;
}
INLINE char upper_mask(int bits) { return bits == 5 ? 0x10 : 0x30; }

#if defined(__AVX2__)
// The bytes of a block's codes in two planes, in order. A shuffle finds what a half of a byte of the upper
// plane, less the bits of other words, adds to the lower bits: shifts by lanes take a Zen 1 half as long
// again.
typedef struct PlaneCodes {
    __m128i first, last;
} PlaneCodes;
INLINE PlaneCodes plane_codes(int bits, CodesAt at) {
    const __m128i own = bits == 5 ? _mm_setr_epi32(0x01010101, 0x02020202, 0x04040404, 0x08080808)
                                  : _mm_setr_epi32(0x03030303, 0x03030303, 0x0c0c0c0c, 0x0c0c0c0c);
    const __m128i adds = bits == 5 ? _mm_setr_epi8(0, 16, 16, 0, 16, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0)
                                   : _mm_setr_epi8(0, 16, 32, 48, 16, 0, 0, 0, 32, 0, 0, 0, 48, 0, 0, 0);
    const __m128i half = _mm_set1_epi8(15);
    int64_t word = 0;
    memcpy(&word, at.upper, bits == 5 ? 4 : 8);
    __m128i upper = bits == 5 ? _mm_set1_epi32((int32_t)word) : _mm_set1_epi64x(word);
    __m128i lower = _mm_loadu_si128((const __m128i *)(const void *)at.codes);
    __m128i first = _mm_shuffle_epi8(adds, _mm_and_si128(upper, own));
    __m128i last = _mm_shuffle_epi8(adds, _mm_and_si128(_mm_srli_epi16(upper, 4), own));
    return (PlaneCodes){_mm_or_si128(first, _mm_and_si128(lower, half)),
                        _mm_or_si128(last, _mm_and_si128(_mm_srli_epi16(lower, 4), half))};
}
#endif

#if defined(__AVX512F__)
enum { CODE_TABLES = 1 };
static inline Lanes lanes_halves(float a, float b) {
    return _mm512_insertf32x8(_mm512_set1_ps(a), _mm256_set1_ps(b), 1);
}

static inline __m512 digits_of(__m512i x, int mask, int magic) { // (x & mask) ^ magic
    __m512i bits = _mm512_ternarylogic_epi32(x, _mm512_set1_epi32(mask), _mm512_set1_epi32(magic), 0x6a);
    return _mm512_castsi512_ps(bits);
}

typedef __m512i CodeStep;
INLINE CodeStep load_codes(int bits, CodesAt at) {
    if (codes_planes(bits)) {
        PlaneCodes all = plane_codes(bits, at);
        return _mm512_cvtepu16_epi32(_mm256_inserti128_si256(_mm256_castsi128_si256(all.first), all.last, 1));
    }
    if (bits == 4) return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at.codes));
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at.codes));
}
// Even codes of 8 bits become the low digits of 2^23 + 128; odd ones those of 2^15 + 128, whose product with
// a scale is exact.
INLINE Lanes decode_half(int bits, CodeStep codes, Book book, int half) {
    if (bits == 4) return _mm512_permutexvar_ps(half ? _mm512_srli_epi32(codes, 4) : codes, book.of);
    if (codes_planes(bits)) {
        codes = half ? _mm512_srli_epi32(codes, 8) : _mm512_and_si512(codes, _mm512_set1_epi32(255));
        return lanes_bf16_round(lanes_fma(_mm512_cvtepi32_ps(codes), book.of, book.low));
    }
    if (half) return lanes_bf16_round(lanes_fma(digits_of(codes, 0xff00, 0x47008000), book.of, book.low));
    __m512 code = _mm512_sub_ps(digits_of(codes, 0xff, 0x4b000080), _mm512_set1_ps(0x1p23f + 128));
    return lanes_bf16_round(lanes_mul(code, book.of));
}
INLINE CodeStep odd_codes(CodeStep codes) { return _mm512_srli_epi32(codes, 8); }
static inline Lanes lanes_join(Lanes even, Lanes odd) {
    return _mm512_castsi512_ps(
        _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even), 16), _mm512_castps_si512(odd)));
}

#if defined(__AVX512BF16__)
// The values as 32 neighbours in bf16. Indexes into a table have five bits, and the fifth is the next code's.
enum { PAIR_BOOKS = 1 };
INLINE Lanes pair_table(Lanes values) {
    __m256i half = (__m256i)_mm512_cvtneps_pbh(values);
    return _mm512_castsi512_ps(_mm512_inserti64x4(_mm512_castsi256_si512(half), half, 1));
}
INLINE Lanes decode_pairs(int bits, CodesAt codes, Book book) {
    const __m128i *at = (const __m128i *)(const void *)codes.codes;
    if (bits == 4) {
        __m512i i = _mm512_cvtepu8_epi32(_mm_loadu_si128(at));
        i = _mm512_or_si512(i, _mm512_slli_epi32(i, 12));
        return _mm512_castsi512_ps(_mm512_permutexvar_epi16(i, _mm512_castps_si512(book.of)));
    }
    if (codes_planes(bits)) {
        PlaneCodes all = plane_codes(bits, codes);
        __m512 first = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(all.first));
        __m512 last = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(all.last));
        __m512bh values =
            _mm512_cvtne2ps_pbh(lanes_fma(last, book.of, book.low), lanes_fma(first, book.of, book.low));
        return _mm512_castsi512_ps((__m512i)values);
    }
    __m512 a = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at)));
    __m512 b = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at + 1)));
    __m512bh both = _mm512_cvtne2ps_pbh(_mm512_mul_ps(b, book.of), _mm512_mul_ps(a, book.of));
    return _mm512_castsi512_ps((__m512i)both);
}
#endif

#elif defined(__AVX2__)
enum { CODE_TABLES = 0 };
static inline Lanes lanes_halves(float a, float b) { return (Lanes){_mm256_set1_ps(a), _mm256_set1_ps(b)}; }
typedef struct CodeStep {
    __m256i a, b;
} CodeStep;
INLINE CodeStep load_codes(int bits, CodesAt codes) {
    const __m128i *at = (const __m128i *)(const void *)codes.codes;
    if (codes_planes(bits)) {
        PlaneCodes all = plane_codes(bits, codes);
        return (CodeStep){_mm256_cvtepu16_epi32(all.first), _mm256_cvtepu16_epi32(all.last)};
    }
    if (bits == 4)
        return (CodeStep){
            _mm256_cvtepu8_epi32(_mm_loadl_epi64(at)),
            _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(codes.codes + 8)))};
    return (CodeStep){_mm256_cvtepi16_epi32(_mm_loadu_si128(at)),
                      _mm256_cvtepi16_epi32(_mm_loadu_si128(at + 1))};
}
INLINE Lanes decode_half(int bits, CodeStep c, Book book, int half) {
    if (bits != 8) { // of 4 a table of sixteen would take two look-ups and a blend for eight values
        __m256i low = _mm256_set1_epi32(bits == 4 ? 15 : 255);
        int next = bits == 4 ? 4 : 8;
        c = half ? (CodeStep){_mm256_srli_epi32(c.a, next), _mm256_srli_epi32(c.b, next)}
                 : (CodeStep){_mm256_and_si256(c.a, low), _mm256_and_si256(c.b, low)};
        Lanes code = {_mm256_cvtepi32_ps(c.a), _mm256_cvtepi32_ps(c.b)};
        return lanes_bf16_round(lanes_fma(code, book.of, book.low));
    }
    if (!half) c = (CodeStep){_mm256_slli_epi32(c.a, 24), _mm256_slli_epi32(c.b, 24)};
    int shift = half ? 8 : 24;
    c = (CodeStep){_mm256_srai_epi32(c.a, shift), _mm256_srai_epi32(c.b, shift)};
    return lanes_bf16_round(lanes_mul((Lanes){_mm256_cvtepi32_ps(c.a), _mm256_cvtepi32_ps(c.b)}, book.of));
}
INLINE CodeStep odd_codes(CodeStep c) {
    return (CodeStep){_mm256_srli_epi32(c.a, 8), _mm256_srli_epi32(c.b, 8)};
}
static inline __m256 join_8(__m256 even, __m256 odd) {
    return _mm256_castsi256_ps(
        _mm256_or_si256(_mm256_srli_epi32(_mm256_castps_si256(even), 16), _mm256_castps_si256(odd)));
}
static inline Lanes lanes_join(Lanes even, Lanes odd) {
    return (Lanes){join_8(even.a, odd.a), join_8(even.b, odd.b)};
}

#else
// In C that compilers lower to vectors.
enum { CODE_TABLES = 1 };
static inline Lanes lanes_halves(float a, float b) {
    float x[LANES];
    for (int i = 0; i < LANES; i++) x[i] = i < LANES / 2 ? a : b;
    return lanes_load(x);
}
typedef CodesAt CodeStep;
INLINE CodeStep load_codes(int bits, CodesAt at) { return (void)bits, at; }
INLINE void plane_codes(int bits, CodesAt at, unsigned char out[PLANE_BLOCK]) {
    int upper = bits == 5 ? 1 : 2, mask = bits == 5 ? 1 : 3;
    for (int v = 0; v < PLANE_BLOCK / 4; v++)
        for (int i = 0; i < 4; i++) {
            int high = at.upper[v % upper * 4 + i] >> v / upper * upper & mask;
            int low = at.codes[v % 4 * 4 + i] >> v / 4 * 4 & 15;
            out[4 * v + i] = (unsigned char)(low | high << PLANE_BITS);
        }
}
INLINE Lanes decode_half(int bits, CodeStep c, Book book, int half) {
    unsigned char all[PLANE_BLOCK];
    float of[LANES], x[LANES];
    lanes_store(of, book.of);
    if (codes_planes(bits)) {
        plane_codes(bits, c, all);
        for (int i = 0; i < LANES; i++) x[i] = (float)all[2 * i + half];
        return lanes_bf16_round(lanes_fma(lanes_load(x), book.of, book.low));
    }
    for (int i = 0; i < LANES; i++)
        x[i] = bits == 4 ? of[c.codes[i] >> 4 * half & 15] : (float)(int8_t)c.codes[2 * i + half] * of[i];
    return bits == 4 ? lanes_load(x) : lanes_bf16_round(lanes_load(x));
}
INLINE CodeStep odd_codes(CodeStep c) { return (CodeStep){c.codes + 1, NULL}; }
static inline Lanes lanes_join(Lanes even, Lanes odd) {
    uint32_t a[LANES], b[LANES];
    memcpy(a, &even, sizeof a);
    memcpy(b, &odd, sizeof b);
    for (int i = 0; i < LANES; i++) a[i] = a[i] >> 16 | b[i];
    memcpy(&even, a, sizeof a);
    return even;
}
#endif

#if !defined(__AVX512BF16__)
// A step's values as 32 neighbours in bf16.
enum { PAIR_BOOKS = 0 };
INLINE Lanes pair_table(Lanes values) { return values; }
INLINE Lanes decode_pairs(int bits, CodesAt codes, Book book) {
    CodeStep step = load_codes(bits, codes);
    return lanes_join(decode_half(bits, step, book, 0), decode_half(bits, step, book, 1));
}
#endif

// `middle`: values are (code - 8) * scale, exactly, and the table is rounded in the same two instructions.
INLINE Book book_of(int bits, bool middle, float scale, float low) {
    static const float numbers[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Lanes all = lanes_set(scale), codes = lanes_load(numbers);
    if (bits != 4 || !CODE_TABLES) return (Book){all, lanes_set(low)};
    if (PAIR_BOOKS) return (Book){.of = pair_table(lanes_fma(codes, all, lanes_set(low)))};
    if (!middle) return (Book){.of = lanes_bf16_round(lanes_fma(codes, all, lanes_set(low)))};
    Lanes up = lanes_fma(codes, lanes_set(65536), lanes_set(-8 * 65536));
    Lanes down = lanes_fma(codes, lanes_set(-65535), lanes_set(8 * 65535));
    return (Book){.of = lanes_fma(up, all, lanes_mul(down, all))};
}

// Groups of 16, two a step. Their scales may be too long for an exact product with CODE_BASE.
INLINE Book split_book(const float *scale, const float *low) {
    return (Book){lanes_halves(scale[0], scale[1]), lanes_halves(low[0], low[1])};
}
INLINE Lanes decode_split(int bits, CodeStep codes, Book book, int half) {
    if (bits != 8) return decode_half(bits, codes, book, half);
    return decode_half(8, half ? odd_codes(codes) : codes, book, 0);
}
