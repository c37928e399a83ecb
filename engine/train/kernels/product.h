// The matrix product of training in f32, and the packing of its operands; part of each kernel set (see
// engine/cpu/kernels/lanes.h).
//
// c = a b is computed in tiles of TILE_ROWS x TILE_COLUMNS sums that stay in registers while k advances: each
// step of k loads a row of b and multiplies it by TILE_ROWS single numbers of a. Floor: 2 m n k operations at
// the processor's peak; packing b is amortised over m, packing a over n.
//
//      b is packed into panels of TILE_COLUMNS        a is read in place if its rows are contiguous
//      columns, K_BLOCK deep: one stream, and         along k; if its columns are (dy^T in
//      a panel stays in the nearest cache while       dW += dy^T x), it is packed into panels of
//      ROW_BLOCK rows of a pass over it.              TILE_ROWS rows, so that a step of k stays on a page.
//
// The three products of a linear layer y = x W^T, with W (outputs, inputs):
//
//      forward    y  = x  W^T    b = W^T: packed across     a = x in place
//      backward   dx = dy W      b = W: packed along        a = dy in place
//                 dW += dy^T x   b = x: packed along        a = dy^T: packed
//
// Reached on one AVX-512 core of 2.5 GHz that does 147 GFLOP/s with operands in registers, other cores busy,
// with 2,048 rows of a model 256 wide: 85 to 110 forward, 85 to 118 for dx, 102 to 112 for dW, so 58 to 80%.
#pragma once
#include "engine/cpu/kernels/lanes.h"
#include "engine/cpu/kernels/transpose.h"
#include "engine/train/kernels/kernels.h"

// As many sums as fit in registers together with a row of b and a number of a.
#if defined(__AVX512F__)
enum { TILE_ROWS = 12, TILE_LANES = 2 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 6, TILE_LANES = 1 };
#else
enum { TILE_ROWS = 2, TILE_LANES = 1 };
#endif
enum { TILE_COLUMNS = TILE_LANES * LANES, PANEL = TILE_COLUMNS };

// A panel of b, K_BLOCK x TILE_COLUMNS floats, leaves a quarter of a 32 KB first-level cache free; ROW_BLOCK
// rows of a, K_BLOCK deep, stay in the second level while all panels are multiplied by them.
enum { K_BLOCK = 192, COLUMN_BLOCK = 2048, ROW_BLOCK = 24 * TILE_ROWS };
enum { PRODUCT_SCRATCH = K_BLOCK * COLUMN_BLOCK + ROW_BLOCK * K_BLOCK };

static inline int smaller(int a, int b) { return a < b ? a : b; }

// --- packing ---------------------------------------------------------------------------------------------

// Packs contiguous rows, `stride` apart, into panels `width` wide and `depth` rows deep, padded with zeros.
// PACK_DEEP rows are copied from end to end at a time, so that memory is read once and in order.
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

// Transposes up to SQUARE x SQUARE numbers: `from` has `runs` runs of `depth` numbers, `to` has rows `width`
// apart.
static inline void pack_square(const float *from, size_t stride, int runs, int depth, size_t width,
                               float *to) {
    uint32_t square[SQUARE][SQUARE] = {{0}}, turned[SQUARE * SQUARE];
    for (int j = 0; j < runs; j++) memcpy(square[j], from + (size_t)j * stride, (size_t)depth * sizeof *from);
    transpose_square((const uint32_t(*)[SQUARE])square, turned, SQUARE, SQUARE, SQUARE);
    for (int i = 0; i < depth; i++) memcpy(to + (size_t)i * width, turned + i * SQUARE, SQUARE * sizeof *to);
}

// pack_along for contiguous columns: `columns` runs of `depth` numbers. width is a multiple of SQUARE.
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

// Packs columns [0, n) of k rows of b.
static inline void pack_b(const View *b, int k, int n, float *to) {
    if (b->column == 1) pack_along(b->data, b->row, (size_t)n, (size_t)k, TILE_COLUMNS, to);
    else pack_across(b->data, b->column, n, k, TILE_COLUMNS, to);
}

// Floats of packed b (k, n): blocks of K_BLOCK rows follow each other, each with all columns.
static inline size_t panels_size(int k, int n) {
    return (size_t)k * (size_t)((n + PANEL - 1) / PANEL) * PANEL;
}

// The start of block kb at column j, a multiple of PANEL.
static inline float *panels_at(const Panels *p, int kb, int j) {
    return p->data + panels_size(kb, p->n) + (size_t)j * (size_t)smaller(K_BLOCK, p->k - kb);
}

static inline void pack(const View *b, const Panels *to, int from, int end) {
    for (int kb = 0; kb < to->k; kb += K_BLOCK) {
        View block = {b->data + (size_t)kb * b->row + (size_t)from * b->column, b->row, b->column};
        pack_b(&block, smaller(K_BLOCK, to->k - kb), end - from, panels_at(to, kb, from));
    }
}

// Packs rows [0, m) of k columns of a, whose columns are contiguous.
static inline void pack_a(const View *a, int m, int k, float *to) {
    pack_along(a->data, a->column, (size_t)m, (size_t)k, TILE_ROWS, to);
}

// --- the product -----------------------------------------------------------------------------------------

// The rows of a that a tile reads: number (r, i) is rows[r][i * column].
typedef struct TileRows {
    const float *rows[TILE_ROWS];
} TileRows;

// Writes a tile of sums over k steps to c, or adds them to c. c is prefetched, because it is needed only when
// the sums are complete.
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

// A tile at the edge of c, of rows x columns, is computed in a buffer.
INLINE void edge_tile(const TileRows *a, size_t column, const float *b, int k, float *c, size_t stride,
                      int rows, int columns, bool add) {
    float whole[TILE_ROWS * TILE_COLUMNS] = {0};
    size_t bytes = (size_t)columns * sizeof *c;
    for (int r = 0; add && r < rows; r++) memcpy(whole + r * TILE_COLUMNS, c + (size_t)r * stride, bytes);
    tile(a, column, b, k, whole, TILE_COLUMNS, add);
    for (int r = 0; r < rows; r++) memcpy(c + (size_t)r * stride, whole + r * TILE_COLUMNS, bytes);
}

// A block of c: m rows of a, for any m, times packed panels of b.
typedef struct TileBlock {
    const float *a, *b;
    size_t row, column; // of a; row 0: packed
    int deep;           // rows in a panel of b; the product reads the first k
    float *c;
    size_t stride;
    int m, n, k;
    bool add;
} TileBlock;

// Rows past the end repeat the last row; edge_tile drops their sums.
static inline TileRows tile_rows(const TileBlock *p, int i) {
    TileRows a = {{0}};
    for (int r = 0; r < TILE_ROWS; r++)
        a.rows[r] =
            p->row ? p->a + (size_t)smaller(i + r, p->m - 1) * p->row : p->a + (size_t)i * (size_t)p->k + r;
    return a;
}

// Callers pass `column` as a constant.
INLINE void block_tiles(const TileBlock *p, size_t column) {
    for (int j = 0; j < p->n; j += TILE_COLUMNS) {
        const float *b = p->b + (size_t)j * (size_t)p->deep;
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

// Computes rows [i, i + ROW_BLOCK) of c for block (kb, j). The caller has set b, depth and columns.
static inline void product_rows(const Product *p, TileBlock block, int i, int j, int kb, float *panel) {
    View a = p->a;
    a.data += (size_t)i * a.row + (size_t)kb * a.column;
    block.a = a.data;
    block.row = a.row;
    block.column = a.column;
    block.c = p->c + (size_t)i * p->stride + j;
    block.m = smaller(ROW_BLOCK, p->m - i);
    if (a.column == 1) {
        block_tiles(&block, 1);
        return;
    }
    pack_a(&a, block.m, block.k, panel);
    block.a = panel;
    block.row = 0;
    block_tiles(&block, TILE_ROWS);
}

static inline void product(const Product *p, float *scratch) {
    for (int kb = 0; kb < p->k; kb += K_BLOCK)
        for (int j = 0; j < p->n; j += COLUMN_BLOCK) {
            TileBlock block = {.b = scratch,
                               .deep = smaller(K_BLOCK, p->k - kb),
                               .stride = p->stride,
                               .n = smaller(COLUMN_BLOCK, p->n - j),
                               .k = smaller(K_BLOCK, p->k - kb),
                               .add = p->add || kb > 0};
            if (p->panels.data) {
                block.b = panels_at(&p->panels, kb, j);
                block.deep = smaller(K_BLOCK, p->panels.k - kb);
            } else {
                View b = p->b;
                b.data += (size_t)kb * b.row + (size_t)j * b.column;
                pack_b(&b, block.k, block.n, scratch);
            }
            for (int i = 0; i < p->m; i += ROW_BLOCK)
                product_rows(p, block, i, j, kb, scratch + K_BLOCK * COLUMN_BLOCK);
        }
}
