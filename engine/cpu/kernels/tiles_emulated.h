// Matrix tiles in plain C, for processors without them; see tiles.h, which includes this there. They do what
// the manual says the instructions do, so that what is exact here is so by the same reasons there.
#pragma once
#include "engine/cpu/kernels/tiles.h"

#include <float.h>
#include <math.h>

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

// A product of two bf16 is exact in f32, unless it leaves its range: mostly, then, a product and a sum are
// the fused multiply-add that the manual asks for, in less time than a call.
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
