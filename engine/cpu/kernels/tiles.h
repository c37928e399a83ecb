// Matrix tiles: eight registers of 16 rows by 64 bytes, and the product that adds 16 x 16 sums of bf16 pairs.
// On a processor without them the same operations in plain C, so that what is built on them can be run and
// checked anywhere.
//
//      c (16, columns) += a (16, 32 along k) . b (16 pairs along k, columns x 2)
//
// As Intel's manual defines the product, a sum starts at zero over the even places of k and another over the
// odd ones, both in order; the two are added, then that to c, subnormals being zero throughout. So an element
// of c depends on its row of a and its column of b alone, and zeros at the end of k change nothing.
//
// Tile numbers must be written as literal numbers: they are part of the instruction. By convention 0 to 3 are
// sums, 4 and 5 weights, 6 and 7 activations; see tiles_configure.
#pragma once
#include "engine/base/numbers.h"

enum { TILE_ROWS = 16, TILE_BYTES = 64, TILE_K = 32 };

// Beside the tiles: tile_round makes a row of bf16 of TILE_K floats (nearest, ties to even, subnormals zero);
// tile_pair makes two of two rows of TILE_K bf16, a's and b's in turn: as neighbours along k they stand in.
// Of 8 places the first 4 go to `low`, the others to `high`, which is one instruction each.
//
//      low   a0 b0 a1 b1 a2 b2 a3 b3 | a8 b8 .. a11 b11 | ..      high   a4 b4 .. a7 b7 | a12 b12 .. | ..

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

#if defined(__AMX_BF16__) || defined(__AMXBF16__) // the latter is how clang spells it until 15
#define TILES_ARE_REAL
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
#include "engine/cpu/kernels/tiles_emulated.h"
#endif
