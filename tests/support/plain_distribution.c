#include "tests/support/plain_distribution.h"

#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    double logit;
    int id;
} Pair;

static int larger_first(const void *a, const void *b) {
    const Pair *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return x->id - y->id;
}

double plain_distribution(const Sampling *s, const float *logits, int vocab, double *p) {
    Pair *order = calloc((size_t)vocab, sizeof *order);
    double *weight = calloc((size_t)vocab, sizeof *weight), total = 0, sum = 0, margin = 1;
    int n = 0, kept = 0;
    assert_true(order && weight);
    for (int i = 0; i < vocab; i++) {
        p[i] = 0;
        if (logits[i] > -INFINITY) order[n++] = (Pair){(double)logits[i], i};
    }
    qsort(order, (size_t)n, sizeof *order, larger_first);
    int k = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    for (int i = 0; i < k; i++) {
        bool highest = order[i].logit == order[0].logit;
        total += weight[i] = highest ? 1 : exp((order[i].logit - order[0].logit) / s->temperature);
    }
    while (kept < k && (kept == 0 || s->top_p >= 1 || sum < s->top_p * total)) {
        sum += weight[kept++];
        if (s->top_p < 1) margin = fmin(margin, fabs(sum / total - s->top_p));
    }
    for (int i = 0; i < kept; i++) p[order[i].id] = weight[i] / sum;
    free(order), free(weight);
    return margin;
}
