// Products of weights and activations in lanes; part of each kernel set (see lanes.h).
//
// y[r][n] = sum over k of w[n][k] x[r][k] takes both operands along k, as they lie: weights in place from the
// mapped file, BLOCK_OUTPUTS x BLOCK_ROWS sums in registers. Floor: max(weights' bytes / memory bandwidth,
// rows * outputs * columns / (lanes * units) cycles).
#pragma once
#include "engine/cpu/pack.h"

enum { CHUNK_BYTES = 448 << 10 }; // of activations, half as much of weights: second-level caches have 1 MB

// Rows of weights are a page or two long, and hardware prefetchers end at a page: so they are told what
// comes. 2 KB ahead in each of the rows side by side took a token of the 1b shape from 109 to 93 ms.
enum { FETCH_AHEAD = 2048, CACHE_LINE = 64 };

INLINE void fetch(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(at + i);
}

// Half a step of weights: the even or the odd columns of bf16, the lower or the upper half of the others.
INLINE Lanes load_half(Form form, const unsigned char *w, int half) {
    if (form == FORM_F32) return lanes_load((const float *)(const void *)w + half * LANES);
    const uint16_t *h = (const uint16_t *)(const void *)w;
    if (form == FORM_F16) return lanes_f16(h + half * LANES);
    return half ? lanes_bf16_odd(h) : lanes_bf16_even(h);
}

// Adds part `half` of a step to all sums of a block; pairs go in one part.
INLINE void add_half(Form form, int outputs, int rows, const unsigned char *const *w, const unsigned char *x,
                     int half, Lanes (*sum)[BLOCK_ROWS]) {
    Lanes weight[BLOCK_OUTPUTS];
#pragma GCC unroll 8
    for (int o = 0; o < outputs; o++)
        weight[o] =
            form == FORM_PAIRS ? lanes_load((const float *)(const void *)w[o]) : load_half(form, w[o], half);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        Lanes in = lanes_load((const float *)(const void *)(x + (size_t)r * step_bytes(form)) + half * LANES);
#pragma GCC unroll 8
        for (int o = 0; o < outputs; o++)
            sum[o][r] = form == FORM_PAIRS ? lanes_pairs(weight[o], in, sum[o][r])
                                           : lanes_fma(weight[o], in, sum[o][r]);
    }
}

// One step of all sums of a block.
INLINE void add_step(Form form, int outputs, int rows, const unsigned char *const *w, const unsigned char *x,
                     Lanes (*sum)[BLOCK_ROWS]) {
    add_half(form, outputs, rows, w, x, 0, sum);
    if (form != FORM_PAIRS) add_half(form, outputs, rows, w, x, 1, sum);
}

// Outputs [n, n + outputs) of the rows that stand at x, to y[r * stride + o].
INLINE void product_block(Form form, int outputs, int rows, const Tensor *t, int n, const unsigned char *x,
                          float *y, size_t stride) {
    size_t size = weight_bytes(form), row = (size_t)t->columns * size, step = LANE_PAIRS * size;
    int whole = t->columns / LANE_PAIRS, rest = t->columns % LANE_PAIRS;
    const unsigned char *w[BLOCK_OUTPUTS];
    Lanes sum[BLOCK_OUTPUTS][BLOCK_ROWS];
    for (int o = 0; o < outputs; o++) {
        w[o] = (const unsigned char *)t->data + (size_t)(n + o) * row;
        for (int r = 0; r < rows; r++) sum[o][r] = lanes_set(0);
    }
    size_t ahead = FETCH_AHEAD;
    for (int k = 0; k < whole; k++, x += (size_t)rows * step_bytes(form)) {
        if ((size_t)(whole - k) * step == FETCH_AHEAD)
            ahead += (size_t)(outputs - 1) * row; // the next block's
        for (int o = 0; o < outputs; o++) fetch(w[o] + ahead, step);
        add_step(form, outputs, rows, w, x, sum);
        for (int o = 0; o < outputs; o++) w[o] += step;
    }
    if (rest) {
        unsigned char end[BLOCK_OUTPUTS][LANE_PAIRS * sizeof(float)] = {{0}};
        for (int o = 0; o < outputs; o++) w[o] = memcpy(end[o], w[o], (size_t)rest * size);
        add_step(form, outputs, rows, w, x, sum);
    }
    for (int o = 0; o < outputs; o++)
        for (int r = 0; r < rows; r++) y[(size_t)r * stride + (size_t)o] = lanes_sum(sum[o][r]);
}

// The counts become constants here, so that the sums above stay in registers. Cases beyond BLOCK_ROWS do not
// happen; they are clipped to compile.
INLINE void product_rows(Form form, int outputs, int rows, const Tensor *t, int n, const unsigned char *x,
                         float *y, size_t stride) {
#define ROWS(count) (count < BLOCK_ROWS ? count : BLOCK_ROWS)
    switch (rows) {
    case 1: product_block(form, outputs, ROWS(1), t, n, x, y, stride); break;
    case 2: product_block(form, outputs, ROWS(2), t, n, x, y, stride); break;
    case 3: product_block(form, outputs, ROWS(3), t, n, x, y, stride); break;
    case 4: product_block(form, outputs, ROWS(4), t, n, x, y, stride); break;
    case 5: product_block(form, outputs, ROWS(5), t, n, x, y, stride); break;
    case 6: product_block(form, outputs, ROWS(6), t, n, x, y, stride); break;
    }
#undef ROWS
}

// Outputs [n, end) of rows [first, last): both fit into the second-level cache together.
INLINE void product_chunk(Form form, const Tensor *w, const Packed *p, float *y, size_t stride, int n,
                          int end, int first, int last) {
    size_t row = row_bytes(form, p->columns);
    for (int outputs; n < end; n += outputs, y += outputs) {
        outputs = end - n < BLOCK_OUTPUTS ? 1 : BLOCK_OUTPUTS;
        for (int r = first; r < last; r += BLOCK_ROWS) {
            const unsigned char *x = (const unsigned char *)p->data + (size_t)r * row;
            int rows = p->rows - r < BLOCK_ROWS ? p->rows - r : BLOCK_ROWS;
            if (outputs == 1) product_rows(form, 1, rows, w, n, x, y + (size_t)r * stride, stride);
            else product_rows(form, BLOCK_OUTPUTS, rows, w, n, x, y + (size_t)r * stride, stride);
        }
    }
}

static inline int at_least(int n, int unit) { return n < unit ? unit : n / unit * unit; }

INLINE void product_of(Form form, const Tensor *w, const Packed *p, float *y, size_t stride, int from,
                       int to) {
    size_t columns = (size_t)padded_columns(p->columns);
    int outputs = at_least((int)(CHUNK_BYTES / 2 / (columns * weight_bytes(form))), BLOCK_OUTPUTS);
    int rows = at_least((int)(CHUNK_BYTES / row_bytes(form, p->columns)), BLOCK_ROWS);
    for (int n = from; n < to; n += outputs)
        for (int r = 0; r < p->rows; r += rows)
            product_chunk(form, w, p, y + (n - from), stride, n, n + outputs < to ? n + outputs : to, r,
                          r + rows < p->rows ? r + rows : p->rows);
}

static inline void matmul(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    switch (packed_form(p)) {
    case FORM_F32: product_of(FORM_F32, w, p, y, stride, from, to); break;
    case FORM_F16: product_of(FORM_F16, w, p, y, stride, from, to); break;
    case FORM_BF16: product_of(FORM_BF16, w, p, y, stride, from, to); break;
    case FORM_PAIRS: product_of(FORM_PAIRS, w, p, y, stride, from, to); break;
    }
}
