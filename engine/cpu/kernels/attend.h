// One key head of neighbouring nodes, from scores to output; part of each kernel set. attention.h has the
// scores, the values' sums are here.
#pragma once
#include "engine/cpu/kernels/attention.h"

// Adds a span's values, by their weights, to dimensions [d, d + LANE_PAIRS) of the sums of queries
// [first, first + count) of q.
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

typedef void SpanTask(const Attend *a, const KeySpan *s, const Queries *q);

// Consecutive spans, for the same queries.
static inline void for_each(const Attend *a, const KeySpan *s, int count, Queries q, SpanTask *task) {
    for (int i = 0; i < count; q.at += s[i++].count) task(a, &s[i], &q);
}

// Calls the task for every span, in order of position for each node: first the spans that nodes have before
// the shared ones, then the shared ones with all queries, then the spans that nodes have after those.
static inline void for_spans(const Attend *a, SpanTask *task) {
    const KeySpan *s = a->span + a->shared_spans;
    for (int n = 0; n < a->nodes; s += a->before_spans[n] + a->after_spans[n], n++)
        for_each(a, s, a->before_spans[n], (Queries){n * a->group, a->group, 0, false}, task);
    for_each(a, a->span, a->shared_spans, (Queries){0, a->nodes * a->group, 0, true}, task);
    s = a->span + a->shared_spans;
    for (int n = 0; n < a->nodes; s += a->before_spans[n] + a->after_spans[n], n++)
        for_each(a, s + a->before_spans[n], a->after_spans[n],
                 (Queries){n * a->group, a->group, a->before[n] + a->shared, false}, task);
}

static inline void weigh(const Attend *a) {
    for (int i = 0; i < a->nodes * a->group; i++) {
        float *scores = score_row(a, i);
        int n = a->visible[i / a->group];
        for (int j = 0; a->cap > 0 && j < n; j++) scores[j] = fast_tanh(scores[j] * (a->scale / a->cap));
        softmax(scores, n, a->cap > 0 ? a->cap : a->scale);
    }
}

// A sum of bf16 values has even dimensions in the lower half of each LANE_PAIRS, odd ones in the upper half.
static inline void put_out(const Attend *a, int i) {
    const float *sum = sum_row(a, i);
    float *out = a->out + (size_t)(i / a->group) * a->row + (size_t)(i % a->group) * (size_t)a->head_dim;
    if (a->layout->dtype != DTYPE_BF16) memcpy(out, sum, (size_t)a->head_dim * sizeof *out);
    else
        for (int d = 0; d < a->head_dim; d++)
            out[d] = sum[d / LANE_PAIRS * LANE_PAIRS + d % 2 * LANES + d % LANE_PAIRS / 2];
}

static inline void attend(const Attend *a) {
    int queries = a->nodes * a->group;
    if (attend_does(a, ATTEND_SCORES)) for_spans(a, score_span);
    if (attend_does(a, ATTEND_WEIGHTS)) weigh(a);
    if (!attend_does(a, ATTEND_VALUES)) return;
    memset(a->sums, 0, (size_t)queries * key_value_pad(a->head_dim) * sizeof *a->sums);
    for_spans(a, mix_span);
    for (int i = 0; i < queries; i++) put_out(a, i);
}
