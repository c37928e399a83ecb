// Rounds the sides of a product to bf16 and puts them where panels_bf16.h says.
//
//      in memory    along k                      across k
//      a            rounded as it lies           rows of k woven in pairs, squares of words turned over
//      b            squares of words turned      rows of k woven in pairs
#pragma once
#include "engine/cpu/kernels/transpose.h"
#include "engine/train/kernels/panels_bf16.h"

#if defined(__AVX512BF16__)
// The first n of 16 numbers, then zeros.
static inline __m512 some_of(const float *from, int n) {
    if (n >= WORDS) return _mm512_loadu_ps(from);
    return _mm512_maskz_loadu_ps((__mmask16)(n > 0 ? (1u << n) - 1 : 0), from);
}

static inline __m512i rounded(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

// 16 pairs that lie one after another: n numbers, at most RUN.
static inline __m512i pairs_along(const float *from, int n) {
    return rounded(some_of(from, n), n > WORDS ? some_of(from + WORDS, n - WORDS) : _mm512_setzero_ps());
}

// 16 pairs of two rows that lie above each other.
static inline __m512i woven(__m512 first, __m512 second) {
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23,
                                           7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, rounded(first, second));
}

// The same where only `rows` of the two are there, and of them the first `columns` numbers.
static inline __m512i pairs_across(const float *from, size_t stride, int rows, int columns) {
    return woven(rows > 0 ? some_of(from, columns) : _mm512_setzero_ps(),
                 rows > 1 ? some_of(from + stride, columns) : _mm512_setzero_ps());
}

static inline void store_rows(const __m512i *row, uint32_t *to, size_t step) {
    for (int r = 0; r < WORDS; r++) _mm512_storeu_si512(to + (size_t)r * step, row[r]);
}

// 16 rows of at most RUN numbers along k, `rows` of them there, become 16 rows of 16 columns.
static inline void turn_along(const float *from, size_t stride, int rows, int k, uint32_t *to, size_t step) {
    __m512i word[WORDS];
    if (rows >= WORDS && k >= RUN)
        for (int r = 0; r < WORDS; r++)
            word[r] = rounded(_mm512_loadu_ps(from + (size_t)r * stride),
                              _mm512_loadu_ps(from + (size_t)r * stride + WORDS));
    else
        for (int r = 0; r < WORDS; r++)
            word[r] = r < rows ? pairs_along(from + (size_t)r * stride, k) : _mm512_setzero_si512();
    transpose(word);
    store_rows(word, to, step);
}

// The other way: RUN rows of k, 16 columns wide, become 16 rows of 16 pairs.
static inline void turn_across(const float *from, size_t stride, int k, int columns, uint32_t *to,
                               size_t step) {
    __m512i word[WORDS];
    if (k >= RUN && columns >= WORDS)
        for (size_t p = 0; p < WORDS; p++)
            word[p] =
                woven(_mm512_loadu_ps(from + 2 * p * stride), _mm512_loadu_ps(from + (2 * p + 1) * stride));
    else
        for (int p = 0; p < WORDS; p++)
            word[p] = pairs_across(from + (size_t)smaller(2 * p, k) * stride, stride, k - 2 * p, columns);
    transpose(word);
    store_rows(word, to, step);
}

// Rows [0, m) of k columns of a, and zeros up to a whole tile.
static inline void pack_a(const View *a, int m, int k, uint32_t *to) {
    size_t depth = depth_of(k);
    if (a->column == 1)
        for (int i = 0; i < m; i++)
            for (int x = 0; x < k; x += RUN)
                _mm512_storeu_si512(to + (size_t)i * depth + x / 2,
                                    pairs_along(a->data + (size_t)i * a->row + x, k - x));
    else
        for (int x = 0; x < k; x += RUN) // the inner loop stays on RUN pages of memory
            for (int i = 0; i < m; i += WORDS)
                turn_across(a->data + (size_t)x * a->column + i, a->column, k - x, m - i,
                            to + (size_t)i * depth + x / 2, depth);
    memset(to + (size_t)m * depth, 0, (size_t)(whole_of(m, TILE_ROWS) - m) * depth * sizeof *to);
}

static inline void pack_b_across(const View *b, int k, int n, uint32_t *to) {
    enum { DEEP = 8 }; // pairs at a time, so that what is read is read once and nearly in order
    int depth = (int)depth_of(k);
    for (int start = 0; start < depth; start += DEEP)
        for (int j = 0; j < whole_of(n, PANEL); j += WORDS) {
            uint32_t *panel = to + (size_t)(j / PANEL * depth) * PANEL + j % PANEL;
            const float *from = b->data + (size_t)smaller(2 * start, k) * b->row + smaller(j, n);
            if (n - j >= WORDS && k - 2 * start >= 2 * DEEP)
                for (size_t p = 0; p < DEEP; p++)
                    _mm512_storeu_si512(panel + ((size_t)start + p) * PANEL,
                                        woven(_mm512_loadu_ps(from + 2 * p * b->row),
                                              _mm512_loadu_ps(from + (2 * p + 1) * b->row)));
            else
                for (int p = start; p < start + DEEP; p++)
                    _mm512_storeu_si512(
                        panel + (size_t)p * PANEL,
                        pairs_across(b->data + (size_t)smaller(2 * p, k) * b->row + smaller(j, n), b->row,
                                     k - 2 * p, n - j));
        }
}

// Columns [0, n) of k rows of b.
static inline void pack_b(const View *b, int k, int n, uint32_t *to) {
    int depth = (int)depth_of(k);
    if (b->column == 1) {
        pack_b_across(b, k, n, to);
        return;
    }
    for (int j = 0; j < whole_of(n, PANEL); j += WORDS)
        for (int x = 0; x < k; x += RUN)
            turn_along(b->data + (size_t)smaller(j, n) * b->column + x, b->column, n - j, k - x,
                       to + (size_t)(j / PANEL * depth + x / 2) * PANEL + j % PANEL, PANEL);
}

static inline void pack(const View *b, const Panels *to, int from, int end) {
    for (int kb = 0; kb < to->k; kb += K_BLOCK) {
        View block = {b->data + (size_t)kb * b->row + (size_t)from * b->column, b->row, b->column};
        pack_b(&block, smaller(K_BLOCK, to->k - kb), end - from, panels_at(to, kb, from));
    }
}
#endif
