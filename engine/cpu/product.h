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
INLINE Lanes load_half(Dtype dtype, const unsigned char *w, int half) {
    if (dtype == DTYPE_F32) return lanes_load((const float *)(const void *)w + half * LANES);
    const uint16_t *h = (const uint16_t *)(const void *)w;
    if (dtype == DTYPE_F16) return lanes_f16(h + half * LANES);
    return half ? lanes_bf16_odd(h) : lanes_bf16_even(h);
}

// One step of all sums of a block.
INLINE void add_step(Dtype dtype, int outputs, int rows, const unsigned char *const *w, const float *x,
                     Lanes (*sum)[BLOCK_ROWS]) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        Lanes weight[BLOCK_OUTPUTS];
#pragma GCC unroll 8
        for (int o = 0; o < outputs; o++) weight[o] = load_half(dtype, w[o], half);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            Lanes in = lanes_load(x + r * LANE_PAIRS + half * LANES);
#pragma GCC unroll 8
            for (int o = 0; o < outputs; o++) sum[o][r] = lanes_fma(weight[o], in, sum[o][r]);
        }
    }
}

// Outputs [n, n + outputs) of the rows that stand at x, to y[r * stride + o].
INLINE void product_block(Dtype dtype, int outputs, int rows, const Tensor *t, int n, const float *x,
                          float *y, size_t stride) {
    size_t size = dtype == DTYPE_F32 ? 4 : 2, row = (size_t)t->columns * size, step = LANE_PAIRS * size;
    int whole = t->columns / LANE_PAIRS, rest = t->columns % LANE_PAIRS;
    const unsigned char *w[BLOCK_OUTPUTS];
    Lanes sum[BLOCK_OUTPUTS][BLOCK_ROWS];
    for (int o = 0; o < outputs; o++) {
        w[o] = (const unsigned char *)t->data + (size_t)(n + o) * row;
        for (int r = 0; r < rows; r++) sum[o][r] = lanes_set(0);
    }
    size_t ahead = FETCH_AHEAD;
    for (int k = 0; k < whole; k++, x += rows * LANE_PAIRS) {
        if ((size_t)(whole - k) * step == FETCH_AHEAD)
            ahead += (size_t)(outputs - 1) * row; // the next block's
        for (int o = 0; o < outputs; o++) fetch(w[o] + ahead, step);
        add_step(dtype, outputs, rows, w, x, sum);
        for (int o = 0; o < outputs; o++) w[o] += step;
    }
    if (rest) {
        unsigned char end[BLOCK_OUTPUTS][LANE_PAIRS * sizeof(float)] = {{0}};
        for (int o = 0; o < outputs; o++) w[o] = memcpy(end[o], w[o], (size_t)rest * size);
        add_step(dtype, outputs, rows, w, x, sum);
    }
    for (int o = 0; o < outputs; o++)
        for (int r = 0; r < rows; r++) y[(size_t)r * stride + (size_t)o] = lanes_sum(sum[o][r]);
}

// The counts become constants here, so that the sums above stay in registers. Cases beyond BLOCK_ROWS do not
// happen; they are clipped to compile.
INLINE void product_rows(Dtype dtype, int outputs, int rows, const Tensor *t, int n, const float *x, float *y,
                         size_t stride) {
#define ROWS(count) (count < BLOCK_ROWS ? count : BLOCK_ROWS)
    switch (rows) {
    case 1: product_block(dtype, outputs, ROWS(1), t, n, x, y, stride); break;
    case 2: product_block(dtype, outputs, ROWS(2), t, n, x, y, stride); break;
    case 3: product_block(dtype, outputs, ROWS(3), t, n, x, y, stride); break;
    case 4: product_block(dtype, outputs, ROWS(4), t, n, x, y, stride); break;
    case 5: product_block(dtype, outputs, ROWS(5), t, n, x, y, stride); break;
    case 6: product_block(dtype, outputs, ROWS(6), t, n, x, y, stride); break;
    }
#undef ROWS
}

// Outputs [n, end) of rows [first, last): both fit into the second-level cache together.
INLINE void product_chunk(Dtype dtype, const Tensor *w, const Packed *p, float *y, size_t stride, int n,
                          int end, int first, int last) {
    size_t columns = (size_t)padded_columns(p->columns);
    for (int outputs; n < end; n += outputs, y += outputs) {
        outputs = end - n < BLOCK_OUTPUTS ? 1 : BLOCK_OUTPUTS;
        for (int r = first; r < last; r += BLOCK_ROWS) {
            const float *x = (const float *)p->data + (size_t)r * columns;
            int rows = p->rows - r < BLOCK_ROWS ? p->rows - r : BLOCK_ROWS;
            if (outputs == 1) product_rows(dtype, 1, rows, w, n, x, y + (size_t)r * stride, stride);
            else product_rows(dtype, BLOCK_OUTPUTS, rows, w, n, x, y + (size_t)r * stride, stride);
        }
    }
}

static inline int at_least(int n, int unit) { return n < unit ? unit : n / unit * unit; }

INLINE void product_of(Dtype dtype, const Tensor *w, const Packed *p, float *y, size_t stride, int from,
                       int to) {
    size_t columns = (size_t)padded_columns(p->columns);
    int outputs = at_least((int)(CHUNK_BYTES / 2 / (columns * dtype_size(dtype))), BLOCK_OUTPUTS);
    int rows = at_least((int)(CHUNK_BYTES / (columns * sizeof(float))), BLOCK_ROWS);
    for (int n = from; n < to; n += outputs)
        for (int r = 0; r < p->rows; r += rows)
            product_chunk(dtype, w, p, y + (n - from), stride, n, n + outputs < to ? n + outputs : to, r,
                          r + rows < p->rows ? r + rows : p->rows);
}

static inline void matmul(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    switch (w->dtype) {
    case DTYPE_F32: product_of(DTYPE_F32, w, p, y, stride, from, to); break;
    case DTYPE_F16: product_of(DTYPE_F16, w, p, y, stride, from, to); break;
    case DTYPE_BF16: product_of(DTYPE_BF16, w, p, y, stride, from, to); break;
    }
}
