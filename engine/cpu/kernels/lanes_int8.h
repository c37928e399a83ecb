// Codes times activations of 8 bits, for products_int8.h: a step of blocks is PIECES registers of lanes. Part
// of each kernel set, as lanes.h is.
//
// A block is eight words of four codes: of 8 bits neighbours, of 4 bits those in the low halves of four
// bytes, words 0 to 3, and those in the high halves. Of codes in two planes (engine/model/tensor.h) the same
// halves are neighbours, to which words of the upper plane add their bits. Activations are packed in the same
// words.
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

// Sums of two products that fit 16 bits together: 8 * 2 * 15 * 127, 4 * 2 * 31 * 127, 2 * 2 * 63 * 127.
INLINE int int8_together(int bits) { return bits == 4 ? 8 : bits == 5 ? 4 : 2; }

#if defined(__AVX2__)
static inline __m128i load_128(const unsigned char *p) {
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
static inline __m256i load_256(const unsigned char *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
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
    if (bits != 8) {
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
    for (int v = 0; bits != 8 && v < vectors / 2; v++) {
        w->v[vectors / 2 + v] = _mm512_and_si512(_mm512_srli_epi16(w->v[v], 4), _mm512_set1_epi8(15));
        w->v[v] = _mm512_and_si512(w->v[v], _mm512_set1_epi8(15));
    }
}
INLINE void codes_wide(int bits, CodesAt at, int piece, PieceCodes *w) {
    int lower = bits == 8 ? 8 : 4;
    (void)piece;
    for (int i = 0; i < 4; i++) four_blocks(bits, at.codes + i * 16 * lower, &w->v[i], &w->v[4 + i]);
    for (int i = 0; i < lower / 4; i++)
        INT8_TURN(w->v + 4 * i, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32, _mm512_unpacklo_epi64,
                  _mm512_unpackhi_epi64);
    codes_split(bits, INT8_WORDS, w);
    if (!codes_planes(bits)) return;
    const __m512i which = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    __m512i a = _mm512_loadu_si512(at.upper), b = a;
    if (bits == 5) a = _mm512_permutexvar_epi32(which, a);
    else {
        __m512i even = _mm512_slli_epi32(which, 1), more = _mm512_loadu_si512(at.upper + 64);
        b = _mm512_permutex2var_epi32(a, _mm512_or_si512(even, _mm512_set1_epi32(1)), more);
        a = _mm512_permutex2var_epi32(a, even, more);
    }
    for (int v = 0; v < INT8_WORDS; v++) {
        int shift = upper_shift(bits, v);
        __m512i x = bits == 6 && v % 2 ? b : a;
        x = shift < 0 ? _mm512_slli_epi32(x, (unsigned)-shift) : _mm512_srli_epi32(x, (unsigned)shift);
        w->v[v] = _mm512_or_si512(w->v[v], _mm512_and_si512(x, _mm512_set1_epi8(upper_mask(bits))));
    }
}
INLINE void codes_narrow(int bits, CodesAt at, int piece, PieceCodes *w) {
    (void)piece;
    four_blocks(bits, at.codes, &w->v[0], &w->v[1]);
    codes_split(bits, 2, w);
    if (!codes_planes(bits)) return;
    const __m512i quarters = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    const __m512i pairs = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
    const __m128i ones = _mm_setr_epi32(0, 1, 2, 3), twos = _mm_setr_epi32(0, 0, 2, 2);
    __m512i x = bits == 5 ? _mm512_permutexvar_epi32(quarters, _mm512_castsi128_si512(load_128(at.upper)))
                          : _mm512_permutexvar_epi64(pairs, _mm512_castsi256_si512(load_256(at.upper)));
    __m512i mask = _mm512_set1_epi8(upper_mask(bits));
    x = _mm512_srlv_epi32(x, _mm512_broadcast_i32x4(bits == 5 ? ones : twos));
    w->v[0] = _mm512_or_si512(w->v[0], _mm512_and_si512(_mm512_slli_epi32(x, PLANE_BITS), mask));
    w->v[1] = _mm512_or_si512(w->v[1], _mm512_and_si512(x, mask)); // words 4 to 7: 4 bits further up
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
        if (bits != 8) {
            bool first = (v - from) % int8_together(bits) == 0;
            bool last = (v + 1 - from) % int8_together(bits) == 0 || v == to - 1;
            __m512i more = _mm512_maddubs_epi16(w->v[v], in);
            pairs = first ? more : _mm512_add_epi16(pairs, more);
            if (last) start = _mm512_add_epi32(start, _mm512_madd_epi16(pairs, ones));
            continue;
        }
        in = _mm512_mask_sub_epi8(in, _mm512_movepi8_mask(w->v[v]), _mm512_setzero_si512(), in);
        in = _mm512_maddubs_epi16(_mm512_abs_epi8(w->v[v]), in);
        start = _mm512_add_epi32(start, _mm512_madd_epi16(in, ones));
    }
    return _mm512_cvtepi32_ps(start);
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
INLINE void codes_at(const unsigned char *p, int piece, int vectors, PieceCodes *w) {
    for (int v = 0; v < vectors; v++) w->v[v] = load_256(p + v * INT8_VECTOR + piece * 32);
}
INLINE void codes_put(unsigned char *p, int piece, int vectors, const PieceCodes *w) {
    for (int v = 0; v < vectors; v++)
        _mm256_storeu_si256((__m256i *)(void *)(p + v * INT8_VECTOR + piece * 32), w->v[v]);
}

// The first 16 bytes from here and from there.
static inline __m256i two_of(const unsigned char *here, const unsigned char *there) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(here)), load_128(there), 1);
}
INLINE void codes_split(int bits, int vectors, PieceCodes *w) {
    for (int v = 0; bits != 8 && v < vectors / 2; v++) {
        w->v[vectors / 2 + v] = _mm256_and_si256(_mm256_srli_epi16(w->v[v], 4), _mm256_set1_epi8(15));
        w->v[v] = _mm256_and_si256(w->v[v], _mm256_set1_epi8(15));
    }
    for (int v = 0; INT8_STARTS && bits == 8 && v < vectors; v++)
        w->v[v] = _mm256_xor_si256(w->v[v], _mm256_set1_epi8(-128));
}
INLINE void codes_wide(int bits, CodesAt at, int piece, PieceCodes *w) {
    int lower = bits == 8 ? 8 : 4;
    const unsigned char *codes = at.codes + piece * 32 * lower;
    for (int half = 0; half < lower / 4; half++) {
        for (int i = 0; i < 4; i++)
            w->v[4 * half + i] =
                two_of(codes + 4 * lower * i + 16 * half, codes + 4 * lower * (i + 4) + 16 * half);
        INT8_TURN(w->v + 4 * half, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32, _mm256_unpacklo_epi64,
                  _mm256_unpackhi_epi64);
    }
    codes_split(bits, INT8_WORDS, w);
    if (!codes_planes(bits)) return;
    const unsigned char *upper = at.upper + piece * 32 * (bits - PLANE_BITS);
    __m256i a, b;
    if (bits == 5) a = b = load_256(upper);
    else {
        __m256 first = _mm256_castsi256_ps(two_of(upper, upper + 32));
        __m256 last = _mm256_castsi256_ps(two_of(upper + 16, upper + 48));
        a = _mm256_castps_si256(_mm256_shuffle_ps(first, last, 0x88));
        b = _mm256_castps_si256(_mm256_shuffle_ps(first, last, 0xdd));
    }
    for (int v = 0; v < INT8_WORDS; v++) {
        int shift = upper_shift(bits, v);
        __m256i x = bits == 6 && v % 2 ? b : a;
        x = shift < 0 ? _mm256_slli_epi32(x, -shift) : _mm256_srli_epi32(x, shift);
        w->v[v] = _mm256_or_si256(w->v[v], _mm256_and_si256(x, _mm256_set1_epi8(upper_mask(bits))));
    }
}
INLINE void codes_narrow(int bits, CodesAt at, int piece, PieceCodes *w) {
    int lower = bits == 8 ? 8 : 4;
    const unsigned char *codes = at.codes + piece * 8 * lower;
    for (int half = 0; half < lower / 4; half++)
        w->v[half] = two_of(codes + 16 * half, codes + 16 * half + 4 * lower);
    codes_split(bits, 2, w);
    if (!codes_planes(bits)) return;
    const __m256i ones = _mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3);
    const __m256i twos = _mm256_setr_epi32(0, 0, 2, 2, 0, 0, 2, 2);
    const __m128i *upper = (const __m128i *)(const void *)(at.upper + piece * 8 * (bits - PLANE_BITS));
    __m256i x = _mm256_castsi128_si256(bits == 5 ? _mm_loadl_epi64(upper) : _mm_loadu_si128(upper));
    __m256i mask = _mm256_set1_epi8(upper_mask(bits));
    if (bits == 5) x = _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
    else x = _mm256_permute4x64_epi64(x, 0x50);
    x = _mm256_srlv_epi32(x, bits == 5 ? ones : twos);
    w->v[0] = _mm256_or_si256(w->v[0], _mm256_and_si256(_mm256_slli_epi32(x, PLANE_BITS), mask));
    w->v[1] = _mm256_or_si256(w->v[1], _mm256_and_si256(x, mask)); // words 4 to 7: 4 bits further up
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
        if (bits != 8) {
            bool first = (v - from) % int8_together(bits) == 0;
            bool last = (v + 1 - from) % int8_together(bits) == 0 || v == to - 1;
            __m256i more = _mm256_maddubs_epi16(w->v[v], in);
            pairs = first ? more : _mm256_add_epi16(pairs, more);
            if (last) start = _mm256_add_epi32(start, _mm256_madd_epi16(pairs, ones));
            continue;
        }
        // the sizes of codes, unsigned, by activations with the codes' signs
        in = _mm256_maddubs_epi16(_mm256_abs_epi8(w->v[v]), _mm256_sign_epi8(in, w->v[v]));
        in = _mm256_madd_epi16(in, ones);
        start = v == from ? in : _mm256_add_epi32(start, in);
    }
    return _mm256_cvtepi32_ps(start);
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
