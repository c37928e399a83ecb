// Activations of 8 bits for the products of codes (products_int8.h): part of each kernel set.
//
//      group of rows  | step 0: r0, r1, .. | step 1: r0, .. | ..       wide steps, then narrow ones
//      row in a step  | words | scales | sums of blocks, or starts
#pragma once
#include "engine/cpu/kernels/lanes_int8.h"
#include "engine/cpu/kernels/ops.h"

static inline int int8_wide(int columns) { return columns / INT8_BLOCK / INT8_WIDE; }
static inline int int8_rest(int columns) { return columns / INT8_BLOCK % INT8_WIDE; }
static inline int int8_narrow(int columns) { return (int8_rest(columns) + INT8_NARROW - 1) / INT8_NARROW; }

// Whether sums of codes start at the sum of the activations, times what codes have more in the registers.
INLINE bool int8_starts(int bits) { return bits == 6 || (bits == 8 && INT8_STARTS); }

// Bytes of a row's step of registers of words; of the row.
static inline size_t int8_step_bytes(int bits, int vectors) {
    int more = codes_lowered(bits) ? 2 : int8_starts(bits) ? 3 : 1;
    return (size_t)(vectors + more) * INT8_VECTOR;
}
static inline size_t int8_row_bytes(int bits, int columns) {
    return (size_t)int8_wide(columns) * int8_step_bytes(bits, INT8_WORDS) +
           (size_t)int8_narrow(columns) * int8_step_bytes(bits, 2);
}

enum { INT8_FEW = 4 }; // rows; INT8_ROWS are at least as many
static inline int int8_groups(int rows) { return (rows + INT8_ROWS - 1) / INT8_ROWS; }
static inline int int8_first(int rows, int group) { return rows * group / int8_groups(rows); }
static inline int int8_group_of(int rows, int row) { return ((row + 1) * int8_groups(rows) - 1) / rows; }

// A block into a step of registers of words, from place `place` on.
static inline void int8_put(int bits, const Int8Block *from, int vectors, int place, unsigned char *step) {
    int8_t words[INT8_WORDS][4];
    int32_t start[INT8_WORDS], all = 0;
    for (int v = 0; v < INT8_WORDS; v++) {
        for (int i = 0; i < 4; i++)
            words[v][i] = from->code[bits == 4 ? 8 * (v % 4) + 2 * i + v / 4 : 4 * v + i];
        start[v] = -(1 << (bits - 1)) * (words[v][0] + words[v][1] + words[v][2] + words[v][3]);
    }
    unsigned char *scales = step + (size_t)vectors * INT8_VECTOR;
    bool wide = vectors == INT8_WORDS;
    for (int v = 0; v < INT8_WORDS; v++)
        memcpy(step + (wide ? v : v / 4) * INT8_VECTOR + 4 * (place + (wide ? 0 : v % 4)), words[v], 4);
    for (int j = 0; j < (wide ? 1 : 4); j++) {
        memcpy(scales + 4 * (place + j), &from->scale, 4);
        if (!int8_starts(bits)) continue;
        int32_t first = start[j];
        for (int v = 1; wide && v < 4; v++) first += start[v];
        all = first + start[4 + j];
        for (int v = 5; wide && v < INT8_WORDS; v++) all += start[v];
        memcpy(scales + INT8_VECTOR + 4 * (place + j), &all, 4);
        memcpy(scales + 2 * INT8_VECTOR + 4 * (place + j), &first, 4);
    }
}

// Row `at` of a group of rows.
static inline void int8_pack_row(const float *x, const Packed *p, unsigned char *group, int at, int rows) {
    size_t wide = int8_step_bytes(p->bits, INT8_WORDS), narrow = int8_step_bytes(p->bits, 2);
    unsigned char *to = group + (size_t)at * wide;
    Int8Block block;
    for (int step = 0; step < int8_wide(p->columns); step++, to += (size_t)rows * wide)
        for (int b = 0; b < INT8_WIDE; b++, x += INT8_BLOCK) {
            int8_round(x, &block);
            int8_put(p->bits, &block, INT8_WORDS, place_of(b), to);
            if (codes_lowered(p->bits))
                memcpy(to + 9 * INT8_VECTOR + 4 * place_of(b), &block.sum, sizeof block.sum);
        }
    to += (size_t)at * narrow - (size_t)at * wide;
    unsigned char *sums = to + 3 * INT8_VECTOR; // of all that are left, in the first narrow step
    for (int b = 0; b < int8_rest(p->columns); b++, x += INT8_BLOCK) {
        if (b > 0 && b % INT8_NARROW == 0) to += (size_t)rows * narrow;
        if (b % INT8_NARROW == 0) memset(to, 0, narrow);
        int8_round(x, &block);
        int8_put(p->bits, &block, 2, b % INT8_NARROW * 4, to);
        if (codes_lowered(p->bits)) memcpy(sums + 4 * b, &block.sum, sizeof block.sum);
    }
}

static inline void int8_pack(const float *x, const Packed *p, int first, int last) {
    for (int r = first; r < last; r++) {
        int group = int8_group_of(p->rows, r), begin = int8_first(p->rows, group);
        unsigned char *to = (unsigned char *)p->data + (size_t)begin * int8_row_bytes(p->bits, p->columns);
        int8_pack_row(x + (size_t)r * (size_t)p->columns, p, to, r - begin,
                      int8_first(p->rows, group + 1) - begin);
    }
}
