// Products with codes (engine/model/tensor.h) in lanes; part of each kernel set.
//
// For one group of rows, codes become bf16 values in registers, a step of LANE_PAIRS columns at a time, and
// are summed as product_block sums such values. For more rows, values of a few outputs are written to scratch
// memory that the second-level cache holds, and product_of reads them there: they are decoded once for all
// rows. Both ways are the sums of the product with bf16 weights, in the same order.
//
// Four bits: the sixteen values of a group are a table, and the codes look them up; AVX2 computes values.
// Floor: bytes / memory bandwidth. In AVX-512 a step of an output takes 8 instructions of 4 bits in groups of
// 32 and 12 of 8 bits, two a cycle: about as long as its bytes take (results/speed.md).
#pragma once
#include "engine/cpu/kernels/product.h"
#include "engine/cpu/kernels/products_int8.h"
#include "engine/cpu/kernels/scales.h"

// --- values in scratch memory

enum { FETCH_CODES = 2048 }; // bytes ahead, in the rows after one another

INLINE void fetch_codes(int bits, CodesAt at, int ahead) {
    __builtin_prefetch(at.codes + ahead, 0, 3);
    if (codes_planes(bits)) __builtin_prefetch(at.upper + ahead, 0, 3);
}

INLINE unsigned char *decode_group(int bits, int steps, CodesAt codes, Book book, unsigned char *out) {
    for (int i = 0; i < steps; i++, out += LANE_PAIRS * sizeof(uint16_t)) {
        fetch_codes(bits, codes, FETCH_CODES);
        lanes_store((float *)(void *)out, decode_pairs(bits, codes, book));
        codes = codes_after(bits, codes, LANE_PAIRS);
    }
    return out;
}

// Groups of 16, two a step.
INLINE unsigned char *decode_halves(int bits, CodesAt codes, const GroupScales *s, int count,
                                    unsigned char *out) {
    for (int g = 0; g < count; g += 2, out += LANE_PAIRS * sizeof(uint16_t)) {
        CodeStep step = load_codes(bits, codes);
        Book book = split_book(s->scale + g, s->low + g);
        Lanes even = decode_split(bits, step, book, 0), odd = decode_split(bits, step, book, 1);
        lanes_store((float *)(void *)out, lanes_join(even, odd));
        codes = codes_after(bits, codes, LANE_PAIRS);
    }
    return out;
}

// Rows [first, first + count) as bf16, one after another.
INLINE void decode_rows_of(int bits, int steps, const Tensor *w, int first, int count, void *to) {
    unsigned char *out = to;
    int group = w->codes.group, groups = w->columns / group;
    bool middle = around_middle(w);
    for (int r = first; r < first + count; r++) {
        Tensor row = tensor_rows(w, r, 1);
        CodesAt codes = codes_of_row(row.data, w->columns);
        for (int g = 0; g < groups; g += SCALES) {
            GroupScales s;
            int part = groups - g < SCALES ? groups - g : SCALES;
            read_scales(w, row.codes.scales, g, part, &s);
            if (!steps) out = decode_halves(bits, codes, &s, part, out);
            for (int i = 0; steps && i < part; i++)
                out = decode_group(bits, steps, codes_after(bits, codes, i * group),
                                   book_of(bits, middle, s.scale[i], s.low[i]), out);
            codes = codes_after(bits, codes, part * group);
        }
    }
}
static __attribute__((noinline)) void decode_rows(const Tensor *w, int first, int count, void *out) {
    int steps = w->codes.group / LANE_PAIRS; // of a group; 0: half a one
    if (w->codes.bits == 5) decode_rows_of(5, 1, w, first, count, out);
    else if (w->codes.bits == 6) decode_rows_of(6, 0, w, first, count, out);
    else if (w->codes.bits == 4 && steps == 1) decode_rows_of(4, 1, w, first, count, out);
    else if (w->codes.bits == 4) decode_rows_of(4, steps, w, first, count, out);
    else if (steps == 1) decode_rows_of(8, 1, w, first, count, out);
    else decode_rows_of(8, steps, w, first, count, out);
}

// The rows of weights in f16, as f32.
static __attribute__((noinline)) void widen_rows(const Tensor *w, int first, int count, void *to) {
    const uint16_t *from = (const uint16_t *)w->data + (size_t)first * (size_t)w->columns;
    size_t n = (size_t)count * (size_t)w->columns, i = 0;
    float *out = to;
    for (; i + LANES <= n; i += LANES) {
        __builtin_prefetch((const unsigned char *)(from + i) + FETCH_CODES, 0, 3);
        lanes_store(out + i, lanes_f16(from + i));
    }
    for (; i < n; i++) out[i] = f16_to_f32(from[i]);
}

// From so many rows on, f16 is converted once for all of them (a Zen 1: 32 rows take 19% less time, 121 take
// 21%; 8 rows would take 13% more).
enum { WIDE_ROWS = 4 * BLOCK_ROWS };

// --- values in registers

// Outputs at a time: of more, AVX2's registers don't hold the codes, scales, values and sums.
enum { CODE_OUTPUTS = LANES_HALVED ? 1 : BLOCK_OUTPUTS };

typedef void Multiply(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to);

#if defined(LANES_PLAIN)
// Decoding first is as fast.
static inline Multiply *product_of_codes(UNUSED const Tensor *w, UNUSED const Packed *p) { return NULL; }
#else
#define CODES_FORM (HAS_PAIRS ? FORM_PAIRS : FORM_BF16) // the fastest; other forms decode first

// Adds values of some columns to all sums of a block; `x` are the rows' inputs there.
INLINE void add_values(int rows, const Lanes *weight, const unsigned char *x, Lanes (*sum)[BLOCK_ROWS]) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        Lanes in = lanes_load((const float *)(const void *)(x + (size_t)r * step_bytes(CODES_FORM)));
#pragma GCC unroll 8
        for (int o = 0; o < CODE_OUTPUTS; o++)
            sum[o][r] =
                HAS_PAIRS ? lanes_pairs(weight[o], in, sum[o][r]) : lanes_fma(weight[o], in, sum[o][r]);
    }
}

// Adds a step of codes. The outputs' instructions take turns: a processor looks only so far ahead.
INLINE void add_codes(int bits, bool split, int rows, const CodesAt *codes, const Book *book,
                      const unsigned char *x, Lanes (*sum)[BLOCK_ROWS]) {
    Lanes weight[CODE_OUTPUTS];
    CodeStep step[CODE_OUTPUTS];
    if (HAS_PAIRS) {
#pragma GCC unroll 8
        for (int o = 0; o < CODE_OUTPUTS; o++) weight[o] = decode_pairs(bits, codes[o], book[o]);
        add_values(rows, weight, x, sum);
        return;
    }
#pragma GCC unroll 8
    for (int o = 0; o < CODE_OUTPUTS; o++) step[o] = load_codes(bits, codes[o]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
#pragma GCC unroll 8
        for (int o = 0; o < CODE_OUTPUTS; o++)
            weight[o] = split ? decode_split(bits, step[o], book[o], half)
                              : decode_half(bits, step[o], book[o], half);
        add_values(rows, weight, x + (size_t)half * sizeof(Lanes), sum);
    }
}

// Outputs as far apart as in product_chunk, for the same reason.
typedef struct CodeBlock {
    ProductBlock b;
    const Tensor *w;
    const unsigned char *scales; // of the first output
    size_t scales_apart;
} CodeBlock;

// `steps` is how many steps a group has: a constant if it's 1, or 0 for groups of half a step.
INLINE void code_block(int bits, bool middle, int steps, int rows, const CodeBlock *c) {
    const ProductBlock *b = &c->b;
    const unsigned char *x = b->x;
    CodesAt codes[CODE_OUTPUTS];
    int groups = b->columns / c->w->codes.group;
    Lanes sum[CODE_OUTPUTS][BLOCK_ROWS];
    for (int o = 0; o < CODE_OUTPUTS; o++) {
        codes[o] = codes_of_row(b->w + (size_t)o * b->apart, b->columns);
        for (int r = 0; r < rows; r++) sum[o][r] = lanes_set(0);
    }
    for (int g = 0; g < groups; g += SCALES) {
        GroupScales s[CODE_OUTPUTS];
        int part = groups - g < SCALES ? groups - g : SCALES;
        for (int o = 0; o < CODE_OUTPUTS; o++)
            read_scales(c->w, c->scales + (size_t)o * c->scales_apart, g, part, &s[o]);
        for (int i = 0; i < part; i += steps ? 1 : 2) {
            Book book[CODE_OUTPUTS];
#pragma GCC unroll 8
            for (int o = 0; o < CODE_OUTPUTS; o++)
                book[o] = steps ? book_of(bits, middle, s[o].scale[i], s[o].low[i])
                                : split_book(s[o].scale + i, s[o].low + i);
            for (int k = 0; k < (steps ? steps : 1); k++, x += (size_t)rows * step_bytes(CODES_FORM)) {
                add_codes(bits, !steps, rows, codes, book, x, sum);
                for (int o = 0; o < CODE_OUTPUTS; o++) fetch_codes(bits, codes[o], FETCH_AHEAD_FEW);
                for (int o = 0; o < CODE_OUTPUTS; o++) codes[o] = codes_after(bits, codes[o], LANE_PAIRS);
            }
        }
    }
    product_put(CODE_OUTPUTS, rows, sum, b);
}

INLINE void code_rows(int bits, bool middle, int steps, int rows, const CodeBlock *c) {
#define ROWS(count) (count < BLOCK_ROWS ? count : BLOCK_ROWS)
    switch (rows) {
    case 1: code_block(bits, middle, steps, ROWS(1), c); break;
    case 2: code_block(bits, middle, steps, ROWS(2), c); break;
    case 3: code_block(bits, middle, steps, ROWS(3), c); break;
    case 4: code_block(bits, middle, steps, ROWS(4), c); break;
    case 5: code_block(bits, middle, steps, ROWS(5), c); break;
    case 6: code_block(bits, middle, steps, ROWS(6), c); break;
    }
#undef ROWS
}

// Outputs [from, to), a multiple of CODE_OUTPUTS of them.
INLINE void code_product(int bits, bool middle, int steps, const Tensor *w, const Packed *p, float *y,
                         size_t stride, int from, int to) {
    int part = (to - from) / CODE_OUTPUTS;
    size_t row = tensor_row_bytes(w), scales = tensor_row_scale_bytes(w);
    CodeBlock c = {.b = {.columns = w->columns,
                         .stride = stride,
                         .x = p->data,
                         .apart = row * (size_t)part,
                         .y_apart = (size_t)part},
                   .w = w,
                   .scales_apart = scales * (size_t)part};
    for (int i = 0; i < part; i++) {
        Tensor at = tensor_rows(w, from + i, 1);
        c.b.w = at.data;
        c.b.y = y + i;
        c.scales = at.codes.scales;
        code_rows(bits, middle, steps, p->rows, &c);
    }
}

INLINE void codes_of(int bits, const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    int steps = codes_planes(bits) ? bits == 5 : w->codes.group / LANE_PAIRS;
    bool middle = bits == 4 && !PAIR_BOOKS && around_middle(w);
    if (steps == 1 && middle) code_product(bits, true, 1, w, p, y, stride, from, to);
    else if (steps == 1) code_product(bits, false, 1, w, p, y, stride, from, to);
    else if (bits == 6 || (bits == 8 && !HAS_PAIRS && !steps))
        code_product(bits, false, 0, w, p, y, stride, from, to);
    else code_product(bits, false, steps, w, p, y, stride, from, to);
}
#define PRODUCT(name, bits)                                                                               \
    static __attribute__((noinline)) void name(const Tensor *w, const Packed *p, float *y, size_t stride, \
                                               int from, int to) {                                        \
        codes_of(bits, w, p, y, stride, from, to);                                                        \
    }
PRODUCT(codes_8, 8)
PRODUCT(codes_6, 6)
PRODUCT(codes_5, 5)
PRODUCT(codes_4, 4)
#undef PRODUCT

// NULL if codes are decoded first: for many rows, other forms, and groups of 16 in pairs.
static inline Multiply *product_of_codes(const Tensor *w, const Packed *p) {
    static Multiply *const of[] = {[4] = codes_4, [5] = codes_5, [6] = codes_6, [8] = codes_8};
    if (p->rows <= BLOCK_ROWS && packed_form(p) == CODES_FORM && !(HAS_PAIRS && w->codes.group < LANE_PAIRS))
        return of[w->codes.bits];
    return NULL;
}
#endif

// Decodes at most `unit` outputs at a time and multiplies them as `multiply` does.
static inline void multiply_decoded(Multiply *multiply, int unit, const Tensor *w, const Packed *p, float *y,
                                    size_t stride, int from, int to) {
    for (int n = from; n < to; n += unit) {
        int count = to - n < unit ? to - n : unit;
        Tensor values = {
            .data = p->decoded, .dtype = DTYPE_BF16, .rows = count, .columns = w->columns}; // or f32
        if (w->codes.bits) decode_rows(w, n, count, p->decoded);
        else widen_rows(w, n, count, p->decoded);
        multiply(&values, p, y + (n - from), stride, 0, count);
    }
}

// --- any product

static inline size_t packed_bytes(int rows, int columns) {
    size_t values = row_bytes(FORM_F32, columns), codes = int8_row_bytes(6, columns); // others need no more
    return (size_t)rows * (values > codes ? values : codes);
}

static inline void pack(const float *x, const Packed *p, int first, int last) {
    if (p->bits) int8_pack(x, p, first, last);
    else pack_values(x, p, first, last);
}

// Of any weights: as they are, or coded. A rest of fewer outputs than a block is decoded.
static inline void matmul(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    if (p->bits) {
        int8_matmul(w, p, y, stride, from, to);
        return;
    }
    int unit =
        at_least(CHUNK_BYTES / 2 / ((size_t)padded_columns(w->columns) * sizeof(uint16_t)), BLOCK_OUTPUTS);
    if (unit > MATMUL_UNIT) unit = MATMUL_UNIT / BLOCK_OUTPUTS * BLOCK_OUTPUTS;
    if (LANES_HALVED && w->dtype == DTYPE_F16 && p->decoded && p->rows >= WIDE_ROWS) {
        multiply_decoded(product_f32, at_least((size_t)unit / 2, BLOCK_OUTPUTS), w, p, y, stride, from, to);
        return;
    }
    if (!w->codes.bits) {
        multiply_values(w, p, y, stride, from, to);
        return;
    }
    Multiply *multiply = product_of_codes(w, p);
    if (multiply) {
        int whole = from + (to - from) / CODE_OUTPUTS * CODE_OUTPUTS;
        multiply(w, p, y, stride, from, whole);
        y += whole - from;
        from = whole;
    }
    multiply_decoded(multiply_values, unit, w, p, y, stride, from, to);
}

static inline double peak(Compute compute, long rounds) {
    return compute == COMPUTE_INT8 ? int8_peak(rounds) : peak_values(compute, rounds);
}
