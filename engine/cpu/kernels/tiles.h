// Matrix tiles: eight registers of 16 rows by 64 bytes, and the product that adds 16 x 16 sums of bf16 pairs.
// Code compiled without them gets the same operations in plain C, so that kernels on tiles run, and can be
// checked, on any processor.
//
//      c (16, columns) += a (16, 32 along k) . b (16 pairs along k, columns x 2)
//
// As Intel's manual defines the product, one sum runs over the even places of k and another over the odd
// ones, both from zero and in order. The two are added to each other, then to c; subnormals are zero
// throughout. So an element of c depends only on its row of a and its column of b, and zeros at the end of k
// change nothing.
//
// Tile numbers must be literals: they're part of the instruction. By convention 0 to 3 are sums, 4 and 5
// weights, 6 and 7 activations; see tiles_config.
#pragma once
#include "engine/cpu/kernels/ops.h"

// Attention on matrix tiles (attend_tiles.c, compiled with the flags of ops_amx.c). Returns false, and does
// nothing, if keys aren't in bf16 or heads aren't whole tiles wide.
bool attend_on_tiles(const Attend *a);

enum { TILE_ROWS = 16, TILE_BYTES = 64, TILE_K = 32 };

// Besides the tiles: tile_round rounds TILE_K floats to a row of bf16 (nearest, ties to even, subnormals
// zero). tile_pair interleaves two rows of TILE_K bf16, neighbours along k. Of every 8 places, the first 4 go
// to `low` and the others to `high`, with one instruction each.
//
//      low   a0 b0 a1 b1 a2 b2 a3 b3 | a8 b8 .. a11 b11 | ..      high   a4 b4 .. a7 b7 | a12 b12 .. | ..

// left_columns: of tiles 0, 2 and 6; right_columns: of 1, 3 and 7 (four bytes each). Weights are always
// whole.
typedef struct TileConfig {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} TileConfig;

static inline TileConfig tiles_config(int left_columns, int right_columns) {
    TileConfig c = {.palette = 1};
    const int columns[8] = {left_columns, right_columns, left_columns, right_columns,
                            TILE_ROWS,    TILE_ROWS,     left_columns, right_columns};
    for (int i = 0; i < 8; i++) {
        c.rows[i] = TILE_ROWS;
        c.bytes[i] = (uint16_t)(4 * (columns[i] ? columns[i] : 1));
    }
    return c;
}

#if defined(__AMX_BF16__) || defined(__AMXBF16__) // the latter is clang's name before 15
#define TILES_ARE_REAL
#include <immintrin.h>

typedef struct Tiles {
    TileConfig config;
} Tiles;

// gcc doesn't know that tile loads read memory: data just written for them must be forced out of registers.
static inline void tiles_see_memory(void) { __asm__ volatile("" ::: "memory"); }

static inline void tiles_begin(Tiles *t, int left_columns, int right_columns) {
    t->config = tiles_config(left_columns, right_columns);
    __asm__ volatile("" ::"r"(&t->config) : "memory");
    _tile_loadconfig(&t->config);
}
static inline void tiles_end(UNUSED Tiles *t) { _tile_release(); }
#define tile_zero(t, number)             _tile_zero(number)
#define tile_load(t, number, from, step) _tile_loadd(number, from, step)
#define tile_store(t, number, to, step)  _tile_stored(number, to, step)
#define tile_multiply(t, sum, a, b)      _tile_dpbf16ps(sum, a, b)

static inline void tile_round(const float *x, void *row) {
    __m512bh half = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x));
    _mm512_storeu_si512(row, (__m512i)half);
}

static inline void tile_pair(const uint16_t *a, const uint16_t *b, void *low, void *high) {
    __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
    _mm512_storeu_si512(low, _mm512_unpacklo_epi16(x, y));
    _mm512_storeu_si512(high, _mm512_unpackhi_epi16(x, y));
}

#else
#include <float.h>
#include <math.h>

// Tiles in plain C. They follow the manual's definition of the instructions, so a kernel that's exact here is
// exact on tiles by the same reasoning.
typedef struct Tile {
    unsigned char row[TILE_ROWS][TILE_BYTES];
} Tile;

typedef struct Tiles {
    TileConfig config;
    Tile tile[8];
} Tiles;

static inline void tiles_see_memory(void) {}
static inline void tiles_begin(Tiles *t, int left_columns, int right_columns) {
    memset(t, 0, sizeof *t);
    t->config = tiles_config(left_columns, right_columns);
}
static inline void tiles_end(Tiles *t) { (void)t; }
static inline void tile_zero(Tiles *t, int number) { memset(&t->tile[number], 0, sizeof(Tile)); }
static inline void tile_load(Tiles *t, int number, const void *from, size_t step) {
    tile_zero(t, number);
    for (size_t r = 0; r < t->config.rows[number]; r++)
        memcpy(t->tile[number].row[r], (const char *)from + r * step, t->config.bytes[number]);
}
static inline void tile_store(const Tiles *t, int number, void *to, size_t step) {
    for (size_t r = 0; r < t->config.rows[number]; r++)
        memcpy((char *)to + r * step, t->tile[number].row[r], t->config.bytes[number]);
}
static inline float no_subnormal(float x) { return fabsf(x) < FLT_MIN ? 0 * x : x; }

static inline float tile_float(const Tile *t, int row, int i) {
    uint16_t half;
    memcpy(&half, t->row[row] + 2 * i, sizeof half);
    return no_subnormal(bf16_to_f32(half));
}

// A product of two bf16 is exact in f32 unless it leaves f32's range: a product and a sum are then the fused
// multiply-add that the manual specifies, in less time than a call.
static inline float fused(float x, float y, float sum) {
    float product = x * y, size = fabsf(product);
    return (size >= FLT_MIN && size <= FLT_MAX) || x == 0 || y == 0 ? sum + product : fmaf(x, y, sum);
}

static inline void tile_multiply(Tiles *t, int sum, int a, int b) {
    int steps = t->config.bytes[a] / 2;
    float y[TILE_K][TILE_ROWS];
    for (int k = 0; k < TILE_K; k++)
        for (int n = 0; n < TILE_ROWS; n++) y[k][n] = tile_float(&t->tile[b], k / 2, 2 * n + k % 2);
    for (int m = 0; m < t->config.rows[sum]; m++) {
        float c[TILE_ROWS], part[2][TILE_ROWS] = {{0}};
        memcpy(c, t->tile[sum].row[m], sizeof c);
        for (int k = 0; k < steps; k++) {
            float x = tile_float(&t->tile[a], m, k), *to = part[k % 2];
            for (int n = 0; n < TILE_ROWS; n++) to[n] = no_subnormal(fused(x, y[k][n], to[n]));
        }
        for (int n = 0; n < TILE_ROWS; n++)
            c[n] = no_subnormal(no_subnormal(c[n]) + no_subnormal(part[0][n] + part[1][n]));
        memcpy(t->tile[sum].row[m], c, t->config.bytes[sum]);
    }
}

static inline void tile_round(const float *x, void *row) {
    uint16_t half[TILE_K] = {0};
    for (int i = 0; i < TILE_K; i++) half[i] = f32_to_bf16(no_subnormal(x[i]));
    memcpy(row, half, sizeof half);
}

static inline void tile_pair(const uint16_t *a, const uint16_t *b, void *low, void *high) {
    uint16_t half[2][TILE_K] = {{0}};
    for (int i = 0; i < TILE_K; i++) {
        uint16_t *to = half[i / 4 % 2] + i / 8 * 8 + i % 4 * 2;
        to[0] = a[i];
        to[1] = b[i];
    }
    memcpy(low, half[0], sizeof half[0]);
    memcpy(high, half[1], sizeof half[1]);
}
#endif
