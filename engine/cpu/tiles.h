// Matrix tiles: eight registers of 16 rows by 64 bytes, and the product that adds 16 x 16 sums of bf16 pairs.
// On a processor without them the same operations in plain C, so that what is built on them can be run and
// checked anywhere.
//
//      c (16, columns) += a (16, 32 along k) . b (16 pairs along k, columns x 2)
//
// Tile numbers must be written as literal numbers: they are part of the instruction. By convention 0 to 3 are
// sums, 4 and 5 weights, 6 and 7 activations; see tiles_configure.
#pragma once
#include "engine/base/numbers.h"

enum { TILE_ROWS = 16, TILE_BYTES = 64, TILE_K = 32 };

// Columns (four bytes each) of 0 2 6 and of 1 3 7; weights are always whole.
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

#if defined(__AMX_BF16__)
#include <immintrin.h>

typedef struct Tiles {
    TileConfig config;
} Tiles;

// gcc's tile loads do not tell the compiler that they read memory: what was just written for them must be
// forced out.
static inline void tiles_see_memory(void) { __asm__ volatile("" ::: "memory"); }

static inline void tiles_begin(Tiles *t, int left_columns, int right_columns) {
    t->config = tiles_config(left_columns, right_columns);
    __asm__ volatile("" ::"r"(&t->config) : "memory");
    _tile_loadconfig(&t->config);
}
static inline void tiles_end(Tiles *t) {
    (void)t;
    _tile_release();
}
#define tile_zero(t, number)             _tile_zero(number)
#define tile_load(t, number, from, step) _tile_loadd(number, from, step)
#define tile_store(t, number, to, step)  _tile_stored(number, to, step)
#define tile_multiply(t, sum, a, b)      _tile_dpbf16ps(sum, a, b)

#else
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
static inline void tile_multiply(Tiles *t, int sum, int a, int b) {
    for (size_t m = 0; m < t->config.rows[sum]; m++)
        for (size_t n = 0; n < t->config.bytes[sum] / 4u; n++) {
            float c;
            memcpy(&c, t->tile[sum].row[m] + 4 * n, sizeof c);
            for (size_t k = 0; k < t->config.bytes[a] / 2u; k++) {
                uint16_t x, y;
                memcpy(&x, t->tile[a].row[m] + 2 * k, sizeof x);
                memcpy(&y, t->tile[b].row[k / 2] + 4 * n + k % 2 * 2, sizeof y);
                c += bf16_to_f32(x) * bf16_to_f32(y);
            }
            memcpy(t->tile[sum].row[m] + 4 * n, &c, sizeof c);
        }
}
#endif
