// Codes times activations of 8 bits, for products_int8.h: a step of four blocks is PIECES registers of f32
// lanes, each of whole blocks. Part of each kernel set, as lanes.h is.
//
// Of each block, codes of 4 bits are read as the 16 even columns and the 16 odd ones, codes of 8 bits as the
// first 16 and the last 16: `half` 0 and 1. Activations are packed in the same order.
#pragma once
#include "engine/cpu/kernels/int8.h"
#include "engine/cpu/kernels/lanes.h"

enum { INT8_HALF = INT8_STEP / 2 }; // bytes of one half of all blocks of a step

#if defined(__AVX512F__)
enum { PIECES = 1, INT8_ROWS = 12 };
typedef __m512 Piece;
static inline Piece piece_zero(void) { return _mm512_setzero_ps(); }
static inline Piece piece_load(const float *p, int piece) { return (void)piece, _mm512_loadu_ps(p); }
static inline Piece piece_mul(Piece a, Piece b) { return _mm512_mul_ps(a, b); }
static inline Piece piece_fma(Piece a, Piece b, Piece c) { return _mm512_fmadd_ps(a, b, c); }
static inline Piece piece_spread(const float *blocks, int piece) { // each in four lanes
    (void)piece;
    const __m512i which = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    return _mm512_permutevar_ps(_mm512_broadcast_f32x4(_mm_loadu_ps(blocks)), which);
}

INLINE __m512i piece_half(int bits, const unsigned char *codes, int half) {
    __m512i a = _mm512_loadu_si512(codes);
    if (bits == 4) return _mm512_and_si512(half ? _mm512_srli_epi16(a, 4) : a, _mm512_set1_epi8(15));
    __m512i b = _mm512_loadu_si512(codes + 64);
    return half ? _mm512_shuffle_i64x2(a, b, 0xdd) : _mm512_shuffle_i64x2(a, b, 0x88);
}

#if defined(__AVX512VNNI__)
// The instruction multiplies unsigned bytes by signed ones: codes of 4 bits by activations; activations +
// 128 by codes of 8 bits, less the product of 128.
enum { INT8_OFFSET = 128 };
typedef struct PieceCodes {
    __m512i half[2], start[2], both;
} PieceCodes;
INLINE PieceCodes piece_codes(int bits, const unsigned char *codes, int piece) {
    (void)piece;
    PieceCodes w = {.half = {piece_half(bits, codes, 0), piece_half(bits, codes, 1)}};
    __m512i zero = _mm512_setzero_si512(), offset = _mm512_set1_epi8((char)INT8_OFFSET);
    for (int i = 0; bits == 8 && i < 2; i++)
        w.start[i] = _mm512_sub_epi32(zero, _mm512_dpbusd_epi32(zero, offset, w.half[i]));
    w.both = bits == 8 ? _mm512_add_epi32(w.start[0], w.start[1]) : zero;
    return w;
}
INLINE __m512i add_bytes(int bits, __m512i sum, __m512i w, const unsigned char *x) {
    __m512i in = _mm512_loadu_si512(x);
    return bits == 4 ? _mm512_dpbusd_epi32(sum, w, in) : _mm512_dpbusd_epi32(sum, in, w);
}
INLINE Piece piece_dot(int bits, const PieceCodes *w, const unsigned char *x, int piece) {
    (void)piece;
    __m512i sum = add_bytes(bits, w->both, w->half[0], x);
    return _mm512_cvtepi32_ps(add_bytes(bits, sum, w->half[1], x + INT8_HALF));
}
INLINE Piece piece_dot_half(const PieceCodes *w, const unsigned char *x, int piece, int half) {
    (void)piece;
    return _mm512_cvtepi32_ps(add_bytes(8, w->start[half], w->half[half], x + half * INT8_HALF));
}
#else
// 8 bits: the sizes of codes, unsigned, by activations with the codes' signs.
enum { INT8_OFFSET = 0 };
typedef struct PieceCodes {
    __m512i half[2];
    __mmask64 minus[2];
} PieceCodes;
INLINE PieceCodes piece_codes(int bits, const unsigned char *codes, int piece) {
    (void)piece;
    PieceCodes w = {.half = {piece_half(bits, codes, 0), piece_half(bits, codes, 1)}};
    for (int i = 0; bits == 8 && i < 2; i++) {
        w.minus[i] = _mm512_movepi8_mask(w.half[i]);
        w.half[i] = _mm512_abs_epi8(w.half[i]);
    }
    return w;
}
INLINE __m512i pairs_of(int bits, const PieceCodes *w, const unsigned char *x, int half) {
    __m512i in = _mm512_loadu_si512(x + half * INT8_HALF);
    if (bits == 8) in = _mm512_mask_sub_epi8(in, w->minus[half], _mm512_setzero_si512(), in);
    return _mm512_maddubs_epi16(w->half[half], in);
}
INLINE Piece piece_dot(int bits, const PieceCodes *w, const unsigned char *x, int piece) {
    (void)piece;
    __m512i a = pairs_of(bits, w, x, 0), b = pairs_of(bits, w, x, 1), ones = _mm512_set1_epi16(1);
    if (bits == 4) return _mm512_cvtepi32_ps(_mm512_madd_epi16(_mm512_add_epi16(a, b), ones));
    return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_madd_epi16(a, ones), _mm512_madd_epi16(b, ones)));
}
INLINE Piece piece_dot_half(const PieceCodes *w, const unsigned char *x, int piece, int half) {
    (void)piece;
    return _mm512_cvtepi32_ps(_mm512_madd_epi16(pairs_of(8, w, x, half), _mm512_set1_epi16(1)));
}
#endif

#elif defined(__AVX2__)
enum { PIECES = 2, INT8_ROWS = 8, INT8_OFFSET = 0 };
typedef __m256 Piece;
static inline Piece piece_zero(void) { return _mm256_setzero_ps(); }
static inline Piece piece_load(const float *p, int piece) { return _mm256_loadu_ps(p + piece * 8); }
static inline Piece piece_mul(Piece a, Piece b) { return _mm256_mul_ps(a, b); }
static inline Piece piece_fma(Piece a, Piece b, Piece c) { return _mm256_fmadd_ps(a, b, c); }
static inline Piece piece_spread(const float *blocks, int piece) {
    Piece four = _mm256_broadcast_ps((const __m128 *)(const void *)blocks);
    return piece ? _mm256_permutevar_ps(four, _mm256_set_epi32(3, 3, 3, 3, 2, 2, 2, 2))
                 : _mm256_permutevar_ps(four, _mm256_set_epi32(1, 1, 1, 1, 0, 0, 0, 0));
}

typedef struct PieceCodes {
    __m256i half[2];
} PieceCodes;
INLINE PieceCodes piece_codes(int bits, const unsigned char *codes, int piece) {
    const __m256i *at = (const __m256i *)(const void *)codes + piece * bits / 4;
    __m256i a = _mm256_loadu_si256(at), low = _mm256_set1_epi8(15);
    if (bits == 4)
        return (PieceCodes){{_mm256_and_si256(a, low), _mm256_and_si256(_mm256_srli_epi16(a, 4), low)}};
    __m256i b = _mm256_loadu_si256(at + 1);
    return (PieceCodes){{_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31)}};
}
// 8 bits: the sizes of codes, unsigned, by activations with the codes' signs.
INLINE __m256i pairs_of(int bits, const PieceCodes *w, const unsigned char *x, int piece, int half) {
    __m256i in = _mm256_loadu_si256((const __m256i *)(const void *)(x + half * INT8_HALF + piece * 32));
    if (bits == 4) return _mm256_maddubs_epi16(w->half[half], in);
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w->half[half]), _mm256_sign_epi8(in, w->half[half]));
}
INLINE Piece piece_dot(int bits, const PieceCodes *w, const unsigned char *x, int piece) {
    __m256i a = pairs_of(bits, w, x, piece, 0), b = pairs_of(bits, w, x, piece, 1),
            one = _mm256_set1_epi16(1);
    if (bits == 4) return _mm256_cvtepi32_ps(_mm256_madd_epi16(_mm256_add_epi16(a, b), one));
    return _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(a, one), _mm256_madd_epi16(b, one)));
}
INLINE Piece piece_dot_half(const PieceCodes *w, const unsigned char *x, int piece, int half) {
    return _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs_of(8, w, x, piece, half), _mm256_set1_epi16(1)));
}

#else
// A piece is a block. In C, or on NEON.
enum { PIECES = INT8_BLOCKS, INT8_ROWS = 8, INT8_OFFSET = 0 };
typedef struct PieceCodes {
    int8_t half[2][INT8_BLOCK / 2];
} PieceCodes;
INLINE PieceCodes piece_codes(int bits, const unsigned char *codes, int piece) {
    PieceCodes w;
    codes += piece * INT8_BLOCK * bits / 8;
    if (bits == 8) memcpy(&w, codes, sizeof w);
    for (int i = 0; bits == 4 && i < INT8_BLOCK / 2; i++) {
        w.half[0][i] = codes[i] & 15;
        w.half[1][i] = (int8_t)(codes[i] >> 4);
    }
    return w;
}
#if defined(__aarch64__) && !defined(LANES_PLAIN)
typedef float32x4_t Piece;
static inline Piece piece_zero(void) { return vdupq_n_f32(0); }
static inline Piece piece_load(const float *p, int piece) { return vld1q_f32(p + piece * 4); }
static inline Piece piece_mul(Piece a, Piece b) { return vmulq_f32(a, b); }
static inline Piece piece_fma(Piece a, Piece b, Piece c) { return vfmaq_f32(c, a, b); }
static inline Piece piece_spread(const float *blocks, int piece) { return vdupq_n_f32(blocks[piece]); }
INLINE int32x4_t half_dot(const PieceCodes *w, const unsigned char *x, int piece, int half) {
    int8x16_t a = vld1q_s8(w->half[half]);
    int8x16_t b = vld1q_s8((const int8_t *)(const void *)(x + half * INT8_HALF + piece * INT8_BLOCK / 2));
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(vdupq_n_s32(0), a, b);
#else
    int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b)), high = vmull_high_s8(a, b);
    return vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
#endif
}
INLINE Piece piece_dot(int bits, const PieceCodes *w, const unsigned char *x, int piece) {
    (void)bits;
    return vcvtq_f32_s32(vaddq_s32(half_dot(w, x, piece, 0), half_dot(w, x, piece, 1)));
}
INLINE Piece piece_dot_half(const PieceCodes *w, const unsigned char *x, int piece, int half) {
    return vcvtq_f32_s32(half_dot(w, x, piece, half));
}
#else
typedef Quarter Piece;
static inline Piece piece_zero(void) { return (Piece){0}; }
static inline Piece piece_load(const float *p, int piece) {
    Piece x;
    memcpy(&x, p + piece * 4, sizeof x);
    return x;
}
static inline Piece piece_mul(Piece a, Piece b) { return a * b; }
static inline Piece piece_fma(Piece a, Piece b, Piece c) { // rounded once, unlike lanes_fma here
    for (int i = 0; i < 4; i++) c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}
static inline Piece piece_spread(const float *blocks, int piece) {
    float x = blocks[piece];
    return (Piece){x, x, x, x};
}
INLINE Piece piece_dot_half(const PieceCodes *w, const unsigned char *x, int piece, int half) {
    const int8_t *in = (const int8_t *)(const void *)(x + half * INT8_HALF + piece * INT8_BLOCK / 2);
    int sum[4] = {0};
    for (int i = 0; i < INT8_BLOCK / 2; i++) sum[i / 4] += w->half[half][i] * in[i];
    return (Piece){(float)sum[0], (float)sum[1], (float)sum[2], (float)sum[3]};
}
INLINE Piece piece_dot(int bits, const PieceCodes *w, const unsigned char *x, int piece) {
    (void)bits;
    return piece_dot_half(w, x, piece, 0) + piece_dot_half(w, x, piece, 1); // small integers: exact
}
#endif
#endif

static inline Lanes pieces_join(const Piece *parts) {
    Lanes all;
    memcpy(&all, parts, sizeof all);
    return all;
}
