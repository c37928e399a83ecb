// Attention in lanes: scores; part of each kernel set (see lanes.h, and keys.h for the layout of keys).
//
// Scores: a vector has one dimension of 16 keys, and a query's value is broadcast, so that 16 scores grow
// side by side, each summed over dimensions in order; BLOCK_QUERIES queries share each load. Values
// (attend.h): weights are broadcast, and rows added in order of position. So a score doesn't depend on its
// lane, nor a sum on the slots of its keys. Lanes whose keys aren't visible are computed and dropped.
//
// Dimensions are taken one by one, even in sets that multiply pairs of bf16: a larger head that has a smaller
// one's dimensions with zeros in between (model/inflate.h) then has the same scores, bit for bit.
//
// Keys that all neighbouring nodes see are read once for BLOCK_QUERIES of their queries; the rest, usually a
// few ancestors, once for the query heads of one node.
#pragma once
#include "engine/cpu/kernels/rows.h"

enum { PAIR = 2, HALF_BLOCK = BLOCK_QUERIES > 2 ? BLOCK_QUERIES / 2 : 2 }; // groups of 4 are common

// `count` queries in (node, head of the group) order, from `first` on. A span's positions begin at `at` in
// their rows of scores; for a shared span, behind the positions that a node has before the shared ones.
typedef struct Queries {
    int first, count, at;
    bool shared;
} Queries;

static inline const float *query(const Attend *a, int i) {
    return a->q + (size_t)(i / a->group) * a->row + (size_t)(i % a->group) * (size_t)a->head_dim;
}
static inline float *score_row(const Attend *a, int i) { return a->scores + (size_t)i * a->score_row; }
static inline float *span_scores(const Attend *a, const Queries *q, int i) {
    return score_row(a, i) + q->at + (q->shared ? a->before[i / a->group] : 0);
}
static inline float *sum_row(const Attend *a, int i) {
    return a->sums + (size_t)i * key_value_pad(a->head_dim);
}

// Copies lanes [from, to) to `out`.
static inline void put_lanes(Lanes x, int from, int to, float *out) {
    float lane[LANES];
    if (to - from == LANES) lanes_store(out, x);
    else {
        lanes_store(lane, x);
        memcpy(out, lane + from, (size_t)(to - from) * sizeof *out);
    }
}

// Loads LANE_PAIRS neighbours: bf16 as even and odd ones, others as lower and upper half.
INLINE void load_step(Dtype dtype, const void *at, Lanes *low, Lanes *high) {
    const uint16_t *h = at;
    const float *f = at;
    if (dtype == DTYPE_BF16) *low = lanes_bf16_even(h), *high = lanes_bf16_odd(h);
    else if (dtype == DTYPE_F16) *low = lanes_f16(h), *high = lanes_f16(h + LANES);
    else *low = lanes_load(f), *high = lanes_load(f + LANES);
}

// Scores of the 16 keys at `block` for `count` queries, sum[q].
INLINE void score_block(const Attend *a, const void *block, const float *const *q, int count, Lanes *sum) {
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) sum[i] = lanes_set(0);
    size_t size = dtype_size(a->layout->dtype);
    for (int d = 0; d < a->head_dim; d += PAIR) {
        Lanes even, odd;
        load_step(a->layout->dtype, (const unsigned char *)block + (size_t)d * LANES * size, &even, &odd);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            sum[i] = lanes_fma(lanes_set(q[i][d]), even, sum[i]);
            sum[i] = lanes_fma(lanes_set(q[i][d + 1]), odd, sum[i]);
        }
    }
}

// Scores of a span for queries [first, first + count) of q.
INLINE void score_queries(const Attend *a, const KeySpan *s, const Queries *q, int first, int count) {
    const float *row[BLOCK_QUERIES];
    float *out[BLOCK_QUERIES];
    Lanes sum[BLOCK_QUERIES];
    size_t block_bytes = a->layout->block_elements * dtype_size(a->layout->dtype);
    for (int i = 0; i < count; i++) {
        row[i] = query(a, first + i);
        out[i] = span_scores(a, q, first + i);
    }
    for (int k = s->first, end = s->first + s->count, next; k < end; k = next) {
        int block = k / KEY_BLOCK, from = k % KEY_BLOCK;
        const unsigned char *keys = (const unsigned char *)s->k + (size_t)block * block_bytes;
        next = (block + 1) * KEY_BLOCK < end ? (block + 1) * KEY_BLOCK : end;
        score_block(a, keys, row, count, sum);
        for (int i = 0; i < count; i++) put_lanes(sum[i], from, from + next - k, out[i] + (k - s->first));
    }
}

static inline void score_span(const Attend *a, const KeySpan *s, const Queries *q) {
    int i = q->first, end = q->first + q->count;
    for (; i + BLOCK_QUERIES <= end; i += BLOCK_QUERIES) score_queries(a, s, q, i, BLOCK_QUERIES);
    for (; i + HALF_BLOCK <= end; i += HALF_BLOCK) score_queries(a, s, q, i, HALF_BLOCK);
    for (; i + 2 <= end; i += 2) score_queries(a, s, q, i, 2);
    if (i < end) score_queries(a, s, q, i, 1);
}
