// Products of codes with activations of 8 bits (int8.h) in lanes; part of each kernel set.
//
// One output at a time, for a group of rows whose sums stay in registers: its codes are turned into words
// once for all of them, and activations are operands in memory. With more than INT8_FEW rows, a chunk of
// outputs is turned into words in the first-level cache and used by one group of rows after another.
//
// Floor: 512 codes of a wide step take, of a row, 8 multiply-adds of bytes with VNNI, a conversion, a product
// of scales and a multiply-add, where bf16 takes 16 multiply-adds. With AVX2 a piece of half as many codes of
// 4 bits takes 8 of bytes, 7 additions, and the same. A step's words take about 30 instructions once.
#pragma once
#include "engine/cpu/kernels/pack_int8.h"
#include "engine/cpu/kernels/scales.h"

// --- scales and steps

// Of up to SCALES blocks, with zeros up to a multiple of LANES; of groups of 16, of half as many blocks,
// and `last` is for their last 16 columns.
typedef struct BlockScales {
    GroupScales of;
    float last[SCALES / 2 + LANES];
} BlockScales;

// Codes of 6 bits: a block's two scales are neighbours.
static inline void block_times(const unsigned char *at, int nests, BlockScales *out) {
    enum { BLOCKS = GROUPS_TIMES / 2 };
    typedef int16_t Pairs __attribute__((vector_size(2 * BLOCKS)));
    for (int n = 0; n < nests; n++, at += sizeof(ScaleTimes)) {
        float of = half_at(at + offsetof(ScaleTimes, scale));
        Pairs pairs;
        memcpy(&pairs, at + offsetof(ScaleTimes, factor), sizeof pairs);
        EightInts both = __builtin_convertvector(pairs, EightInts);
        EightFloats first = __builtin_convertvector(both << 24 >> 24, EightFloats) * of;
        EightFloats last = __builtin_convertvector(both >> 8, EightFloats) * of;
        memcpy(out->of.scale + n * BLOCKS, &first, sizeof first);
        memcpy(out->last + n * BLOCKS, &last, sizeof last);
    }
}

static __attribute__((noinline)) void block_scales(const Tensor *w, bool split, const unsigned char *of_row,
                                                   int first, int count, BlockScales *out) {
    int group = w->codes.group, apart = group == 4 * INT8_BLOCK ? 2 : group == 2 * INT8_BLOCK;
    // cppcheck-suppress [uninitvar, ctuuninitvar]
    float *scale = out->of.scale, *low = out->of.low; // to be filled
    if (split && w->codes.kind == SCALES_TIMES)
        block_times(of_row + (size_t)(2 * first / GROUPS_TIMES) * sizeof(ScaleTimes),
                    2 * count / GROUPS_TIMES, out);
    else if (split) {
        GroupScales both;
        read_scales(w, of_row, 2 * first, 2 * count, &both);
        for (int b = 0; b < count; b++) {
            scale[b] = both.scale[2 * b];
            out->last[b] = both.scale[2 * b + 1];
        }
    } else read_scales(w, of_row, first >> apart, count >> apart, &out->of);
    for (int b = count - 1; apart && b > 0; b--) {
        scale[b] = scale[b >> apart];
        low[b] = low[b >> apart];
    }
    lanes_store(scale + count, lanes_set(0));
    lanes_store(low + count, lanes_set(0));
    if (split) lanes_store(out->last + count, lanes_set(0));
}

// Fetched ahead, of codes and scales.
enum { INT8_AHEAD = 8192, INT8_LINE = 64 };

INLINE void int8_fetch(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += INT8_LINE) __builtin_prefetch(at + INT8_AHEAD + i, 0, 3);
}
INLINE void int8_fetch_codes(int bits, CodesAt at, int columns) {
    CodesAt end = codes_after(bits, at, columns);
    int8_fetch(at.codes, (size_t)(end.codes - at.codes));
    int8_fetch(at.upper, (size_t)(end.upper - at.upper));
}

// A piece of an output's step. `other`: the lows of 4 bits; the scales of the last 16 columns, if split.
typedef struct Int8Step {
    PieceCodes w;
    Piece scale, other;
} Int8Step;

INLINE void int8_read(int bits, bool split, int vectors, CodesAt codes, const BlockScales *s, int b,
                      int piece, Int8Step *out) {
    const float *other = split ? s->last + b : s->of.low + b;
    if (vectors == INT8_WORDS) {
        codes_wide(bits, codes, piece, &out->w);
        out->scale = piece_turn(piece_load(s->of.scale + b, piece));
        out->other = piece_turn(piece_load(other, piece));
        return;
    }
    codes_narrow(bits, codes, piece, &out->w);
    out->scale = piece_spread(s->of.scale + b, piece);
    out->other = split ? piece_spread(other, piece) : piece_load(other, piece);
}

// Adds a piece of a step to the sums of all rows; `lows` too.
INLINE void int8_step(int bits, bool split, int vectors, int rows, bool lows, const Int8Step *s,
                      const unsigned char *x, int piece, Piece *sum) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++, x += int8_step_bytes(bits, vectors)) {
        const unsigned char *more = x + vectors * INT8_VECTOR;
        bool starts = int8_starts(bits);
        Piece own = piece_load((const float *)(const void *)more, piece);
        Start start = starts ? start_load(more + INT8_VECTOR, piece) : start_zero();
        more += INT8_VECTOR;
        if (lows) sum[r] = piece_fma(s->other, piece_load((const float *)(const void *)more, piece), sum[r]);
        if (split) {
            Start first = starts ? start_load(more + INT8_VECTOR, piece) : start;
            Piece dot = codes_dot(bits, &s->w, x, piece, 0, vectors / 2, first);
            sum[r] = piece_fma(dot, piece_mul(s->scale, own), sum[r]);
            dot = codes_dot(bits, &s->w, x, piece, vectors / 2, vectors, start_less(start, first));
            sum[r] = piece_fma(dot, piece_mul(s->other, own), sum[r]);
        } else {
            Piece dot = codes_dot(bits, &s->w, x, piece, 0, vectors, start);
            sum[r] = piece_fma(dot, piece_mul(s->scale, own), sum[r]);
        }
    }
}

// --- outputs made ready for several groups of rows

static inline size_t kept_bytes(int columns) {
    return (size_t)(int8_wide(columns) * (INT8_WORDS + 2) + int8_narrow(columns) * 4) * INT8_VECTOR;
}
INLINE void int8_keep(int vectors, int piece, const Int8Step *s, unsigned char *to) {
    codes_put(to, piece, vectors, &s->w);
    piece_store((float *)(void *)(to + vectors * INT8_VECTOR), piece, s->scale);
    piece_store((float *)(void *)(to + (vectors + 1) * INT8_VECTOR), piece, s->other);
}
INLINE void int8_kept(int vectors, int piece, const unsigned char *from, Int8Step *s) {
    codes_at(from, piece, vectors, &s->w);
    s->scale = piece_load((const float *)(const void *)(from + vectors * INT8_VECTOR), piece);
    s->other = piece_load((const float *)(const void *)(from + (vectors + 1) * INT8_VECTOR), piece);
}

// --- an output

// A group of rows.
typedef struct Int8Product {
    const Tensor *w;
    size_t row_bytes, scale_bytes; // of w
    const unsigned char *x;
    unsigned char *kept; // outputs made ready, or to be
    float *y;            // of the first row
    size_t stride;
} Int8Product;

// Whether a piece of a narrow step with so many blocks has a block, or the lows of one.
INLINE bool int8_some(int piece, int blocks) { return blocks * PIECES > piece * INT8_NARROW; }

INLINE void int8_put_sums(int rows, const Int8Product *t, Piece (*sum)[INT8_ROWS], float *y) {
    for (int r = 0; r < rows; r++) {
        Piece all[PIECES] = {piece_zero()};
        for (int piece = 0; piece < PIECES; piece++) all[piece] = sum[piece][r];
        y[(size_t)r * t->stride] = lanes_sum(pieces_join(all));
    }
}

// How many blocks' scales are read at a time.
INLINE int int8_run(bool split) { return split ? SCALES / 2 : SCALES; }

// The last codes of a matrix, with room behind them.
INLINE CodesAt int8_copy(int bits, CodesAt from, int columns, unsigned char to[INT8_NARROW * INT8_BLOCK]) {
    CodesAt end = codes_after(bits, from, columns), out = {to, to + INT8_NARROW * INT8_BLOCK / 2};
    memcpy(to, from.codes, (size_t)(end.codes - from.codes));
    if (codes_planes(bits)) memcpy(to + (out.upper - to), from.upper, (size_t)(end.upper - from.upper));
    return out;
}

// Of the codes themselves; without rows they are kept. Scales are read here if a row is longer than a run,
// else they are in `s` from `at` on. `ends`: memory ends with these codes.
INLINE void int8_output(int bits, bool split, int rows, const Int8Product *t, CodesAt codes,
                        const unsigned char *scales, BlockScales *s, int at, bool ends, float *y,
                        unsigned char *kept) {
    enum { WIDE_KEPT = (INT8_WORDS + 2) * INT8_VECTOR };
    int blocks = t->w->columns / INT8_BLOCK, run = int8_run(split), b = 0, count = 0;
    size_t wide = (size_t)rows * int8_step_bytes(bits, INT8_WORDS);
    const unsigned char *x = t->x;
    unsigned char end[INT8_NARROW * INT8_BLOCK];
    Int8Step step;
    Piece sum[PIECES][INT8_ROWS];
    for (int r = 0; r < rows; r++)
        for (int piece = 0; piece < PIECES; piece++) sum[piece][r] = piece_zero();
    for (int first = 0; first < blocks; first += run) {
        count = blocks - first < run ? blocks - first : run;
        if (blocks > run) block_scales(t->w, split, scales, first, count, s);
#pragma GCC unroll 4
        for (int piece = 0; piece < PIECES; piece++) {
            Piece own[INT8_ROWS]; // in registers
            CodesAt from = codes;
            const unsigned char *in = x;
            for (int r = 0; r < rows; r++) own[r] = sum[piece][r];
            for (b = 0; b + INT8_WIDE <= count; b += INT8_WIDE, in += wide) {
                if (piece == 0) int8_fetch_codes(bits, from, INT8_WIDE * INT8_BLOCK);
                int8_read(bits, split, INT8_WORDS, from, s, at + b, piece, &step);
                if (!rows) int8_keep(INT8_WORDS, piece, &step, kept + (size_t)(b / INT8_WIDE) * WIDE_KEPT);
                int8_step(bits, split, INT8_WORDS, rows, codes_lowered(bits), &step, in, piece, own);
                from = codes_after(bits, from, INT8_WIDE * INT8_BLOCK);
            }
            for (int r = 0; r < rows; r++) sum[piece][r] = own[r];
        }
        codes = codes_after(bits, codes, b * INT8_BLOCK);
        x += (size_t)(b / INT8_WIDE) * wide;
        kept += (size_t)(b / INT8_WIDE) * WIDE_KEPT;
    }
    for (int r = 0; r < rows; r++)
        for (int piece = 0; piece < PIECES; piece++) sum[piece][r] = piece_turn(sum[piece][r]);
    for (int first = b; b < count; b += INT8_NARROW, kept += 4 * INT8_VECTOR) {
        if (ends && count - b < INT8_NARROW) codes = int8_copy(bits, codes, (count - b) * INT8_BLOCK, end);
#pragma GCC unroll 4
        for (int piece = 0; piece < PIECES; piece++) {
            if (rows && !int8_some(piece, count - b)) continue;
            int8_read(bits, split, 2, codes, s, at + b, piece, &step);
            if (!rows) int8_keep(2, piece, &step, kept);
            int8_step(bits, split, 2, rows, codes_lowered(bits) && b == first, &step, x, piece, sum[piece]);
        }
        x += (size_t)rows * int8_step_bytes(bits, 2);
        codes = codes_after(bits, codes, INT8_NARROW * INT8_BLOCK);
    }
    int8_put_sums(rows, t, sum, y);
}

INLINE void int8_outputs(int bits, bool split, int rows, const Int8Product *t, int from, int to) {
    const unsigned char *codes = t->w->data, *scales = t->w->codes.scales;
    int steps = int8_wide(t->w->columns) * INT8_WIDE + int8_narrow(t->w->columns) * INT8_NARROW;
    size_t most = (size_t)steps * INT8_BLOCK * (size_t)bits / 8, kept = kept_bytes(t->w->columns);
    int blocks = t->w->columns / INT8_BLOCK, together = int8_run(split) / blocks; // outputs of a run
    BlockScales s;
    for (int n = from, begin = from, ready = 0; n < to; n++, ready--) {
        const unsigned char *of_row = scales + (size_t)n * t->scale_bytes;
        if (together && !ready) {
            ready = to - n < together ? to - n : together;
            block_scales(t->w, split, of_row, 0, ready * blocks, &s);
            begin = n;
        }
        int8_fetch(of_row, t->scale_bytes);
        int8_output(bits, split, rows, t, codes_of_row(codes + (size_t)n * t->row_bytes, t->w->columns),
                    of_row, &s, together ? (n - begin) * blocks : 0,
                    (size_t)(t->w->rows - n) * t->row_bytes < most, t->y + (n - from),
                    t->kept + (size_t)(n - from) * kept);
    }
}

// The same for outputs that are kept.
INLINE void int8_again(int bits, bool split, int rows, const Int8Product *t, int from, int to) {
    int wide = int8_wide(t->w->columns), rest = int8_rest(t->w->columns);
    const unsigned char *kept = t->kept;
    for (int n = from; n < to; n++) {
        const unsigned char *x = t->x;
        Int8Step step;
        Piece sum[PIECES][INT8_ROWS];
#pragma GCC unroll 4
        for (int piece = 0; piece < PIECES; piece++) {
            const unsigned char *w = kept;
            Piece own[INT8_ROWS];
            x = t->x;
            for (int r = 0; r < rows; r++) own[r] = piece_zero();
            for (int i = 0; i < wide; i++, w += (INT8_WORDS + 2) * INT8_VECTOR) {
                int8_kept(INT8_WORDS, piece, w, &step);
                int8_step(bits, split, INT8_WORDS, rows, codes_lowered(bits), &step, x, piece, own);
                x += (size_t)rows * int8_step_bytes(bits, INT8_WORDS);
            }
            for (int r = 0; r < rows; r++) sum[piece][r] = piece_turn(own[r]);
        }
        kept += (size_t)wide * (INT8_WORDS + 2) * INT8_VECTOR;
        for (int b = 0; b < rest; b += INT8_NARROW, kept += 4 * INT8_VECTOR) {
#pragma GCC unroll 4
            for (int piece = 0; piece < PIECES; piece++) {
                if (!int8_some(piece, rest - b)) continue;
                int8_kept(2, piece, kept, &step);
                int8_step(bits, split, 2, rows, codes_lowered(bits) && b == 0, &step, x, piece, sum[piece]);
            }
            x += (size_t)rows * int8_step_bytes(bits, 2);
        }
        int8_put_sums(rows, t, sum, t->y + (n - from));
    }
}

// Larger counts don't occur; clipped, they compile.
#define AT_MOST(most, count) (count < most ? count : most)
#define ROWS(count)                                                                                        \
    case count:                                                                                            \
        if (!again && count <= INT8_FEW) int8_outputs(bits, split, AT_MOST(INT8_FEW, count), t, from, to); \
        if (again && 2 * count >= INT8_FEW && count <= INT8_ROWS)                                          \
            int8_again(bits, split, AT_MOST(INT8_ROWS, count), t, from, to);                               \
        break;
INLINE void int8_rows(int bits, bool split, bool again, int rows, const Int8Product *t, int from, int to) {
    switch (rows) {
        ROWS(0)
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
        ROWS(6)
        ROWS(7)
        ROWS(8)
        ROWS(9)
        ROWS(10)
        ROWS(11)
        ROWS(12)
        ROWS(13)
        ROWS(14)
        ROWS(15)
        ROWS(16)
    }
}
#undef ROWS
#undef AT_MOST
typedef void Int8Multiply(int rows, const Int8Product *t, int from, int to);
#define PRODUCT(name, bits, split, again)                                                          \
    static __attribute__((noinline)) void name(int rows, const Int8Product *t, int from, int to) { \
        int8_rows(bits, split, again, rows, t, from, to);                                          \
    }
PRODUCT(int8_4, 4, false, false)
PRODUCT(int8_5, 5, false, false)
PRODUCT(int8_6, 6, true, false)
PRODUCT(int8_8, 8, false, false)
PRODUCT(int8_halves, 8, true, false)
PRODUCT(int8_4_again, 4, false, true)
PRODUCT(int8_5_again, 5, false, true)
PRODUCT(int8_6_again, 6, true, true)
PRODUCT(int8_8_again, 8, false, true)
PRODUCT(int8_halves_again, 8, true, true)
#undef PRODUCT

static inline void int8_matmul(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    enum { CHUNK = 24 << 10 }; // of outputs made ready
    int kind = p->bits == 8 && w->codes.group < INT8_BLOCK ? 0 : p->bits, groups = int8_groups(p->rows);
    Int8Multiply *const once[] = {int8_halves, [4] = int8_4, [5] = int8_5, [6] = int8_6, [8] = int8_8};
    Int8Multiply *const again[] = {
        int8_halves_again, [4] = int8_4_again, [5] = int8_5_again, [6] = int8_6_again, [8] = int8_8_again};
    size_t kept = kept_bytes(w->columns), room = (size_t)MATMUL_UNIT * (size_t)w->columns * sizeof(uint16_t);
    int unit = (int)((CHUNK < room ? CHUNK : room) / kept);
    Int8Product t = {.w = w,
                     .row_bytes = tensor_row_bytes(w),
                     .scale_bytes = tensor_row_scale_bytes(w),
                     .x = p->data,
                     .kept = p->decoded,
                     .y = y,
                     .stride = stride};
    if (p->rows <= INT8_FEW) {
        once[kind](p->rows, &t, from, to);
        return;
    }
    if (unit < 1) unit = 1;
    for (int n = from; n < to; n += unit) {
        int end = to - n < unit ? to : n + unit;
        once[kind](0, &t, n, end);
        for (int g = 0; g < groups; g++) {
            int first = int8_first(p->rows, g);
            Int8Product of = t;
            of.x += (size_t)first * int8_row_bytes(p->bits, p->columns);
            of.y += (size_t)first * stride + (size_t)(n - from);
            again[kind](int8_first(p->rows, g + 1) - first, &of, n, end);
        }
    }
}

// Of the definition with codes of 4 bits, all but the loads of codes and scales.
static inline double int8_peak(long rounds) {
    enum { SUMS = INT8_ROWS < 6 ? INT8_ROWS : 6, SIZE = (INT8_WORDS + 2) * INT8_VECTOR };
    unsigned char x[SUMS * SIZE] = {1}, codes[INT8_WIDE * INT8_BLOCK / 2] = {0x21};
    float total = 0;
    Piece sum[PIECES][SUMS];
    Int8Step step[PIECES];
    for (int i = 0; i < SUMS * PIECES; i++) sum[i / SUMS][i % SUMS] = piece_zero();
    for (int piece = 0; piece < PIECES; piece++) {
        codes_wide(4, (CodesAt){codes, codes}, piece, &step[piece].w);
        step[piece].scale = step[piece].other = piece_zero();
    }
    for (long n = 0; n < rounds / 4; n++) {
        __asm__ volatile("" : "+m"(x));
        for (int piece = 0; piece < PIECES; piece++)
            int8_step(4, false, INT8_WORDS, SUMS, false, &step[piece], x, piece, sum[piece]);
    }
    for (int i = 0; i < SUMS; i++) {
        Piece all[PIECES] = {piece_zero()};
        for (int piece = 0; piece < PIECES; piece++) all[piece] = sum[piece][i];
        total += lanes_sum(pieces_join(all));
    }
    volatile float kept = total;
    (void)kept;
    return 2.0 * INT8_WIDE * INT8_BLOCK * SUMS * (double)(rounds / 4);
}
