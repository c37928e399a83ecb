// Codes times activations of 8 bits, for products_int8.h: a step of blocks is PIECES registers of lanes. Part
// of each kernel set, as lanes.h is.
//
// A block is eight words of four codes: of 8 bits neighbours, of 4 bits those in the low halves of four
// bytes, words 0 to 3, and those in the high halves. Activations are packed in the same words.
//
//      wide step      register v has word v of 16 blocks, one a lane: rows of a transposed square
//      narrow step    registers 0 and 1 have words 0 to 3 and 4 to 7 of 4 blocks
//
// In AVX-512 a wide step's block i is in place 4 (i mod 4) + i / 4: transposed in quarters of a register.
#pragma once
#include "engine/cpu/kernels/int8.h"
#include "engine/cpu/kernels/lanes.h"

// Four registers whose quarters are rows of four words: their columns.
#define INT8_TURN(w, low32, high32, low64, high64)                                                \
    do {                                                                                          \
        __typeof__((w)[0]) a = low32((w)[0], (w)[1]), b = high32((w)[0], (w)[1]);                 \
        __typeof__((w)[0]) c = low32((w)[2], (w)[3]), d = high32((w)[2], (w)[3]);                 \
        (w)[0] = low64(a, c), (w)[1] = high64(a, c), (w)[2] = low64(b, d), (w)[3] = high64(b, d); \
    } while (0)

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
// The instruction multiplies unsigned bytes by signed ones: codes of 8 bits become unsigned with 128 more,
// and sums start at -128 times the sum of the activations.
enum { INT8_STARTS = 1 };
#else
enum { INT8_STARTS = 0 };
#endif

#if defined(__AVX512F__)
enum { PIECES = 1, INT8_ROWS = 16 };
typedef __m512 Piece;
typedef struct PieceCodes {
    __m512i v[INT8_WORDS];
} PieceCodes;
static inline int place_of(int block) { return block % 4 * 4 + block / 4; }
static inline Piece piece_zero(void) { return _mm512_setzero_ps(); }
static inline Piece piece_load(const float *p, int piece) { return (void)piece, _mm512_loadu_ps(p); }
static inline void piece_store(float *p, int piece, Piece x) { (void)piece, _mm512_storeu_ps(p, x); }
static inline Piece piece_mul(Piece a, Piece b) { return _mm512_mul_ps(a, b); }
static inline Piece piece_fma(Piece a, Piece b, Piece c) { return _mm512_fmadd_ps(a, b, c); }
static inline Piece piece_turn(Piece x) { // from blocks to places, and back
    const __m512i which = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    return _mm512_permutexvar_ps(which, x);
}
static inline Piece piece_spread(const float *blocks, int piece) { // each in four lanes
    (void)piece;
    const __m512i which = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    return _mm512_permutevar_ps(_mm512_broadcast_f32x4(_mm_loadu_ps(blocks)), which);
}
INLINE void codes_at(const unsigned char *p, int piece, int vectors, PieceCodes *w) {
    (void)piece;
    for (int v = 0; v < vectors; v++) w->v[v] = _mm512_loadu_si512(p + v * INT8_VECTOR);
}
INLINE void codes_put(unsigned char *p, int piece, int vectors, const PieceCodes *w) {
    (void)piece;
    for (int v = 0; v < vectors; v++) _mm512_storeu_si512(p + v * INT8_VECTOR, w->v[v]);
}

// Four blocks a register, or of 8 bits their halves in two: words 0 to 3 of each, and 4 to 7.
INLINE void four_blocks(int bits, const unsigned char *codes, __m512i *first, __m512i *last) {
    __m512i a = _mm512_loadu_si512(codes);
    if (bits == 4) {
        *first = a;
        return;
    }
    __m512i b = _mm512_loadu_si512(codes + 64);
    if (INT8_STARTS) {
        a = _mm512_xor_si512(a, _mm512_set1_epi8(-128));
        b = _mm512_xor_si512(b, _mm512_set1_epi8(-128));
    }
    *first = _mm512_shuffle_i64x2(a, b, 0x88);
    *last = _mm512_shuffle_i64x2(a, b, 0xdd);
}
INLINE void codes_split(int bits, int vectors, PieceCodes *w) { // the halves of bytes
    for (int v = 0; bits == 4 && v < vectors / 2; v++) {
        w->v[vectors / 2 + v] = _mm512_and_si512(_mm512_srli_epi16(w->v[v], 4), _mm512_set1_epi8(15));
        w->v[v] = _mm512_and_si512(w->v[v], _mm512_set1_epi8(15));
    }
}
INLINE void codes_wide(int bits, const unsigned char *codes, int piece, PieceCodes *w) {
    (void)piece;
    for (int i = 0; i < 4; i++) four_blocks(bits, codes + i * 16 * bits, &w->v[i], &w->v[4 + i]);
    for (int i = 0; i < bits / 4; i++)
        INT8_TURN(w->v + 4 * i, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32, _mm512_unpacklo_epi64,
                  _mm512_unpackhi_epi64);
    codes_split(bits, INT8_WORDS, w);
}
INLINE void codes_narrow(int bits, const unsigned char *codes, int piece, PieceCodes *w) {
    (void)piece;
    four_blocks(bits, codes, &w->v[0], &w->v[1]);
    codes_split(bits, 2, w);
}

// The sum of registers [from, to); of 8 bits it begins with `start`, if there are starts.
INLINE Piece codes_dot(int bits, const PieceCodes *w, const unsigned char *x, int piece, int from, int to,
                       __m512i start) {
    (void)piece;
#if defined(__AVX512VNNI__)
    (void)bits;
    for (int v = from; v < to; v++)
        start = _mm512_dpbusd_epi32(start, w->v[v], _mm512_loadu_si512(x + v * INT8_VECTOR));
    return _mm512_cvtepi32_ps(start);
#else
    __m512i pairs = start, ones = _mm512_set1_epi16(1);
    for (int v = from; v < to; v++) {
        __m512i in = _mm512_loadu_si512(x + v * INT8_VECTOR);
        if (bits == 4) { // up to 8 * 2 * 15 * 127 in 16 bits
            pairs = _mm512_add_epi16(pairs, _mm512_maddubs_epi16(w->v[v], in));
            continue;
        }
        in = _mm512_mask_sub_epi8(in, _mm512_movepi8_mask(w->v[v]), _mm512_setzero_si512(), in);
        in = _mm512_maddubs_epi16(_mm512_abs_epi8(w->v[v]), in);
        start = _mm512_add_epi32(start, _mm512_madd_epi16(in, ones));
    }
    return _mm512_cvtepi32_ps(bits == 4 ? _mm512_madd_epi16(pairs, ones) : start);
#endif
}
typedef __m512i Start;
static inline Start start_zero(void) { return _mm512_setzero_si512(); }
static inline Start start_load(const unsigned char *p, int piece) {
    return (void)piece, _mm512_loadu_si512(p);
}
static inline Start start_less(Start a, Start b) { return _mm512_sub_epi32(a, b); }

#elif defined(__AVX2__)
enum { PIECES = 2, INT8_ROWS = 4 };
typedef __m256 Piece;
typedef struct PieceCodes {
    __m256i v[INT8_WORDS];
} PieceCodes;
static inline int place_of(int block) { return block; }
static inline Piece piece_zero(void) { return _mm256_setzero_ps(); }
static inline Piece piece_load(const float *p, int piece) { return _mm256_loadu_ps(p + piece * 8); }
static inline void piece_store(float *p, int piece, Piece x) { _mm256_storeu_ps(p + piece * 8, x); }
static inline Piece piece_mul(Piece a, Piece b) { return _mm256_mul_ps(a, b); }
static inline Piece piece_fma(Piece a, Piece b, Piece c) { return _mm256_fmadd_ps(a, b, c); }
static inline Piece piece_turn(Piece x) { return x; }
static inline Piece piece_spread(const float *blocks, int piece) {
    Piece four = _mm256_broadcast_ps((const __m128 *)(const void *)blocks);
    return piece ? _mm256_permutevar_ps(four, _mm256_set_epi32(3, 3, 3, 3, 2, 2, 2, 2))
                 : _mm256_permutevar_ps(four, _mm256_set_epi32(1, 1, 1, 1, 0, 0, 0, 0));
}
static inline __m256i load_256(const unsigned char *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
INLINE void codes_at(const unsigned char *p, int piece, int vectors, PieceCodes *w) {
    for (int v = 0; v < vectors; v++) w->v[v] = load_256(p + v * INT8_VECTOR + piece * 32);
}
INLINE void codes_put(unsigned char *p, int piece, int vectors, const PieceCodes *w) {
    for (int v = 0; v < vectors; v++)
        _mm256_storeu_si256((__m256i *)(void *)(p + v * INT8_VECTOR + piece * 32), w->v[v]);
}

// The first 16 bytes from here and from there.
static inline __m256i two_of(const unsigned char *here, const unsigned char *there) {
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)here);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(a),
                                   _mm_loadu_si128((const __m128i *)(const void *)there), 1);
}
INLINE void codes_split(int bits, int vectors, PieceCodes *w) {
    for (int v = 0; bits == 4 && v < vectors / 2; v++) {
        w->v[vectors / 2 + v] = _mm256_and_si256(_mm256_srli_epi16(w->v[v], 4), _mm256_set1_epi8(15));
        w->v[v] = _mm256_and_si256(w->v[v], _mm256_set1_epi8(15));
    }
    for (int v = 0; INT8_STARTS && bits == 8 && v < vectors; v++)
        w->v[v] = _mm256_xor_si256(w->v[v], _mm256_set1_epi8(-128));
}
INLINE void codes_wide(int bits, const unsigned char *codes, int piece, PieceCodes *w) {
    codes += piece * 32 * bits;
    for (int half = 0; half < bits / 4; half++) {
        for (int i = 0; i < 4; i++)
            w->v[4 * half + i] =
                two_of(codes + 4 * bits * i + 16 * half, codes + 4 * bits * (i + 4) + 16 * half);
        INT8_TURN(w->v + 4 * half, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32, _mm256_unpacklo_epi64,
                  _mm256_unpackhi_epi64);
    }
    codes_split(bits, INT8_WORDS, w);
}
INLINE void codes_narrow(int bits, const unsigned char *codes, int piece, PieceCodes *w) {
    codes += piece * 8 * bits;
    for (int half = 0; half < bits / 4; half++)
        w->v[half] = two_of(codes + 16 * half, codes + 16 * half + 4 * bits);
    codes_split(bits, 2, w);
}

INLINE Piece codes_dot(int bits, const PieceCodes *w, const unsigned char *x, int piece, int from, int to,
                       __m256i start) {
    x += piece * 32;
#if defined(__AVXVNNI__)
    (void)bits;
    for (int v = from; v < to; v++)
        start = _mm256_dpbusd_avx_epi32(start, w->v[v], load_256(x + v * INT8_VECTOR));
    return _mm256_cvtepi32_ps(start);
#else
    __m256i pairs = start, ones = _mm256_set1_epi16(1);
    for (int v = from; v < to; v++) {
        __m256i in = load_256(x + v * INT8_VECTOR);
        if (bits == 4) { // up to 8 * 2 * 15 * 127 in 16 bits
            __m256i more = _mm256_maddubs_epi16(w->v[v], in);
            pairs = v == from ? more : _mm256_add_epi16(pairs, more);
            continue;
        }
        // the sizes of codes, unsigned, by activations with the codes' signs
        in = _mm256_maddubs_epi16(_mm256_abs_epi8(w->v[v]), _mm256_sign_epi8(in, w->v[v]));
        in = _mm256_madd_epi16(in, ones);
        start = v == from ? in : _mm256_add_epi32(start, in);
    }
    return _mm256_cvtepi32_ps(bits == 4 ? _mm256_madd_epi16(pairs, ones) : start);
#endif
}
typedef __m256i Start;
static inline Start start_zero(void) { return _mm256_setzero_si256(); }
static inline Start start_load(const unsigned char *p, int piece) { return load_256(p + piece * 32); }
static inline Start start_less(Start a, Start b) { return _mm256_sub_epi32(a, b); }

#else
#include "engine/cpu/kernels/lanes_int8_four.h"
#endif

static inline Lanes pieces_join(const Piece *parts) {
    Lanes all;
    memcpy(&all, parts, sizeof all);
    return all;
}
