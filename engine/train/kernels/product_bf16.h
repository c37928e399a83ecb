// The matrix product of training with operands rounded to bf16 and sums in f32; part of the kernel sets whose
// processor multiplies pairs of bf16 (VDPBF16PS). The blocks are those of product.h, the packing is
// pack_bf16.h's.
//
// A pair's products are added to the sum one after the other; denormals count as zero. Floor: 2 m n k
// operations at twice the rate of f32.
//
// Reached, packing included, on a Zen 4 core of 3.66 GHz that does 234 GFLOP/s with operands in registers
// (117 in f32), 512 and 1,024 rows of a model 256 wide: 192 to 216 forward, 187 to 220 for dx, 182 to 207 for
// dW; product.h reaches 79 to 111 there.
#pragma once
#include "engine/cpu/kernels/lanes.h"
#include "engine/train/kernels/pack_bf16.h"

#if defined(__AVX512BF16__)
// TILE_ROWS x PANEL sums over `pairs`, alone or added to what stands at c. Rows of a are `depth` words apart;
// three share a register that points at them, or there would be more pointers than registers. c is fetched
// early: it is needed when the sums are done.
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

// A block of c: m rows of packed a with packed panels of b.
typedef struct Block {
    const uint32_t *a, *b;
    size_t deep; // pairs of a panel of b, of which those of k are read
    float *c;
    size_t stride;
    int m, n, k;
    bool add;
} Block;

// A tile of which only rows x columns are there goes through a buffer.
INLINE void edge_tile(const Block *p, const uint32_t *a, const uint32_t *b, float *c, int rows, int columns) {
    float whole[TILE_ROWS * PANEL] = {0};
    size_t bytes = (size_t)columns * sizeof *c;
    for (int r = 0; p->add && r < rows; r++) memcpy(whole + r * PANEL, c + (size_t)r * p->stride, bytes);
    tile(a, depth_of(p->k), b, pairs_of(p->k), whole, PANEL, p->add);
    for (int r = 0; r < rows; r++) memcpy(c + (size_t)r * p->stride, whole + r * PANEL, bytes);
}

static inline void block_tiles(const Block *p) {
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
            Block block = {.a = rows,
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
