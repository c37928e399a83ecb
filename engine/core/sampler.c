// Distributions are exact functions of the logits: all sums are in double and in order of id (or of rank), so
// that every machine draws the same token. Invariant, asserted by sampler_check(): whatever the logits, p is
// a distribution, or 0 everywhere.
#include "engine/core/sampler.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>

void sampler_init(Sampler *s, const Sampling *sampling, int vocab) {
    assert(vocab >= 1 && sampling->temperature >= 0);
    *s = (Sampler){.sampling = *sampling, .vocab = vocab};
    s->order = mem_new((size_t)vocab, sizeof *s->order);
    s->keys = mem_new((size_t)vocab, sizeof *s->keys);
}

void sampler_release(Sampler *s) {
    MEM_FREE(s->order, s->keys);
    *s = (Sampler){0};
}

// Whether a comes before b: the larger key first, the lower id first among equals.
static bool before(const float *keys, int a, int b) {
    return keys[a] > keys[b] || (keys[a] == keys[b] && a < b);
}

static void swap(int *a, int *b) {
    int t = *a;
    *a = *b;
    *b = t;
}

static void sift(const float *keys, int *heap, int n, int i) {
    for (int child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(keys, heap[child], heap[child + 1])) child++;
        if (before(keys, heap[child], heap[i])) return;
        swap(&heap[i], &heap[child]);
    }
}

// p = softmax(logits / temperature). If no logit is a number above -INFINITY, p is 0.
static void soften(const Sampler *s, const float *logits, float *p) {
    double highest = -INFINITY, total = 0;
    for (int i = 0; i < s->vocab; i++) // not fmax: gcc 12 fails on it on Arm (internal compiler error)
        if ((double)logits[i] > highest) highest = (double)logits[i];
    for (int i = 0; i < s->vocab; i++) {
        double logit = (double)logits[i], x = exp((logit - highest) / s->sampling.temperature);
        // NaN weighs 0. If infinities are the highest, each weighs 1 and everything else 0.
        if (!(x >= 0)) x = logit == highest && logit > 0;
        p[i] = (float)x;
        total += x;
    }
    for (int i = 0; i < s->vocab && total > 0; i++) p[i] = (float)((double)p[i] / total);
}

// How many tokens of `order` remain: of the first k, the fewest whose share of the k reaches top_p.
static int count_kept(const Sampler *s, const float *p, int k) {
    double total = 0, sum = 0;
    for (int i = 0; i < k; i++) total += (double)p[s->order[i]];
    int n = 0;
    while (n < k && (n == 0 || sum < s->sampling.top_p * total)) sum += (double)p[s->order[n++]];
    return n;
}

// Keeps the tokens that top-k and top-p allow.
static void cut(Sampler *s, const float *logits, float *p) {
    int k = s->sampling.top_k > 0 && s->sampling.top_k < s->vocab ? s->sampling.top_k : s->vocab;
    if (k == s->vocab && s->sampling.top_p >= 1) return;
    for (int i = 0; i < s->vocab; i++) {
        s->order[i] = i;
        // sort by logits: two small probabilities may have been rounded to the same number
        s->keys[i] = isnan(logits[i]) ? -INFINITY : logits[i];
    }
    // Sorts ids, largest key first. Heap sort with the worst id on top: its time doesn't depend on the
    // distribution, and it needs no memory.
    for (int i = s->vocab / 2 - 1; i >= 0; i--) sift(s->keys, s->order, s->vocab, i);
    for (int end = s->vocab - 1; end > 0; end--) {
        swap(&s->order[0], &s->order[end]);
        sift(s->keys, s->order, end, 0);
    }
    int kept = s->sampling.top_p < 1 ? count_kept(s, p, k) : k;
    double total = 0; // of the kept, which are rescaled to a sum of 1
    for (int i = 0; i < kept; i++) total += (double)p[s->order[i]];
    for (int i = kept; i < s->vocab; i++) p[s->order[i]] = 0;
    for (int i = 0; i < kept && total > 0; i++) p[s->order[i]] = (float)((double)p[s->order[i]] / total);
}

void sampler_distribution(Sampler *s, const float *logits, float *p) {
    soften(s, logits, p);
    cut(s, logits, p);
    for (int i = 0; i < s->vocab; i++) assert(p[i] >= 0 && p[i] <= 1); // so it's a number
    double sum = sampler_sum(p, s->vocab);
    assert(!(sum > 0) || fabs(sum - 1) < 1e-3);
}

double sampler_sum(const float *p, int vocab) {
    double total = 0;
    for (int i = 0; i < vocab; i++) total += (double)p[i];
    return total;
}

int sampler_draw(const float *p, int vocab, double u) {
    double total = sampler_sum(p, vocab), sum = 0;
    int last = 0;
    assert(u >= 0 && u < 1);
    for (int i = 0; i < vocab; i++) {
        if (!(p[i] > 0)) continue;
        sum += (double)p[i];
        last = i;
        if (sum > u * total) return i;
    }
    return last; // rounding at the very end
}

int sampler_rest(float *p, int vocab, const int *tokens, int count, double u) {
    for (int i = 0; i < count; i++) p[tokens[i]] = 0;
    int token = sampler_draw(p, vocab, u);
    return p[token] > 0 ? token : -1;
}
