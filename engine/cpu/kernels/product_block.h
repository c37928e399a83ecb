// One block of a product: BLOCK_OUTPUTS outputs of a group of rows, summed in registers; part of each kernel
// set (see product.h).
#pragma once
#include "engine/cpu/kernels/pack.h"

enum { CACHE_LINE = 64 };

INLINE void fetch(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(at + i, 0, 2);
}

// What a block itself comes to soon, from the second-level cache into the first. A row or two leave the
// processor time to look ahead by itself.
enum { FEW_ROWS = 2, FETCH_NEAR = 1024 };

INLINE void fetch_near(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(at + FETCH_NEAR + i, 0, 3);
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

// What a block is, beside its counts.
typedef struct Block {
    const unsigned char *w; // of the first output
    int columns;
    size_t apart;           // bytes from one output's weights to the next one's
    const unsigned char *x; // of the first row
    float *y;               // output o of row r at y[r * stride + o * y_apart]
    size_t stride, y_apart;
    const unsigned char *ahead; // what is fetched meanwhile, outputs apart like w
    int fetched;                // outputs of it
    bool near;                  // whether the block's own weights are fetched into the first-level cache
} Block;

INLINE void product_put(int outputs, int rows, Lanes (*sum)[BLOCK_ROWS], const Block *b) {
    for (int r = 0; r < rows; r++) {
        float *y = b->y + (size_t)r * b->stride, sums[4];
        if (outputs == 4) lanes_sum_four(sum[0][r], sum[1][r], sum[2][r], sum[3][r], sums);
        for (int o = 0; o < outputs; o++)
            y[(size_t)o * b->y_apart] = outputs == 4 ? sums[o] : lanes_sum(sum[o][r]);
    }
}

// fetched: of the outputs; a constant where all are, since a loop here leaves less of what comes in sight:
// one row was read at 21 GB/s by a core, and at 25 without it.
INLINE void product_block(Form form, int outputs, int rows, int fetched, const Block *b) {
    size_t size = weight_bytes(form), step = LANE_PAIRS * size;
    int whole = b->columns / LANE_PAIRS, rest = b->columns % LANE_PAIRS;
    const unsigned char *w[BLOCK_OUTPUTS], *x = b->x, *ahead = b->ahead;
    Lanes sum[BLOCK_OUTPUTS][BLOCK_ROWS];
    for (int o = 0; o < outputs; o++) {
        w[o] = b->w + (size_t)o * b->apart;
        for (int r = 0; r < rows; r++) sum[o][r] = lanes_set(0);
    }
    for (int k = 0; k < whole; k++, x += (size_t)rows * step_bytes(form)) {
        for (int o = 0; o < fetched; o++) fetch(ahead + (size_t)o * b->apart, step);
        for (int o = 0; rows > FEW_ROWS && b->near && o < outputs; o++) fetch_near(w[o], step);
        ahead += step;
        add_step(form, outputs, rows, w, x, sum);
        for (int o = 0; o < outputs; o++) w[o] += step;
    }
    if (rest) {
        unsigned char end[BLOCK_OUTPUTS][LANE_PAIRS * sizeof(float)] = {{0}};
        for (int o = 0; o < outputs; o++) w[o] = memcpy(end[o], w[o], (size_t)rest * size);
        add_step(form, outputs, rows, w, x, sum);
    }
    product_put(outputs, rows, sum, b);
}

// The counts become constants here, so that the sums above stay in registers. Cases beyond BLOCK_ROWS do not
// happen; they are clipped to compile.
INLINE void product_rows(Form form, int outputs, int rows, int fetched, const Block *b) {
#define ROWS(count) (count < BLOCK_ROWS ? count : BLOCK_ROWS)
    switch (rows) {
    case 1: product_block(form, outputs, ROWS(1), fetched, b); break;
    case 2: product_block(form, outputs, ROWS(2), fetched, b); break;
    case 3: product_block(form, outputs, ROWS(3), fetched, b); break;
    case 4: product_block(form, outputs, ROWS(4), fetched, b); break;
    case 5: product_block(form, outputs, ROWS(5), fetched, b); break;
    case 6: product_block(form, outputs, ROWS(6), fetched, b); break;
    }
#undef ROWS
}
