// Rows and columns of matrices as panels that the tiles of product.h read in one stream; part of each kernel
// set (see engine/cpu/kernels/lanes.h).
#pragma once
#include "engine/cpu/kernels/lanes.h"
#include "engine/cpu/kernels/transpose.h"
#include "engine/train/kernels/kernels.h"

// As many sums as registers hold beside a row of b and a number of a.
#if defined(__AVX512F__)
enum { TILE_ROWS = 12, TILE_LANES = 2 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 6, TILE_LANES = 1 };
#else
enum { TILE_ROWS = 2, TILE_LANES = 1 };
#endif
enum { TILE_COLUMNS = TILE_LANES * LANES, PANEL = TILE_COLUMNS };

// A panel of b, K_BLOCK x TILE_COLUMNS floats, leaves a quarter of a first-level cache of 32 KB free;
// ROW_BLOCK rows of a, K_BLOCK deep, stay in the second level while all panels pass them, once for each block
// of rows.
enum { K_BLOCK = 192, COLUMN_BLOCK = 2048, ROW_BLOCK = 24 * TILE_ROWS };
enum { PRODUCT_SCRATCH = K_BLOCK * COLUMN_BLOCK + ROW_BLOCK * K_BLOCK };

static inline int smaller(int a, int b) { return a < b ? a : b; }

// Both packings turn contiguous rows, `stride` apart, into panels that are `width` wide and `depth` rows
// deep, filled up with zeros. PACK_DEEP rows at a time, from one end to the other, so that what is read is
// read once and in order.
enum { PACK_DEEP = 8 };

INLINE void pack_along(const float *from, size_t stride, size_t columns, size_t depth, size_t width,
                       float *to) {
    size_t whole = columns / width, rest = columns % width;
    for (size_t start = 0; start < depth; start += PACK_DEEP) {
        size_t end = start + PACK_DEEP < depth ? start + PACK_DEEP : depth;
        for (size_t panel = 0; panel < whole; panel++)
            for (size_t i = start; i < end; i++)
                memcpy(to + (panel * depth + i) * width, from + i * stride + panel * width,
                       width * sizeof *to);
        for (size_t i = start; rest && i < end; i++)
            for (size_t c = 0; c < width; c++)
                to[(whole * depth + i) * width + c] = c < rest ? from[i * stride + whole * width + c] : 0;
    }
}

// Up to SQUARE x SQUARE numbers turned over, `from` by runs, `to` by rows `width` apart.
static inline void pack_square(const float *from, size_t stride, int runs, int depth, size_t width,
                               float *to) {
    uint32_t square[SQUARE][SQUARE] = {{0}}, turned[SQUARE * SQUARE];
    for (int j = 0; j < runs; j++) memcpy(square[j], from + (size_t)j * stride, (size_t)depth * sizeof *from);
    transpose_square((const uint32_t(*)[SQUARE])square, turned, SQUARE, SQUARE, SQUARE);
    for (int i = 0; i < depth; i++) memcpy(to + (size_t)i * width, turned + i * SQUARE, SQUARE * sizeof *to);
}

// The same from columns that are contiguous: `columns` runs of `depth` numbers. width is a multiple of
// SQUARE.
static inline void pack_across(const float *from, size_t stride, int columns, int depth, size_t width,
                               float *to) {
    int panels = (columns + (int)width - 1) / (int)width;
    for (int j = 0; j < panels * (int)width; j += SQUARE)
        for (int i = 0; i < depth; i += SQUARE) {
            float *at = to + ((size_t)j / width * (size_t)depth + (size_t)i) * width + (size_t)j % width;
            int first = smaller(j, columns), runs = smaller(SQUARE, columns - first);
            pack_square(from + (size_t)first * stride + i, stride, runs, smaller(SQUARE, depth - i), width,
                        at);
        }
}

// Columns [0, n) of k rows of b.
static inline void pack_b(const View *b, int k, int n, float *to) {
    if (b->column == 1) pack_along(b->data, b->row, (size_t)n, (size_t)k, TILE_COLUMNS, to);
    else pack_across(b->data, b->column, n, k, TILE_COLUMNS, to);
}

// Blocks of K_BLOCK rows follow each other, each of all columns.
static inline size_t panels_size(int k, int n) {
    return (size_t)k * (size_t)((n + PANEL - 1) / PANEL) * PANEL;
}

// Where block (kb, column j) begins.
static inline float *panels_at(const Panels *p, int kb, int j) {
    return p->data + panels_size(kb, p->n) + (size_t)j * (size_t)smaller(K_BLOCK, p->k - kb);
}

static inline void pack(const View *b, const Panels *to, int from, int end) {
    for (int kb = 0; kb < to->k; kb += K_BLOCK) {
        View block = {b->data + (size_t)kb * b->row + (size_t)from * b->column, b->row, b->column};
        pack_b(&block, smaller(K_BLOCK, to->k - kb), end - from, panels_at(to, kb, from));
    }
}

// Rows [0, m) of k columns of a whose columns are contiguous.
static inline void pack_a(const View *a, int m, int k, float *to) {
    pack_along(a->data, a->column, (size_t)m, (size_t)k, TILE_ROWS, to);
}
