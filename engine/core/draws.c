// Invariants
//  1. p is the distribution of node `at` in this step, untouched; a draw that strikes tokens out of it leaves
//     it to no node.
//  2. s->drawn[i] != UNDRAWN: ahead->u[i] is the number that it was drawn by, and chance[] holds those of
//     all that was proposed below i when it was read.
#include "engine/core/draws.h"

#include "engine/base/memory.h"
#include "engine/core/chance.h"

#include <assert.h>
#include <string.h>

typedef struct Ahead {
    double u[TREE_MAX_NODES], chance[TREE_MAX_NODES]; // by node: its draw's number; of its own token
    double confidence[TREE_MAX_NODES];                // by node
    int tries[TREE_MAX_NODES];                        // by node: proposals looked at on the way to it
    // one call: rows, and the tokens of all rows
    int nodes[TREE_MAX_NODES], first[TREE_MAX_NODES + 1], drawn[TREE_MAX_NODES];
    int token[TREE_MAX_NODES], child[TREE_MAX_NODES];
    double row_u[TREE_MAX_NODES];
    double row_chance[TREE_MAX_NODES], row_confidence[TREE_MAX_NODES];
} Ahead;

bool draws_init(Draws *d, const Sampling *sampling, int vocab, Error *e) {
    assert(!sampling_is_greedy(sampling));
    *d = (Draws){.vocab = vocab, .at = TREE_NONE};
    if (!sampler_init(&d->sampler, sampling, vocab, e)) return false;
    d->p = mem_alloc((size_t)vocab, sizeof *d->p);
    d->ahead = mem_alloc(1, sizeof *d->ahead);
    if (d->p && d->ahead) return true;
    draws_release(d);
    return error_system(e, "out of memory for draws from %d tokens", vocab);
}

void draws_release(Draws *d) {
    sampler_release(&d->sampler);
    mem_free(d->p);
    mem_free(d->ahead);
    *d = (Draws){.at = TREE_NONE};
}

static bool backend_draws(const Session *s) { return s->backend->distribution != NULL; }

// --- ahead

// Proposals are looked at in order, and a node's number is above its parent's. A child that is proposed twice
// may be reached in two ways: the later one is taken for the guess.
static void count_tries(const Tree *t, int *tries) {
    for (int node = 0; node < t->count; node++) tries[node] = 0;
    for (int node = 0; node < t->count; node++)
        for (int i = t->first_proposal[node], n = tries[node]; i != TREE_NONE; i = t->proposals[i].next)
            tries[t->proposals[i].child] = ++n;
}

// Puts a node's proposed tokens, each once, after the `count` in the list; gives the new count. `listed`
// marks a child that is there already.
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

static int proposals_of(const Tree *t, int node) {
    int n = 0;
    for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next) n++;
    return n;
}

static double number_ahead(const Random *random, int skipped) {
    Random r = *random;
    r.counter += (uint64_t)skipped;
    return random_uniform(&r);
}

static void ask(Ahead *a, const Tree *t, int rows, const Random *random) {
    int tokens = 0;
    count_tries(t, a->tries);
    for (int r = 0; r < rows; r++) {
        int node = a->nodes[r];
        a->first[r] = tokens;
        tokens = list_tokens(a, t, node, tokens);
        a->row_u[r] = number_ahead(random, a->tries[node] + proposals_of(t, node));
    }
    a->first[rows] = tokens;
}

bool draws_read(Draws *d, Session *s, const Random *ahead, Error *e) {
    Ahead *a = d->ahead;
    d->at = TREE_NONE;
    if (!backend_draws(s)) return session_read(s, HEAD_ARGMAX | HEAD_LOGITS, e);
    int rows = session_unread(s, HEAD_DRAW, a->nodes);
    if (rows == 0) return true;
    ask(a, &s->tree, rows, ahead);
    HeadDraws draws = {.sampling = d->sampler.sampling,
                       .vocab = d->vocab,
                       .u = a->row_u,
                       .first = a->first,
                       .token = a->token,
                       .chance = a->row_chance,
                       .confidence = d->confident ? a->row_confidence : NULL,
                       .drawn = a->drawn};
    if (!session_draw(s, a->nodes, rows, &draws, e)) return false;
    for (int r = 0; r < rows; r++) a->u[a->nodes[r]] = a->row_u[r];
    for (int r = 0; r < rows && d->confident; r++) a->confidence[a->nodes[r]] = a->row_confidence[r];
    for (int i = 0; i < a->first[rows]; i++) a->chance[a->child[i]] = a->row_chance[i];
    return true;
}

// --- p on the host

// Makes p that of the node, from its logits.
static void hold(Draws *d, const Session *s, int node) {
    if (d->at == node) return;
    sampler_distribution(&d->sampler, session_logits(s, node), d->p);
    d->at = node;
    d->total = -1;
}

static double sum_of(const float *p, int n) {
    double total = 0;
    for (int i = 0; i < n; i++) total += (double)p[i];
    return total;
}

double draws_chance(Draws *d, const Session *s, int node, int child) {
    if (backend_draws(s)) return d->ahead->chance[child];
    hold(d, s, node);
    return (double)d->p[s->tree.token[child]];
}

double draws_total(Draws *d, const Session *s, int node) {
    if (backend_draws(s)) return 1;
    hold(d, s, node);
    if (d->total < 0) d->total = sum_of(d->p, d->vocab);
    return d->total;
}

double draws_confidence(const Draws *d, const Session *s, int node) {
    if (backend_draws(s)) return d->ahead->confidence[node];
    const float *logits = session_logits(s, node);
    return top_chance(logits, s->shape.real_vocab, logits[session_argmax(s, node)]);
}

static int draw_from_rest(Draws *d, const Tree *t, int node, double u) {
    for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next) {
        d->p[t->token[t->proposals[i].child]] = 0;
        d->at = TREE_NONE;
    }
    int token = sampler_draw(d->p, d->vocab, u);
    return d->p[token] > 0 ? token : -1;
}

bool draws_draw(Draws *d, const Session *s, int node, double u, int *token, Error *e) {
    if (backend_draws(s) && d->ahead->u[node] == u) {
        *token = s->drawn[node];
        return true;
    }
    if (!backend_draws(s)) hold(d, s, node);
    else if (!draws_distribution(d, s, node, d->p, e)) return false;
    *token = draw_from_rest(d, &s->tree, node, u);
    return true;
}

bool draws_distribution(Draws *d, const Session *s, int node, float *p, Error *e) {
    if (backend_draws(s))
        return s->backend->distribution(s->self, node, &d->sampler.sampling, d->vocab, p, e);
    hold(d, s, node);
    memcpy(p, d->p, (size_t)d->vocab * sizeof *p);
    return true;
}
