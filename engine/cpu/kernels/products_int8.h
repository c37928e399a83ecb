// Products of codes with activations of 8 bits (int8.h) in lanes; part of each kernel set.
//
// One output at a time, of a group of rows whose sums stay in registers: its codes are made bytes once for
// all rows, and activations are operands in memory. A chunk of outputs, which the second-level cache holds,
// is multiplied with one group after another.
//
// Floor: a step of 128 columns of codes of 4 bits takes two multiply-adds of bytes, a conversion, a product
// of scales and a multiply-add with VNNI, where bf16 takes four multiply-adds and a table look-up for each. A
// row and AVX2 gain, many rows with bf16 pairs don't (docs/speed.md).
//
//      group of rows   | step 0: r0, r1, .. | step 1: r0, .. | ..      | sums of blocks: r0, r1, ..
//      row in a step   | half 0 of 4 blocks | half 1 | their scales, each in four lanes
#pragma once
#include "engine/cpu/kernels/lanes_int8.h"
#include "engine/cpu/kernels/scales.h"

enum { INT8_SCALES_AT = INT8_STEP, INT8_STEP_BYTES = INT8_STEP + LANES * sizeof(float) };

static inline int int8_steps(int columns) { return (columns + INT8_STEP - 1) / INT8_STEP; }

// Bytes of a row's sums.
static inline size_t int8_sum_bytes(int columns) {
    return (size_t)((columns / INT8_BLOCK + LANES - 1) / LANES * LANES) * sizeof(float);
}
static inline size_t int8_row_bytes(int columns) {
    return (size_t)int8_steps(columns) * INT8_STEP_BYTES + int8_sum_bytes(columns);
}

static inline int int8_groups(int rows) { return (rows + INT8_ROWS - 1) / INT8_ROWS; }
static inline int int8_first(int rows, int group) { return rows * group / int8_groups(rows); }
static inline int int8_group_of(int rows, int row) { return ((row + 1) * int8_groups(rows) - 1) / rows; }

// Block b of a step of a row.
static inline void int8_put(int bits, const Int8Block *from, int b, unsigned char *step) {
    for (int i = 0; i < INT8_BLOCK; i++) {
        int half = bits == 4 ? i % 2 : i / 16, at = bits == 4 ? i / 2 : i % 16;
        step[half * INT8_HALF + b * 16 + at] = (unsigned char)(from->code[i] + (bits == 8 ? INT8_OFFSET : 0));
    }
    float scales[4] = {from->scale, from->scale, from->scale, from->scale};
    memcpy(step + INT8_SCALES_AT + (size_t)b * sizeof scales, scales, sizeof scales);
}

static inline void int8_pack_row(const float *x, const Packed *p, unsigned char *steps, size_t apart,
                                 float *sums) {
    int blocks = p->columns / INT8_BLOCK;
    memset(sums, 0, int8_sum_bytes(p->columns));
    for (int b = 0; b < int8_steps(p->columns) * INT8_BLOCKS; b++) {
        Int8Block block = {.scale = 0};
        if (b < blocks) {
            int8_round(x + b * INT8_BLOCK, &block);
            sums[b] = block.sum;
        }
        int8_put(p->bits, &block, b % INT8_BLOCKS, steps + (size_t)(b / INT8_BLOCKS) * apart);
    }
}

static inline void int8_pack(const float *x, const Packed *p, int first, int last) {
    size_t steps = (size_t)int8_steps(p->columns), row = int8_row_bytes(p->columns);
    for (int r = first; r < last; r++) {
        int group = int8_group_of(p->rows, r), begin = int8_first(p->rows, group);
        size_t rows = (size_t)(int8_first(p->rows, group + 1) - begin), at = (size_t)(r - begin);
        unsigned char *to = (unsigned char *)p->data + (size_t)begin * row;
        unsigned char *sums = to + rows * steps * INT8_STEP_BYTES + at * int8_sum_bytes(p->columns);
        int8_pack_row(x + (size_t)r * (size_t)p->columns, p, to + at * INT8_STEP_BYTES,
                      rows * INT8_STEP_BYTES, (float *)(void *)sums);
    }
}

// --- products

_Static_assert((int)INT8_RUN == (int)SCALES, "a run reads its scales at once");

// Of up to INT8_RUN blocks, with zeros up to a multiple of LANES; of groups of 16, of half as many blocks,
// and `last` is for their last 16 columns.
typedef struct BlockScales {
    GroupScales of;
    float last[SCALES / 2 + LANES];
} BlockScales;

static __attribute__((noinline)) void block_scales(const Tensor *w, bool split, const unsigned char *of_row,
                                                   int first, int count, BlockScales *out) {
    int group = w->codes.group, apart = group == 4 * INT8_BLOCK ? 2 : group == 2 * INT8_BLOCK;
    // cppcheck-suppress [uninitvar, ctuuninitvar]
    float *scale = out->of.scale, *low = out->of.low; // to be filled
    read_scales(w, of_row, split ? 2 * first : first >> apart, split ? 2 * count : count >> apart, &out->of);
    for (int b = 0; split && b < count; b++) {
        out->last[b] = scale[2 * b + 1];
        scale[b] = scale[2 * b];
    }
    for (int b = count - 1; apart && b > 0; b--) {
        scale[b] = scale[b >> apart];
        low[b] = low[b >> apart];
    }
    lanes_store(scale + count, lanes_set(0));
    lanes_store(low + count, lanes_set(0));
    if (split) lanes_store(out->last + count, lanes_set(0));
}

// A group of rows.
typedef struct Int8Product {
    const Tensor *w;
    size_t row_bytes, scale_bytes; // of w
    const unsigned char *x;
    const float *sums; // of blocks, of the first row
    size_t sums_apart;
    float *y; // of the first row
    size_t stride;
} Int8Product;

// Codes and scales are fetched so many bytes ahead.
enum { INT8_AHEAD = 8192, INT8_LINE = 64 };

INLINE void int8_fetch(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += INT8_LINE) __builtin_prefetch(at + INT8_AHEAD + i, 0, 3);
}

// Adds a piece of a step to the sums of all rows.
INLINE void int8_piece(int bits, bool split, int rows, const unsigned char *codes, const unsigned char *x,
                       const float *scale, const float *last, int piece, Piece *sum) {
    PieceCodes w = piece_codes(bits, codes, piece);
    Piece of = piece_spread(scale, piece), of_last = split ? piece_spread(last, piece) : of;
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        const unsigned char *in = x + r * (int)INT8_STEP_BYTES;
        Piece own = piece_load((const float *)(const void *)(in + INT8_SCALES_AT), piece);
        Piece dot = split ? piece_dot_half(&w, in, piece, 0) : piece_dot(bits, &w, in, piece);
        sum[r] = piece_fma(dot, piece_mul(of, own), sum[r]);
        if (split) sum[r] = piece_fma(piece_dot_half(&w, in, piece, 1), piece_mul(of_last, own), sum[r]);
    }
}

// One run of an output. `end` is the last step's codes where memory ends with them, else NULL: what follows
// these codes is multiplied by 0.
INLINE void int8_run(int bits, bool split, int rows, int count, const unsigned char *codes,
                     const unsigned char *end, const unsigned char *x, const BlockScales *s, int piece,
                     Piece *sums) {
    Piece sum[INT8_ROWS]; // in registers
    for (int r = 0; r < rows; r++) sum[r] = sums[r];
    for (int b = 0; b < count; b += INT8_BLOCKS, x += (size_t)rows * INT8_STEP_BYTES) {
        if (piece == 0) int8_fetch(codes, INT8_STEP * (size_t)bits / 8);
        if (end && count - b < INT8_BLOCKS) codes = end;
        int8_piece(bits, split, rows, codes, x, s->of.scale + b, s->last + b, piece, sum);
        codes += INT8_STEP * bits / 8;
    }
    for (int r = 0; r < rows; r++) sums[r] = sum[r];
}

// One output. One piece of all steps at a time, so that its sums stay in registers.
INLINE void int8_output(int bits, bool split, int rows, const Int8Product *t, const unsigned char *codes,
                        const unsigned char *scales, bool ends, float *y) {
    int blocks = t->w->columns / INT8_BLOCK, run = split ? INT8_RUN / 2 : INT8_RUN;
    size_t bytes = INT8_BLOCK * (size_t)bits / 8;
    const unsigned char *x = t->x;
    unsigned char end[INT8_STEP];
    int rest = blocks % INT8_BLOCKS;
    Piece sum[PIECES][INT8_ROWS];
    if (ends && rest) memcpy(end, codes + (size_t)(blocks - rest) * bytes, (size_t)rest * bytes);
    for (int r = 0; r < rows; r++)
        for (int piece = 0; piece < PIECES; piece++) sum[piece][r] = piece_zero();
    for (int first = 0; first < blocks; first += run) {
        BlockScales s;
        int count = blocks - first < run ? blocks - first : run;
        block_scales(t->w, split, scales, first, count, &s);
#pragma GCC unroll 4
        for (int piece = 0; piece < PIECES; piece++) {
            for (int b = 0; bits == 4 && b < count; b += LANES)
                for (int r = 0; r < rows; r++) {
                    const float *sums = t->sums + (size_t)r * t->sums_apart + first + b;
                    sum[piece][r] =
                        piece_fma(piece_load(s.of.low + b, piece), piece_load(sums, piece), sum[piece][r]);
                }
            int8_run(bits, split, rows, count, codes, ends && rest ? end : NULL, x, &s, piece, sum[piece]);
        }
        codes += (size_t)run * bytes;
        x += (size_t)(run / INT8_BLOCKS * rows) * INT8_STEP_BYTES;
    }
    for (int r = 0; r < rows; r++) {
        Piece all[PIECES] = {piece_zero()};
        for (int piece = 0; piece < PIECES; piece++) all[piece] = sum[piece][r];
        y[(size_t)r * t->stride] = lanes_sum(pieces_join(all));
    }
}

INLINE void int8_outputs(int bits, bool split, int rows, const Int8Product *t, int from, int to) {
    const unsigned char *codes = t->w->data, *scales = t->w->codes.scales;
    for (int n = from; n < to; n++) {
        size_t at = (size_t)n, left = (size_t)(t->w->rows - n) * t->row_bytes;
        int8_fetch(scales + at * t->scale_bytes, t->scale_bytes);
        int8_output(bits, split, rows, t, codes + at * t->row_bytes, scales + at * t->scale_bytes,
                    left < (size_t)int8_steps(t->w->columns) * INT8_STEP * (size_t)bits / 8,
                    t->y + (n - from));
    }
}

#define ROWS(count)                                                            \
    case count:                                                                \
        if (count <= INT8_ROWS) int8_outputs(bits, split, count, t, from, to); \
        break;
INLINE void int8_rows(int bits, bool split, int rows, const Int8Product *t, int from, int to) {
    switch (rows) {
        ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
    }
}
#undef ROWS
static __attribute__((noinline)) void int8_4(int rows, const Int8Product *t, int from, int to) {
    int8_rows(4, false, rows, t, from, to);
}
static __attribute__((noinline)) void int8_8(int rows, const Int8Product *t, int from, int to) {
    int8_rows(8, false, rows, t, from, to);
}
static __attribute__((noinline)) void int8_halves(int rows, const Int8Product *t, int from, int to) {
    int8_rows(8, true, rows, t, from, to);
}

static inline void int8_matmul(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    enum { CHUNK = 128 << 10 }; // of codes
    int groups = int8_groups(p->rows), unit = (int)(CHUNK / tensor_row_bytes(w)) + 1;
    for (int n = from; n < to; n += unit)
        for (int g = 0; g < groups; g++) {
            int first = int8_first(p->rows, g), rows = int8_first(p->rows, g + 1) - first;
            int end = to - n < unit ? to : n + unit;
            const unsigned char *x =
                (const unsigned char *)p->data + (size_t)first * int8_row_bytes(p->columns);
            size_t steps = (size_t)(rows * int8_steps(p->columns)) * INT8_STEP_BYTES;
            Int8Product t = {.w = w,
                             .row_bytes = tensor_row_bytes(w),
                             .scale_bytes = tensor_row_scale_bytes(w),
                             .x = x,
                             .sums = (const float *)(const void *)(x + steps),
                             .sums_apart = int8_sum_bytes(p->columns) / sizeof(float),
                             .y = y + (size_t)first * stride + (n - from),
                             .stride = stride};
            if (p->bits == 4) int8_4(rows, &t, n, end);
            else if (w->codes.group < INT8_BLOCK) int8_halves(rows, &t, n, end);
            else int8_8(rows, &t, n, end);
        }
}

// Of the definition with codes of 4 bits, all but the loads of codes and scales.
static inline double int8_peak(long rounds) {
    enum { SUMS = 6 };
    unsigned char x[SUMS][INT8_STEP] = {{1}}, codes[INT8_STEP] = {0x21};
    float total = 0, factor[LANES] = {0.3f};
    Piece sum[SUMS][PIECES];
    PieceCodes w[PIECES];
    for (int i = 0; i < SUMS * PIECES; i++) sum[i / PIECES][i % PIECES] = piece_zero();
    for (int piece = 0; piece < PIECES; piece++) w[piece] = piece_codes(4, codes, piece);
    for (long n = 0; n < rounds; n++) {
        __asm__ volatile("" : "+m"(x), "+m"(factor));
        for (int piece = 0; piece < PIECES; piece++)
            for (int i = 0; i < SUMS; i++) {
                Piece scale = piece_mul(piece_load(factor, piece), piece_load(factor, piece));
                sum[i][piece] = piece_fma(piece_dot(4, &w[piece], x[i], piece), scale, sum[i][piece]);
            }
    }
    for (int i = 0; i < SUMS; i++) total += lanes_sum(pieces_join(sum[i]));
    volatile float kept = total;
    (void)kept;
    return 2.0 * INT8_STEP * SUMS * (double)rounds;
}
