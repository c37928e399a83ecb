// One key head of neighbouring nodes, start to end; part of each kernel set (see attention.h).
#pragma once
#include "engine/cpu/kernels/mix.h"

typedef void SpanTask(const Attend *a, const KeySpan *s, const Queries *q);

// Spans that stand one after another, in front of the same queries.
static inline void for_each(const Attend *a, const KeySpan *s, int count, Queries q, SpanTask *task) {
    for (int i = 0; i < count; q.at += s[i++].count) task(a, &s[i], &q);
}

// Hands every span to the task, each node's in order of position: first what nodes have before the shared
// spans, then these with all queries, then what nodes have after those.
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
    for (int i = 0; i < a->nodes * a->group; i++)
        softmax(score_row(a, i), a->visible[i / a->group], a->scale);
}

// A sum of bf16 values holds even dimensions in the lower half of each LANE_PAIRS, odd ones in the upper.
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
