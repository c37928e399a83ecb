// Attention's second half: values, by their weights; part of each kernel set (see attention.h).
#pragma once
#include "engine/cpu/kernels/attention.h"

// Adds a span to dimensions [d, d + LANE_PAIRS) of the sums of queries [first, first + count) of q.
INLINE void mix_block(const Attend *a, const KeySpan *s, const Queries *q, int first, int count, int d) {
    Lanes low[BLOCK_QUERIES], high[BLOCK_QUERIES];
    const float *weight[BLOCK_QUERIES];
    size_t size = dtype_size(a->layout->dtype), step = a->layout->row_elements * size;
    const unsigned char *v = (const unsigned char *)s->v + (size_t)s->first * step + (size_t)d * size;
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        weight[i] = span_scores(a, q, first + i);
        low[i] = lanes_load(sum_row(a, first + i) + d);
        high[i] = lanes_load(sum_row(a, first + i) + d + LANES);
    }
    for (int j = 0; j < s->count; j++, v += step) {
        Lanes a_half, b_half;
        load_step(a->layout->dtype, v, &a_half, &b_half);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            Lanes w = lanes_set(weight[i][j]);
            low[i] = lanes_fma(w, a_half, low[i]);
            high[i] = lanes_fma(w, b_half, high[i]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        lanes_store(sum_row(a, first + i) + d, low[i]);
        lanes_store(sum_row(a, first + i) + d + LANES, high[i]);
    }
}

static inline void mix_span(const Attend *a, const KeySpan *s, const Queries *q) {
    for (int d = 0; d < a->head_dim; d += LANE_PAIRS) {
        int i = q->first, end = q->first + q->count;
        for (; i + BLOCK_QUERIES <= end; i += BLOCK_QUERIES) mix_block(a, s, q, i, BLOCK_QUERIES, d);
        for (; i + HALF_BLOCK <= end; i += HALF_BLOCK) mix_block(a, s, q, i, HALF_BLOCK, d);
        for (; i + 2 <= end; i += 2) mix_block(a, s, q, i, 2, d);
        if (i < end) mix_block(a, s, q, i, 1, d);
    }
}
