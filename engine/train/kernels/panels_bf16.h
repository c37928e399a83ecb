// Both sides of a product as pairs of bf16 along k, one word per pair, rounded to nearest even; part of the
// kernel sets that multiply bf16. How they lie; pack_bf16.h puts them there.
//
//      a  rows of words, as they follow each other along k: one word is given to all lanes of a register
//      b  panels of PANEL columns, a row of words for each pair along k: one load gives 16 columns
//
// An AMX tile of a is 16 such rows, one of b half a panel of 16 pairs: both load from here as they lie. So
// the depth of both is a multiple of 16 pairs, filled up with zeros.
#pragma once
#include "engine/train/kernels/kernels.h"

#include <stddef.h>
#include <stdint.h>

enum { WORDS = 16, RUN = 2 * WORDS, PANEL = 2 * WORDS }; // words in a register, numbers in them

// K_BLOCK numbers of PANEL columns leave a quarter of a first-level cache of 32 KB free; the ROW_BLOCK rows
// of a stay in the second level while all panels pass them.
enum { TILE_ROWS = 12, TILE_LANES = 2, K_BLOCK = 384, COLUMN_BLOCK = 2048, ROW_BLOCK = 24 * TILE_ROWS };
enum { PRODUCT_SCRATCH = (COLUMN_BLOCK + ROW_BLOCK) * K_BLOCK / 2 };

static inline int smaller(int a, int b) { return a < b ? a : b; }
static inline int whole_of(int n, int unit) { return (n + unit - 1) / unit * unit; }
static inline int pairs_of(int k) { return (k + 1) / 2; }
static inline size_t depth_of(int k) { return (size_t)whole_of(pairs_of(k), WORDS); }

// Blocks of K_BLOCK rows follow each other, each of all columns; a block of k is whole registers deep.
static inline size_t panels_size(int k, int n) { return depth_of(k) * (size_t)whole_of(n, PANEL); }

// Where block (kb, column j) begins.
static inline uint32_t *panels_at(const Panels *p, int kb, int j) {
    return (uint32_t *)(void *)p->data + panels_size(kb, p->n) +
           (size_t)j * depth_of(smaller(K_BLOCK, p->k - kb));
}
