// The matrix product of training; part of each kernel set (see engine/cpu/lanes.h).
//
// c = a b goes in tiles of TILE_ROWS x TILE_COLUMNS sums that stay in registers while k runs: each step of k
// loads a row of b and multiplies it by TILE_ROWS single numbers of a. Floor: 2 m n k operations at the
// processor's peak; packing b is paid back over m, packing a over n.
//
//      b is packed into panels of TILE_COLUMNS        a is read where it lies if its rows run along k;
//      columns, K_BLOCK deep: one stream, and         if its columns do (dy^T in dW += dy^T x), it is
//      a panel stays in the nearest cache while       packed into panels of TILE_ROWS rows, so that
//      ROW_BLOCK rows of a pass it.                   a step of k does not jump to another page.
//
// The three products of a linear layer y = x W^T, with W (outputs, inputs):
//
//      forward    y  = x  W^T    b = W^T: packed across     a = x as it lies
//      backward   dx = dy W      b = W: packed along        a = dy as it lies
//                 dW += dy^T x   b = x: packed along        a = dy^T: packed
#pragma once
#include "engine/cpu/lanes.h"
#include "engine/cpu/transpose.h"
#include "engine/train/kernels.h"

// As many sums as registers hold beside a row of b and a number of a.
#if defined(__AVX512F__)
enum { TILE_ROWS = 12, TILE_LANES = 2 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 6, TILE_LANES = 1 };
#else
enum { TILE_ROWS = 2, TILE_LANES = 1 };
#endif
enum { TILE_COLUMNS = TILE_LANES * LANES };

// K_BLOCK x TILE_COLUMNS floats are half a first-level cache or less; K_BLOCK x COLUMN_BLOCK and ROW_BLOCK x
// K_BLOCK together stay in the second level.
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

// Rows [0, m) of k columns of a whose columns are contiguous.
static inline void pack_a(const View *a, int m, int k, float *to) {
    pack_along(a->data, a->column, (size_t)m, (size_t)k, TILE_ROWS, to);
}

// What a tile reads: number (r, i) of a stands at rows[r][i * column].
typedef struct TileRows {
    const float *rows[TILE_ROWS];
    size_t column;
} TileRows;

// A tile at c: its sums over k steps, alone or added to what stands there. c is fetched early: it is needed
// when the sums are done.
INLINE void tile(const TileRows *a, size_t column, const float *b, int k, float *c, size_t stride, bool add) {
    Lanes sum[TILE_ROWS][TILE_LANES];
#pragma GCC unroll 16
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 2
        for (int l = 0; l < TILE_LANES; l++) {
            __builtin_prefetch(c + (size_t)r * stride + l * LANES, 1);
            sum[r][l] = lanes_set(0);
        }
    for (size_t i = 0; i < (size_t)k; i++, b += TILE_COLUMNS) {
        Lanes in[TILE_LANES];
#pragma GCC unroll 2
        for (int l = 0; l < TILE_LANES; l++) in[l] = lanes_load(b + l * LANES);
#pragma GCC unroll 16
        for (int r = 0; r < TILE_ROWS; r++) {
            Lanes x = lanes_set(a->rows[r][i * column]);
#pragma GCC unroll 2
            for (int l = 0; l < TILE_LANES; l++) sum[r][l] = lanes_fma(x, in[l], sum[r][l]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 2
        for (int l = 0; l < TILE_LANES; l++) {
            float *to = c + (size_t)r * stride + l * LANES;
            lanes_store(to, add ? lanes_fma(lanes_load(to), lanes_set(1), sum[r][l]) : sum[r][l]);
        }
}

// A tile of which only rows x columns are there goes through a buffer.
INLINE void edge_tile(const TileRows *a, size_t column, const float *b, int k, float *c, size_t stride,
                      int rows, int columns, bool add) {
    float whole[TILE_ROWS * TILE_COLUMNS] = {0};
    size_t bytes = (size_t)columns * sizeof *c;
    for (int r = 0; add && r < rows; r++) memcpy(whole + r * TILE_COLUMNS, c + (size_t)r * stride, bytes);
    tile(a, column, b, k, whole, TILE_COLUMNS, add);
    for (int r = 0; r < rows; r++) memcpy(c + (size_t)r * stride, whole + r * TILE_COLUMNS, bytes);
}

// A block of c: m rows of a, of any m, with packed panels of b.
typedef struct Block {
    const float *a, *b;
    size_t row, column; // of a; row 0: packed
    float *c;
    size_t stride;
    int m, n, k;
    bool add;
} Block;

// Rows beyond the last are the last again: what they give is thrown away.
static inline TileRows tile_rows(const Block *p, int i) {
    TileRows a = {.column = p->column};
    for (int r = 0; r < TILE_ROWS; r++)
        a.rows[r] =
            p->row ? p->a + (size_t)smaller(i + r, p->m - 1) * p->row : p->a + (size_t)i * (size_t)p->k + r;
    return a;
}

// `column` comes as a constant.
INLINE void block_tiles(const Block *p, size_t column) {
    for (int j = 0; j < p->n; j += TILE_COLUMNS) {
        const float *b = p->b + (size_t)j * (size_t)p->k;
        int columns = smaller(TILE_COLUMNS, p->n - j);
        for (int i = 0; i < p->m; i += TILE_ROWS) {
            TileRows a = tile_rows(p, i);
            float *c = p->c + (size_t)i * p->stride + j;
            int rows = smaller(TILE_ROWS, p->m - i);
            if (rows == TILE_ROWS && columns == TILE_COLUMNS) tile(&a, column, b, p->k, c, p->stride, p->add);
            else edge_tile(&a, column, b, p->k, c, p->stride, rows, columns, p->add);
        }
    }
}

// Rows [i, i + ROW_BLOCK) of c for the packed block of b.
static inline void product_rows(const Product *p, int i, int j, int kb, int n, int k, const float *b,
                                float *panel) {
    View a = p->a;
    a.data += (size_t)i * a.row + (size_t)kb * a.column;
    Block block = {.a = a.data,
                   .b = b,
                   .row = a.row,
                   .column = a.column,
                   .c = p->c + (size_t)i * p->stride + j,
                   .stride = p->stride,
                   .m = smaller(ROW_BLOCK, p->m - i),
                   .n = n,
                   .k = k,
                   .add = p->add || kb > 0};
    if (a.column == 1) {
        block_tiles(&block, 1);
        return;
    }
    pack_a(&a, block.m, k, panel);
    block.a = panel;
    block.row = 0;
    block_tiles(&block, TILE_ROWS);
}

static inline void product(const Product *p, float *scratch) {
    float *panel = scratch + K_BLOCK * COLUMN_BLOCK;
    for (int kb = 0; kb < p->k; kb += K_BLOCK)
        for (int j = 0; j < p->n; j += COLUMN_BLOCK) {
            int k = smaller(K_BLOCK, p->k - kb), n = smaller(COLUMN_BLOCK, p->n - j);
            View b = p->b;
            b.data += (size_t)kb * b.row + (size_t)j * b.column;
            pack_b(&b, k, n, scratch);
            for (int i = 0; i < p->m; i += ROW_BLOCK) product_rows(p, i, j, kb, n, k, scratch, panel);
        }
}
