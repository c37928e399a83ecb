// Pieces of four lanes for lanes_int8.h, which includes this: on NEON, or in C.
#pragma once
#include "engine/cpu/kernels/int8.h"
#include "engine/cpu/kernels/lanes.h"

enum { PIECES = 4, INT8_ROWS = 4 };
static inline int place_of(int block) { return block; }

#if defined(__aarch64__) && !defined(LANES_PLAIN)
typedef float32x4_t Piece;
typedef int32x4_t Start;
typedef struct PieceCodes {
    int8x16_t v[INT8_WORDS];
} PieceCodes;
static inline Piece piece_zero(void) { return vdupq_n_f32(0); }
static inline Piece piece_load(const float *p, int piece) { return vld1q_f32(p + piece * 4); }
static inline void piece_store(float *p, int piece, Piece x) { vst1q_f32(p + piece * 4, x); }
static inline Piece piece_mul(Piece a, Piece b) { return vmulq_f32(a, b); }
static inline Piece piece_fma(Piece a, Piece b, Piece c) { return vfmaq_f32(c, a, b); }
static inline Piece piece_spread(const float *blocks, int piece) { return vdupq_n_f32(blocks[piece]); }
static inline int8x16_t sixteen(const unsigned char *p) { return vld1q_s8((const int8_t *)(const void *)p); }
INLINE void codes_turn(int8x16_t *w) {
    int32x4_t a = vreinterpretq_s32_s8(w[0]), b = vreinterpretq_s32_s8(w[1]), c = vreinterpretq_s32_s8(w[2]),
              d = vreinterpretq_s32_s8(w[3]);
    int64x2_t ab[2] = {vreinterpretq_s64_s32(vzip1q_s32(a, b)), vreinterpretq_s64_s32(vzip2q_s32(a, b))};
    int64x2_t cd[2] = {vreinterpretq_s64_s32(vzip1q_s32(c, d)), vreinterpretq_s64_s32(vzip2q_s32(c, d))};
    for (int i = 0; i < 2; i++) {
        w[2 * i] = vreinterpretq_s8_s64(vzip1q_s64(ab[i], cd[i]));
        w[2 * i + 1] = vreinterpretq_s8_s64(vzip2q_s64(ab[i], cd[i]));
    }
}
INLINE void byte_halves(int8x16_t w, int8x16_t *low, int8x16_t *high) {
    uint8x16_t bytes = vreinterpretq_u8_s8(w);
    *low = vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15)));
    *high = vreinterpretq_s8_u8(vshrq_n_u8(bytes, 4));
}
INLINE Piece codes_dot(int bits, const PieceCodes *w, const unsigned char *x, int piece, int from, int to,
                       Start sum) {
    (void)bits;
    for (int v = from; v < to; v++) {
        int8x16_t in = sixteen(x + v * INT8_VECTOR + piece * 16);
#if defined(__ARM_FEATURE_DOTPROD)
        sum = vdotq_s32(sum, w->v[v], in);
#else
        int16x8_t low = vmull_s8(vget_low_s8(w->v[v]), vget_low_s8(in)), high = vmull_high_s8(w->v[v], in);
        sum = vpadalq_s16(sum, vpaddq_s16(low, high)); // two products fit 16 bits
#endif
    }
    return vcvtq_f32_s32(sum);
}
static inline Start start_zero(void) { return vdupq_n_s32(0); }
static inline Start start_less(Start a, Start b) { return vsubq_s32(a, b); }
// Adds the upper bits in bytes of x, `right` places to the right of their own.
INLINE int8x16_t add_upper(int bits, int8x16_t lower, int8x16_t x, int8x16_t right) {
    uint8x16_t bytes = vshlq_u8(vreinterpretq_u8_s8(x), vnegq_s8(right));
    bytes = vandq_u8(bytes, vdupq_n_u8((uint8_t)upper_mask(bits)));
    return vreinterpretq_s8_u8(vorrq_u8(vreinterpretq_u8_s8(lower), bytes));
}

#else
typedef Quarter Piece;
typedef int8_t Sixteen __attribute__((vector_size(16)));
typedef int32_t Start __attribute__((vector_size(16)));
typedef struct PieceCodes {
    Sixteen v[INT8_WORDS];
} PieceCodes;
static inline Piece piece_zero(void) { return (Piece){0}; }
static inline Piece piece_load(const float *p, int piece) {
    Piece x;
    memcpy(&x, p + piece * 4, sizeof x);
    return x;
}
static inline void piece_store(float *p, int piece, Piece x) { memcpy(p + piece * 4, &x, sizeof x); }
static inline Piece piece_mul(Piece a, Piece b) { return a * b; }
static inline Piece piece_fma(Piece a, Piece b, Piece c) { // rounded once, unlike lanes_fma here
    for (int i = 0; i < 4; i++) c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}
static inline Piece piece_spread(const float *blocks, int piece) {
    float x = blocks[piece];
    return (Piece){x, x, x, x};
}
static inline Sixteen sixteen(const unsigned char *p) {
    Sixteen x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE void codes_turn(Sixteen *w) {
    unsigned char from[4][16], to[4][16];
    memcpy(from, w, sizeof from);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) memcpy(to[j] + 4 * i, from[i] + 4 * j, 4);
    memcpy(w, to, sizeof to);
}
INLINE void byte_halves(Sixteen w, Sixteen *low, Sixteen *high) {
    *low = w & 15;
    *high = w >> 4 & 15;
}
INLINE Piece codes_dot(int bits, const PieceCodes *w, const unsigned char *x, int piece, int from, int to,
                       Start sum) {
    typedef int16_t Eight __attribute__((vector_size(16)));
    (void)bits;
    for (int v = from; v < to; v++) { // products of the even bytes and the odd ones, in 16 bits each
        Eight a = (Eight)w->v[v], b = (Eight)sixteen(x + v * INT8_VECTOR + piece * 16);
        Eight odd = (a >> 8) * (b >> 8);
        Eight even = (a << 8 >> 8) * (b << 8 >> 8);
        Start pairs_even = (Start)even, pairs_odd = (Start)odd;
        sum += (pairs_even >> 16) + (pairs_even << 16 >> 16) + (pairs_odd >> 16) + (pairs_odd << 16 >> 16);
    }
    return (Piece){(float)sum[0], (float)sum[1], (float)sum[2], (float)sum[3]};
}
static inline Start start_zero(void) { return (Start){0}; }
static inline Start start_less(Start a, Start b) { return a - b; }
INLINE Sixteen add_upper(int bits, Sixteen lower, Sixteen x, Sixteen right) {
    typedef uint8_t Bytes __attribute__((vector_size(16)));
    Bytes up = (Bytes)x << 4 >> (Bytes)(right + 4), whole = (Bytes)x >> (Bytes)right;
    Bytes bytes = (Bytes)(right < 0);
    bytes = (up & bytes) | (whole & ~bytes);
    return lower | (Sixteen)(bytes & (uint8_t)upper_mask(bits));
}
#endif

static inline Piece piece_turn(Piece x) { return x; }
static inline Start start_load(const unsigned char *p, int piece) {
    Start x;
    memcpy(&x, p + piece * 16, sizeof x);
    return x;
}
INLINE void codes_at(const unsigned char *p, int piece, int vectors, PieceCodes *w) {
    for (int v = 0; v < vectors; v++) w->v[v] = sixteen(p + v * INT8_VECTOR + piece * 16);
}
INLINE void codes_put(unsigned char *p, int piece, int vectors, const PieceCodes *w) {
    for (int v = 0; v < vectors; v++) memcpy(p + v * INT8_VECTOR + piece * 16, &w->v[v], 16);
}

// A word of the upper plane for each of four, and how far each goes to the right.
INLINE void raise(int bits, __typeof__(sixteen(NULL)) *w, const uint32_t word[4], const int shift[4]) {
    unsigned char x[16], right[16];
    for (int i = 0; i < 4; i++) memcpy(x + 4 * i, &word[i], 4);
    for (int i = 0; i < 16; i++) right[i] = (unsigned char)shift[i / 4];
    *w = add_upper(bits, *w, sixteen(x), sixteen(right));
}
INLINE void codes_wide(int bits, CodesAt at, int piece, PieceCodes *w) {
    int lower = bits == 8 ? 8 : 4, upper = bits - PLANE_BITS;
    const unsigned char *codes = at.codes + piece * 16 * lower;
    for (int half = 0; half < lower / 4; half++) {
        for (int i = 0; i < 4; i++) w->v[4 * half + i] = sixteen(codes + 4 * lower * i + 16 * half);
        codes_turn(w->v + 4 * half);
    }
    for (int v = 0; bits != 8 && v < 4; v++) byte_halves(w->v[v], &w->v[v], &w->v[4 + v]);
    for (int v = 0; codes_planes(bits) && v < INT8_WORDS; v++) {
        uint32_t word[4];
        int shift[4];
        for (int i = 0; i < 4; i++) {
            memcpy(&word[i], at.upper + 4 * (upper * (4 * piece + i) + v % upper), sizeof *word);
            shift[i] = upper_shift(bits, v);
        }
        raise(bits, &w->v[v], word, shift);
    }
}
INLINE void codes_narrow(int bits, CodesAt at, int piece, PieceCodes *w) {
    int lower = bits == 8 ? 8 : 4, upper = bits - PLANE_BITS;
    const unsigned char *codes = at.codes + piece * 4 * lower;
    w->v[0] = sixteen(codes);
    if (bits != 8) byte_halves(w->v[0], &w->v[0], &w->v[1]);
    else w->v[1] = sixteen(codes + 16);
    for (int v = 0; codes_planes(bits) && v < 2; v++) {
        uint32_t word[4];
        int shift[4];
        for (int j = 0; j < 4; j++) {
            memcpy(&word[j], at.upper + 4 * (upper * piece + j % upper), sizeof *word);
            shift[j] = upper_shift(bits, 4 * v + j);
        }
        raise(bits, &w->v[v], word, shift);
    }
}
