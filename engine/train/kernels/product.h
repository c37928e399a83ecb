// The matrix product of training; part of each kernel set (see engine/cpu/kernels/lanes.h).
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
//
// Reached on one AVX-512 core of 2.5 GHz that does 147 GFLOP/s with operands in registers, neighbours busy,
// with 2,048 rows of a model 256 wide: 85 to 110 forward, 85 to 118 for dx, 102 to 112 for dW, so 58 to 80%.
#pragma once
#include "engine/train/kernels/pack.h"

// What a tile reads: number (r, i) of a stands at rows[r][i * column].
typedef struct TileRows {
    const float *rows[TILE_ROWS];
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
    int deep;           // rows of a panel of b, of which k are read
    float *c;
    size_t stride;
    int m, n, k;
    bool add;
} Block;

// Rows beyond the last are the last again: what they give is thrown away.
static inline TileRows tile_rows(const Block *p, int i) {
    TileRows a = {{0}};
    for (int r = 0; r < TILE_ROWS; r++)
        a.rows[r] =
            p->row ? p->a + (size_t)smaller(i + r, p->m - 1) * p->row : p->a + (size_t)i * (size_t)p->k + r;
    return a;
}

// `column` comes as a constant.
INLINE void block_tiles(const Block *p, size_t column) {
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

// Rows [i, i + ROW_BLOCK) of a block of c, whose panels, depth and columns are there.
static inline void product_rows(const Product *p, Block block, int i, int j, int kb, float *panel) {
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
            Block block = {.b = scratch,
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
