#include "engine/core/sampler.h"

#include "engine/base/memory.h"

#include <math.h>

bool sampler_init(Sampler *s, const Sampling *sampling, int vocab, Error *e) {
    *s = (Sampler){.sampling = *sampling, .vocab = vocab};
    s->order = mem_alloc((size_t)vocab, sizeof *s->order);
    s->keys = mem_alloc((size_t)vocab, sizeof *s->keys);
    if (s->order && s->keys) return true;
    sampler_release(s);
    return error_system(e, "out of memory for a distribution over %d tokens", vocab);
}

void sampler_release(Sampler *s) {
    mem_free(s->order);
    mem_free(s->keys);
    *s = (Sampler){0};
}

// True if a comes before b: larger first, lower id first among equals.
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

// Sorts ids, largest key first: heap sort with the worst on top, so it takes the same time on any
// distribution and needs no memory.
static void sort_ids(const float *keys, int *ids, int n) {
    for (int i = n / 2 - 1; i >= 0; i--) sift(keys, ids, n, i);
    for (int end = n - 1; end > 0; end--) {
        swap(&ids[0], &ids[end]);
        sift(keys, ids, end, 0);
    }
}

// exp of a logit below the highest; a not-a-number weighs nothing, and infinities, where they are the
// highest, share all there is.
static double weigh(double logit, double highest, double temperature) {
    double x = exp((logit - highest) / temperature);
    return x >= 0 ? x : logit == highest && logit > 0;
}

// p = softmax(logits / temperature), sums in double. Where no logit is a number above -INFINITY, p is 0.
static void soften(const Sampler *s, const float *logits, float *p) {
    double highest = -INFINITY, total = 0;
    for (int i = 0; i < s->vocab; i++) // not fmax, at which gcc 12 ends with an internal error on Arm
        if ((double)logits[i] > highest) highest = (double)logits[i];
    for (int i = 0; i < s->vocab; i++) {
        double x = weigh((double)logits[i], highest, s->sampling.temperature);
        p[i] = (float)x;
        total += x;
    }
    for (int i = 0; i < s->vocab && total > 0; i++) p[i] = (float)((double)p[i] / total);
}

// How many of the tokens in `order` stay: the first k, then the fewest of them whose share of the k reaches
// top_p.
static int count_kept(const Sampler *s, const float *p, int k) {
    double total = 0, sum = 0;
    for (int i = 0; i < k; i++) total += (double)p[s->order[i]];
    int n = 0;
    while (n < k && (n == 0 || sum < s->sampling.top_p * total)) sum += (double)p[s->order[n++]];
    return n;
}

static void keep(const Sampler *s, float *p, int n) {
    double total = 0;
    for (int i = 0; i < n; i++) total += (double)p[s->order[i]];
    for (int i = n; i < s->vocab; i++) p[s->order[i]] = 0;
    for (int i = 0; i < n && total > 0; i++) p[s->order[i]] = (float)((double)p[s->order[i]] / total);
}

void sampler_distribution(Sampler *s, const float *logits, float *p) {
    soften(s, logits, p);
    int k = s->sampling.top_k > 0 && s->sampling.top_k < s->vocab ? s->sampling.top_k : s->vocab;
    if (k == s->vocab && s->sampling.top_p >= 1) return;
    for (int i = 0; i < s->vocab; i++) {
        s->order[i] = i;
        // by logits: two small probabilities may have rounded to the same number
        s->keys[i] = isnan(logits[i]) ? -INFINITY : logits[i];
    }
    sort_ids(s->keys, s->order, s->vocab);
    keep(s, p, s->sampling.top_p < 1 ? count_kept(s, p, k) : k);
}

int sampler_draw(const float *p, int vocab, double u) {
    double total = 0, sum = 0;
    int last = 0;
    for (int i = 0; i < vocab; i++) total += (double)p[i];
    for (int i = 0; i < vocab; i++) {
        if (!(p[i] > 0)) continue;
        sum += (double)p[i];
        last = i;
        if (sum > u * total) return i;
    }
    return last; // rounding at the very end
}
