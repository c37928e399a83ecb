// Probabilities for the verifier, from a backend that draws or from p computed here. top_chance is on its own
// at the end.
//
// Invariants
//  1. p is the unchanged distribution of node `at` in this step. A draw that strikes tokens out of p sets
//     `at` to TREE_NONE.
//  2. If s->drawn[i] != UNDRAWN, then ahead->u[i] is the number it was drawn by, and ahead->chance[] holds
//     the chances of everything proposed below i at the time of the read.
#include "engine/core/draws.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

typedef struct Ahead {
    double u[TREE_MAX_NODES], chance[TREE_MAX_NODES]; // by node: the number of its draw; p of its own token
    double confidence[TREE_MAX_NODES];                // by node
    double total[TREE_MAX_NODES];                     // by node: the sum of p
    int tries[TREE_MAX_NODES];                        // by node: proposals tried on the way to it
    // the arrays of one call: by row, then by token of all rows
    int nodes[TREE_MAX_NODES], first[TREE_MAX_NODES + 1], drawn[TREE_MAX_NODES];
    int token[TREE_MAX_NODES], child[TREE_MAX_NODES];
    double row_u[TREE_MAX_NODES];
    double row_chance[TREE_MAX_NODES], row_confidence[TREE_MAX_NODES], row_total[TREE_MAX_NODES];
} Ahead;

static void draws_check(const Draws *d, const Session *s) {
    assert(d->p && d->ahead && d->sampler.vocab == d->vocab);
    assert(d->at == TREE_NONE || (d->at >= 0 && d->at < s->tree.count && s->tree.canonical[d->at] == d->at));
    assert(d->vocab >= 1 && d->vocab <= s->shape.vocab);
}

void draws_init(Draws *d, const Sampling *sampling, int vocab) {
    assert(!sampling_is_greedy(sampling) && vocab >= 1);
    *d = (Draws){.vocab = vocab, .at = TREE_NONE};
    sampler_init(&d->sampler, sampling, vocab);
    d->p = mem_new((size_t)vocab, sizeof *d->p);
    d->ahead = mem_new(1, sizeof *d->ahead);
}

void draws_release(Draws *d) {
    sampler_release(&d->sampler);
    MEM_FREE(d->p, d->ahead);
    *d = (Draws){.at = TREE_NONE};
}

static bool backend_draws(const Session *s) { return s->backend->distribution != NULL; }

// --- ahead

// Appends a node's proposed tokens, each once, to the list of `count`; returns the new count. The value
// `listed` marks a child that is already in the list.
static int list_tokens(Ahead *a, const Tree *t, int node, int count) {
    const double listed = -1;
    for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next)
        a->chance[t->proposals[i].child] = 0;
    for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next) {
        int child = t->proposals[i].child;
        if (a->chance[child] == listed) continue;
        a->chance[child] = listed;
        a->child[count] = child;
        a->token[count++] = t->token[child];
    }
    return count;
}

static void fill_request(Ahead *a, const Tree *t, int rows, const Random *random) {
    int tokens = 0;
    // The proposals tried before each node is reached. They're tried in order, and a node's number is above
    // its parent's. A child that is proposed twice can be reached in two ways: the later one is the guess.
    for (int node = 0; node < t->count; node++) a->tries[node] = 0;
    for (int node = 0; node < t->count; node++)
        for (int i = t->first_proposal[node], n = a->tries[node]; i != TREE_NONE; i = t->proposals[i].next)
            a->tries[t->proposals[i].child] = ++n;
    for (int r = 0; r < rows; r++) {
        int node = a->nodes[r];
        a->first[r] = tokens;
        tokens = list_tokens(a, t, node, tokens);
        Random last = *random; // the number after those of all proposals, on the way to the node and below it
        last.counter += (uint64_t)a->tries[node];
        for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next) last.counter++;
        a->row_u[r] = random_uniform(&last);
        a->row_total[r] = 1;
    }
    a->first[rows] = tokens;
}

bool draws_read(Draws *d, Session *s, const Random *ahead, Error *e) {
    Ahead *a = d->ahead;
    d->at = TREE_NONE;
    if (!backend_draws(s)) return session_read(s, HEAD_ARGMAX | HEAD_LOGITS, e);
    int rows = session_unread(s, HEAD_DRAW, a->nodes);
    if (rows == 0) return true;
    fill_request(a, &s->tree, rows, ahead);
    HeadDraws draws = {.sampling = d->sampler.sampling,
                       .vocab = d->vocab,
                       .u = a->row_u,
                       .first = a->first,
                       .token = a->token,
                       .chance = a->row_chance,
                       .total = a->row_total,
                       .confidence = d->confident ? a->row_confidence : NULL,
                       .drawn = a->drawn};
    if (!session_draw(s, a->nodes, rows, &draws, e)) return false;
    for (int r = 0; r < rows; r++) a->u[a->nodes[r]] = a->row_u[r];
    for (int r = 0; r < rows; r++) a->total[a->nodes[r]] = a->row_total[r];
    for (int r = 0; r < rows && d->confident; r++) a->confidence[a->nodes[r]] = a->row_confidence[r];
    for (int i = 0; i < a->first[rows]; i++) a->chance[a->child[i]] = a->row_chance[i];
    draws_check(d, s);
    return true;
}

// --- p on the host

// Makes p the node's distribution, from its logits.
static void compute_p(Draws *d, const Session *s, int node) {
    if (d->at == node) return;
    sampler_distribution(&d->sampler, session_logits(s, node), d->p);
    d->at = node;
    d->total = -1;
    draws_check(d, s);
}

double draws_chance(Draws *d, const Session *s, int node, int child) {
    if (backend_draws(s)) return d->ahead->chance[child];
    compute_p(d, s, node);
    return (double)d->p[s->tree.token[child]];
}

double draws_total(Draws *d, const Session *s, int node) {
    if (backend_draws(s)) return d->ahead->total[node];
    compute_p(d, s, node);
    if (d->total < 0) d->total = sampler_sum(d->p, d->vocab);
    return d->total;
}

double draws_confidence(const Draws *d, const Session *s, int node) {
    if (backend_draws(s)) return d->ahead->confidence[node];
    const float *logits = session_logits(s, node);
    return top_chance(logits, s->shape.real_vocab, logits[session_argmax(s, node)]);
}

bool draws_draw(Draws *d, const Session *s, int node, double u, int *token, Error *e) {
    if (backend_draws(s) && d->ahead->u[node] == u) {
        *token = s->drawn[node];
        return true;
    }
    if (!backend_draws(s)) compute_p(d, s, node);
    else if (!draws_distribution(d, s, node, d->p, e)) return false;
    const Tree *t = &s->tree;
    for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next) {
        d->p[t->token[t->proposals[i].child]] = 0;
        d->at = TREE_NONE; // p is no longer a node's distribution
    }
    *token = sampler_rest(d->p, d->vocab, NULL, 0, u);
    assert(*token >= -1 && *token < d->vocab);
    draws_check(d, s);
    return true;
}

bool draws_distribution(Draws *d, const Session *s, int node, float *p, Error *e) {
    if (backend_draws(s))
        return s->backend->distribution(s->self, node, &d->sampler.sampling, d->vocab, p, e);
    compute_p(d, s, node);
    memcpy(p, d->p, (size_t)d->vocab * sizeof *p);
    return true;
}

// --- top_chance: 1 / sum of exp(x - largest)
//
// Loops that a compiler turns into vectors of any width: the terms of a block, then LANES sums of floats,
// moved into doubles before they grow inexact.

enum { LANES = 16, BLOCK = 32 * LANES };

static inline __attribute__((always_inline)) int32_t bits_of(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline __attribute__((always_inline)) float float_of(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// exp for x <= 0: 2 to the nearest whole number of x / ln 2 through the exponent's bits, times a polynomial
// (the Taylor series of 2^f, f in [-1/2, 1/2], within 2e-7). Below -80, x counts as -80: nothing next to the
// largest term, which is 1. Sizes are compared as bits, since gcc doesn't vectorise a loop that compares
// floats.
static inline __attribute__((always_inline)) float exp_below(float x) {
    const int32_t magnitude = 0x7FFFFFFF, most = 0x42A00000; // 80
    int32_t size = bits_of(x) & magnitude;
    float t = float_of(size < most ? size : most) * -1.44269504f;
    int32_t n = (int32_t)(t - 0.5f);
    float f = t - (float)n, p = 1.54035304e-4f;
    p = p * f + 1.33335581e-3f;
    p = p * f + 9.61812911e-3f;
    p = p * f + 5.55041087e-2f;
    p = p * f + 2.40226507e-1f;
    p = p * f + 6.93147181e-1f;
    p = p * f + 1.0f;
    return float_of(bits_of(p) + n * (1 << 23));
}

static inline __attribute__((always_inline)) double sum_block(const float *x, int n, float largest) {
    float terms[BLOCK], lanes[LANES] = {0};
    double sum = 0;
    for (int i = 0; i < n; i++) terms[i] = exp_below(x[i] - largest);
    for (int i = n; i < BLOCK; i++) terms[i] = 0;
    for (int i = 0; i < BLOCK; i += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] += terms[i + k];
    for (int k = 0; k < LANES; k++) sum += (double)lanes[k];
    return sum;
}

// The same source compiled for wider vectors: the same operations in the same order, so the same bits.
typedef double Sum(const float *x, int n, float largest);

static double sum_plain(const float *x, int n, float largest) { return sum_block(x, n, largest); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) static double sum_avx2(const float *x, int n, float largest) {
    return sum_block(x, n, largest);
}

__attribute__((target("avx512f"))) static double sum_avx512(const float *x, int n, float largest) {
    return sum_block(x, n, largest);
}

static Sum *widest_sum(void) {
    if (__builtin_cpu_supports("avx512f")) return sum_avx512;
    return __builtin_cpu_supports("avx2") ? sum_avx2 : sum_plain;
}
#else
static Sum *widest_sum(void) { return sum_plain; }
#endif

double top_chance(const float *logits, int n, float largest) {
    Sum *sum_terms = widest_sum();
    double sum = 0;
    for (int i = 0; i < n; i += BLOCK) sum += sum_terms(logits + i, n - i < BLOCK ? n - i : BLOCK, largest);
    assert(sum > 0);
    return 1 / sum;
}
