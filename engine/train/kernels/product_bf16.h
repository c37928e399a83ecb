// The matrix product of training with operands rounded to bf16 and sums in f32, and the packing of its
// operands; for the kernel set whose processor multiplies pairs of bf16 (VDPBF16PS). Blocks and tiles are
// those of product.h.
//
// A pair's products are added to the sum one after the other; denormals count as zero. Floor: 2 m n k
// operations at twice the rate of f32.
//
// Reached, packing included, on a Zen 4 core of 3.66 GHz that does 234 GFLOP/s with operands in registers
// (117 in f32), 512 and 1,024 rows of a model 256 wide: 192 to 216 forward, 187 to 220 for dx, 182 to 207 for
// dW; product.h reaches 79 to 111 there.
//
// Both operands are pairs of bf16 along k, one word per pair, rounded to nearest even:
//
//      a  rows of words along k: one word is broadcast to all lanes of a register
//      b  panels of PANEL columns, with a row of words for each pair along k: one load gives 16 columns
//
// An AMX tile of a is 16 such rows, and one of b is half a panel of 16 pairs: both could be loaded from here
// as they are. So the depth of both is a multiple of 16 pairs, padded with zeros. How they are packed:
//
//      in memory    contiguous along k           contiguous across k
//      a            rounded in place             rows of k interleaved in pairs, squares of words transposed
//      b            squares of words transposed  rows of k interleaved in pairs
#pragma once
#include "engine/cpu/kernels/lanes.h"
#include "engine/cpu/kernels/transpose.h"
#include "engine/train/kernels/kernels.h"

enum { WORDS = 16, RUN = 2 * WORDS, PANEL = 2 * WORDS }; // words in a register, numbers in them

// K_BLOCK numbers of PANEL columns leave a quarter of a 32 KB first-level cache free; the ROW_BLOCK rows of a
// stay in the second level while all panels are multiplied by them.
enum { TILE_ROWS = 12, TILE_LANES = 2, K_BLOCK = 384, COLUMN_BLOCK = 2048, ROW_BLOCK = 24 * TILE_ROWS };
enum { PRODUCT_SCRATCH = (COLUMN_BLOCK + ROW_BLOCK) * K_BLOCK / 2 };

static inline int smaller(int a, int b) { return a < b ? a : b; }
static inline int whole_of(int n, int unit) { return (n + unit - 1) / unit * unit; }
static inline int pairs_of(int k) { return (k + 1) / 2; }
static inline size_t depth_of(int k) { return (size_t)whole_of(pairs_of(k), WORDS); }

// Words of packed b (k, n): blocks of K_BLOCK rows follow each other, each with all columns and a whole
// number of registers deep.
static inline size_t panels_size(int k, int n) { return depth_of(k) * (size_t)whole_of(n, PANEL); }

// The start of block kb at column j, a multiple of PANEL.
static inline uint32_t *panels_at(const Panels *p, int kb, int j) {
    return (uint32_t *)(void *)p->data + panels_size(kb, p->n) +
           (size_t)j * depth_of(smaller(K_BLOCK, p->k - kb));
}

#if defined(__AVX512BF16__)
// --- packing ---------------------------------------------------------------------------------------------

// Loads the first n of 16 numbers, followed by zeros.
static inline __m512 some_of(const float *from, int n) {
    if (n >= WORDS) return _mm512_loadu_ps(from);
    return _mm512_maskz_loadu_ps((__mmask16)(n > 0 ? (1u << n) - 1 : 0), from);
}

static inline __m512i rounded(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

// 16 pairs of n contiguous numbers, at most RUN.
static inline __m512i pairs_along(const float *from, int n) {
    return rounded(some_of(from, n), n > WORDS ? some_of(from + WORDS, n - WORDS) : _mm512_setzero_ps());
}

// 16 pairs of two adjacent rows.
static inline __m512i woven(__m512 first, __m512 second) {
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23,
                                           7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, rounded(first, second));
}

// The same for an edge: only `rows` of the two rows exist, and only their first `columns` numbers.
static inline __m512i pairs_across(const float *from, size_t stride, int rows, int columns) {
    return woven(rows > 0 ? some_of(from, columns) : _mm512_setzero_ps(),
                 rows > 1 ? some_of(from + stride, columns) : _mm512_setzero_ps());
}

static inline void store_rows(const __m512i *row, uint32_t *to, size_t step) {
    for (int r = 0; r < WORDS; r++) _mm512_storeu_si512(to + (size_t)r * step, row[r]);
}

// Turns 16 rows of at most RUN numbers along k, of which `rows` exist, into 16 rows of 16 columns.
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

// The opposite direction: turns RUN rows of k, 16 columns wide, into 16 rows of 16 pairs.
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

// Packs rows [0, m) of k columns of a, and zeros up to a whole tile.
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
    enum { DEEP = 8 }; // pairs at a time, so that memory is read once and nearly in order
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

// Packs columns [0, n) of k rows of b.
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

// --- the product -----------------------------------------------------------------------------------------

// Writes TILE_ROWS x PANEL sums over `pairs` to c, or adds them to c. Rows of a are `depth` words apart;
// three rows share one pointer, because a pointer for each row would need more registers than there are. c is
// prefetched, because it is needed only when the sums are complete.
INLINE void tile(const uint32_t *a, size_t depth, const uint32_t *b, int pairs, float *c, size_t stride,
                 bool add) {
    __m512 sum[TILE_ROWS][TILE_LANES];
#pragma GCC unroll 16
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 2
        for (int l = 0; l < TILE_LANES; l++) {
            __builtin_prefetch(c + (size_t)r * stride + l * WORDS, 1);
            sum[r][l] = _mm512_setzero_ps();
        }
    const uint32_t *three[TILE_ROWS / 3];
#pragma GCC unroll 4
    for (int r = 0; r < TILE_ROWS / 3; r++) three[r] = a + (size_t)r * 3 * depth;
    for (size_t p = 0; p < (size_t)pairs; p++, b += PANEL) {
        __m512bh in[TILE_LANES];
#pragma GCC unroll 2
        for (int l = 0; l < TILE_LANES; l++) in[l] = (__m512bh)_mm512_loadu_si512(b + l * WORDS);
#pragma GCC unroll 16
        for (int r = 0; r < TILE_ROWS; r++) {
            __m512bh x = (__m512bh)_mm512_set1_epi32((int)three[r / 3][(size_t)(r % 3) * depth]);
#pragma GCC unroll 2
            for (int l = 0; l < TILE_LANES; l++) sum[r][l] = _mm512_dpbf16_ps(sum[r][l], x, in[l]);
        }
#pragma GCC unroll 4
        for (int r = 0; r < TILE_ROWS / 3; r++) three[r]++;
    }
#pragma GCC unroll 16
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 2
        for (int l = 0; l < TILE_LANES; l++) {
            float *to = c + (size_t)r * stride + l * WORDS;
            _mm512_storeu_ps(to, add ? _mm512_add_ps(_mm512_loadu_ps(to), sum[r][l]) : sum[r][l]);
        }
}

// A block of c: m rows of packed a times packed panels of b.
typedef struct Bf16Block {
    const uint32_t *a, *b;
    size_t deep; // pairs in a panel of b; the product reads those of k
    float *c;
    size_t stride;
    int m, n, k;
    bool add;
} Bf16Block;

// A tile at the edge of c, of rows x columns, is computed in a buffer.
INLINE void edge_tile(const Bf16Block *p, const uint32_t *a, const uint32_t *b, float *c, int rows,
                      int columns) {
    float whole[TILE_ROWS * PANEL] = {0};
    size_t bytes = (size_t)columns * sizeof *c;
    for (int r = 0; p->add && r < rows; r++) memcpy(whole + r * PANEL, c + (size_t)r * p->stride, bytes);
    tile(a, depth_of(p->k), b, pairs_of(p->k), whole, PANEL, p->add);
    for (int r = 0; r < rows; r++) memcpy(c + (size_t)r * p->stride, whole + r * PANEL, bytes);
}

static inline void block_tiles(const Bf16Block *p) {
    size_t depth = depth_of(p->k);
    for (int j = 0; j < p->n; j += PANEL)
        for (int i = 0; i < p->m; i += TILE_ROWS) {
            const uint32_t *a = p->a + (size_t)i * depth, *b = p->b + (size_t)j * p->deep;
            float *c = p->c + (size_t)i * p->stride + j;
            int rows = smaller(TILE_ROWS, p->m - i), columns = smaller(PANEL, p->n - j);
            if (rows == TILE_ROWS && columns == PANEL)
                tile(a, depth, b, pairs_of(p->k), c, p->stride, p->add);
            else edge_tile(p, a, b, c, rows, columns);
        }
}

static inline void product(const Product *p, float *scratch) {
    uint32_t *panels = (uint32_t *)(void *)scratch, *rows = panels + K_BLOCK / 2 * COLUMN_BLOCK;
    for (int kb = 0; kb < p->k; kb += K_BLOCK)
        for (int j = 0; j < p->n; j += COLUMN_BLOCK) {
            Bf16Block block = {.a = rows,
                               .b = panels,
                               .deep = depth_of(smaller(K_BLOCK, p->k - kb)),
                               .stride = p->stride,
                               .n = smaller(COLUMN_BLOCK, p->n - j),
                               .k = smaller(K_BLOCK, p->k - kb),
                               .add = p->add || kb > 0};
            if (p->panels.data) {
                block.b = panels_at(&p->panels, kb, j);
                block.deep = depth_of(smaller(K_BLOCK, p->panels.k - kb));
            } else {
                View b = p->b;
                b.data += (size_t)kb * b.row + (size_t)j * b.column;
                pack_b(&b, block.k, block.n, panels);
            }
            for (int i = 0; i < p->m; i += ROW_BLOCK) {
                View a = p->a;
                a.data += (size_t)i * a.row + (size_t)kb * a.column;
                block.m = smaller(ROW_BLOCK, p->m - i);
                block.c = p->c + (size_t)i * p->stride + j;
                pack_a(&a, block.m, block.k, rows);
                block_tiles(&block);
            }
        }
}
#endif
