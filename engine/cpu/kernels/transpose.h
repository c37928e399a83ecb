// A transposed square of 16 x 16 words: it turns rows into the columns of tiles, and back.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SQUARE = 16 };

#if defined(__AVX512F__)
#include <immintrin.h>

// Pairs of rows are interleaved by one word, two words, four and eight: 64 shuffles.
static inline void transpose(__m512i row[SQUARE]) {
    __m512i a[SQUARE];
    for (int i = 0; i < SQUARE; i += 2) {
        a[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
    }
    for (int i = 0; i < SQUARE; i += 4)
        for (int j = 0; j < 2; j++) {
            row[i + 2 * j] = _mm512_unpacklo_epi64(a[i + j], a[i + j + 2]);
            row[i + 2 * j + 1] = _mm512_unpackhi_epi64(a[i + j], a[i + j + 2]);
        }
    for (int i = 0; i < SQUARE; i += 8)
        for (int j = 0; j < 4; j++) {
            a[i + j] = _mm512_shuffle_i32x4(row[i + j], row[i + j + 4], 0x88);
            a[i + j + 4] = _mm512_shuffle_i32x4(row[i + j], row[i + j + 4], 0xdd);
        }
    for (int j = 0; j < 8; j++) {
        row[j] = _mm512_shuffle_i32x4(a[j], a[j + 8], 0x88);
        row[j + 8] = _mm512_shuffle_i32x4(a[j], a[j + 8], 0xdd);
    }
}

// to[c * to_step + r] = from[r][c], for the given numbers of rows and columns only.
static inline void transpose_square(const uint32_t from[SQUARE][SQUARE], uint32_t *to, size_t to_step,
                                    int rows, int columns) {
    __m512i row[SQUARE];
    __mmask16 mask = (__mmask16)((1u << rows) - 1);
    for (int r = 0; r < SQUARE; r++) row[r] = _mm512_loadu_si512(from[r]);
    transpose(row);
    for (int c = 0; c < columns; c++) _mm512_mask_storeu_epi32(to + (size_t)c * to_step, mask, row[c]);
}

#else
static inline void transpose_square(const uint32_t from[SQUARE][SQUARE], uint32_t *to, size_t to_step,
                                    int rows, int columns) {
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < rows; r++) to[(size_t)c * to_step + (size_t)r] = from[r][c];
}
#endif
