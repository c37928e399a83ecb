// One walk for both kinds of decoding: at each node, pick_greedy or pick_sampled returns the accepted
// proposal or sets the bonus. A block is judged from its end. draws.h provides p, whether the backend draws
// or the host does.
//
// Invariants: the walk moves from a canonical node to one of its proposals, so accepted = depth of the node;
// it takes one random number per proposal tried and one for the bonus, which draws.h relies on. A block tries
// all of its chain.
#include "engine/decode/verify.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *const verification_names[] = {"token", "block", NULL};

static void verify_check(const Verifier *v) {
    assert(v->vocab >= 1 && v->random.stream == STREAM_VERIFY);
    assert(sampling_is_greedy(&v->sampling) ? !v->p && !v->q && !v->draws.p : v->p && v->q && v->draws.p);
}

void verifier_init(Verifier *v, const Sampling *sampling, uint64_t seed, int vocab) {
    *v = (Verifier){.sampling = *sampling, .random = {.seed = seed, .stream = STREAM_VERIFY}, .vocab = vocab};
    if (!sampling_is_greedy(sampling)) {
        draws_init(&v->draws, sampling, vocab);
        v->p = mem_new((size_t)vocab, sizeof *v->p);
        v->q = mem_new((size_t)vocab, sizeof *v->q);
    }
    verify_check(v);
}

void verifier_release(Verifier *v) {
    draws_release(&v->draws);
    MEM_FREE(v->p, v->q);
    *v = (Verifier){0};
}

bool verifier_read(Verifier *v, Session *s, Error *e) {
    return sampling_is_greedy(&v->sampling) ? session_read(s, HEAD_ARGMAX, e)
                                            : draws_read(&v->draws, s, &v->random, e);
}

// --- greedy

static int pick_greedy(const Session *s, int node, Verdict *out) {
    const Tree *t = &s->tree;
    int want = session_argmax(s, node);
    for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next) {
        out->tried++;
        if (t->token[t->proposals[i].child] == want) return t->proposals[i].child;
    }
    out->bonus = want;
    return TREE_NONE;
}

// --- sampling

static void scale_to_one(float *p, int n, double total) {
    for (int i = 0; i < n; i++) p[i] = (float)((double)p[i] / total);
}

// The q of a proposal; if it was drawn without replacement, without the tokens that earlier siblings drew.
static void proposal_distribution(const Tree *t, int node, int proposal, float *q) {
    const Proposal *p = &t->proposals[proposal];
    memcpy(q, tree_q(t, p->q), (size_t)t->vocab * sizeof *q);
    if (!p->without_replacement) return;
    for (int i = t->first_proposal[node]; i != proposal; i = t->proposals[i].next)
        if (t->proposals[i].q == p->q) q[t->token[t->proposals[i].child]] = 0;
    double total = sampler_sum(q, t->vocab);
    if (total > 0) scale_to_one(q, t->vocab, total);
}

// A token that q can't draw is never accepted; p - q then leaves p(token) untouched.
static double acceptance(double p, const float *q, int token) {
    if (!q) return p;
    if (!(q[token] > 0)) return 0;
    double ratio = p / (double)q[token];
    return ratio < 1 ? ratio : 1;
}

double verify_acceptance(const float *p, const float *q, int token) {
    assert(token >= 0);
    return acceptance((double)p[token], q, token);
}

double verify_rest(float *p, const float *q, double r, int vocab) {
    double total = 0;
    for (int i = 0; i < vocab; i++) {
        float left = (float)r * p[i] - q[i];
        total += left > 0 ? (double)left : 0;
    }
    for (int i = 0; i < vocab && total > 0; i++) {
        float left = (float)r * p[i] - q[i];
        p[i] = left > 0 ? (float)((double)left / total) : 0;
    }
    return total;
}

void verify_reject(float *p, const float *q, int token, int vocab) {
    assert(token >= 0 && token < vocab);
    if (q) {
        verify_rest(p, q, 1, vocab);
        return;
    }
    // If rounding leaves nothing of p, the rejection could not have happened in exact arithmetic: p is then
    // left unchanged, so that there is something to draw from.
    float own = p[token];
    p[token] = 0;
    double total = sampler_sum(p, vocab);
    if (total > 0) scale_to_one(p, vocab, total);
    else p[token] = own;
}

// The part of p that the rejections at a node have left. As long as only one-hots were rejected, it is p
// without their tokens, and the sum of their chances is all we need; after the rejection of a draw from q we
// need all of p.
typedef struct Rest {
    Verifier *v;
    const Session *s;
    int node;
    bool whole;      // the rest is in v->p
    bool any;        // a proposal was rejected
    double rejected; // unless whole: the sum of p over the rejected tokens
    int last;        // the last of them with p > 0
} Rest;

// Whether a one-hot before proposal `number` has the same token and so was rejected. No two one-hots are
// equal.
static bool was_rejected(const Tree *t, int node, int number) {
    if (t->proposals[number].q == ONE_HOT) return false;
    int i = t->first_proposal[node];
    while (i != number && t->proposals[i].child != t->proposals[number].child) i = t->proposals[i].next;
    return i != number;
}

static double rest_chance(const Rest *r, int number) {
    const Tree *t = &r->s->tree;
    const Proposal *proposal = &t->proposals[number];
    if (r->whole) return (double)r->v->p[t->token[proposal->child]];
    if (was_rejected(t, r->node, number)) return 0;
    double chance = draws_chance(&r->v->draws, r->s, r->node, proposal->child);
    if (!r->any || !(chance > 0)) return chance;
    double left = draws_total(&r->v->draws, r->s, r->node) - r->rejected;
    return chance < left ? chance / left : 1;
}

// Fills v->p with the rest just before a proposal. Only one-hots have been rejected so far.
static bool rest_fetch(Rest *r, int proposal, Error *e) {
    const Tree *t = &r->s->tree;
    Verifier *v = r->v;
    if (r->whole) return true;
    if (!draws_distribution(&v->draws, r->s, r->node, v->p, e)) return false;
    for (int i = t->first_proposal[r->node]; i != proposal; i = t->proposals[i].next)
        verify_reject(v->p, NULL, t->token[t->proposals[i].child], v->vocab);
    return r->whole = true;
}

static bool rest_reject(Rest *r, int proposal, const float *q, Error *e) {
    const Proposal *p = &r->s->tree.proposals[proposal];
    int token = r->s->tree.token[p->child];
    r->any = true;
    if (q && !rest_fetch(r, proposal, e)) return false;
    if (r->whole) {
        verify_reject(r->v->p, q, token, r->v->vocab);
        return true;
    }
    double chance = draws_chance(&r->v->draws, r->s, r->node, p->child);
    r->rejected += chance;
    if (chance > 0) r->last = token;
    return true;
}

static bool pick_sampled(Verifier *v, const Session *s, int node, Verdict *out, int *child, Error *e) {
    const Tree *t = &s->tree;
    Rest rest = {.v = v, .s = s, .node = node};
    for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next) {
        const Proposal *proposal = &t->proposals[i];
        const float *q = proposal->q == ONE_HOT ? NULL : v->q;
        *child = proposal->child;
        if (q) proposal_distribution(t, node, i, v->q);
        out->tried++;
        double chance = acceptance(rest_chance(&rest, i), q, t->token[*child]);
        assert(chance >= 0 && chance <= 1 + 1e-3); // a device may sum in f32
        if (random_uniform(&v->random) < chance) return true;
        if (!rest_reject(&rest, i, q, e)) return false;
    }
    *child = TREE_NONE;
    double u = random_uniform(&v->random);
    if (rest.whole) out->bonus = sampler_draw(v->p, v->vocab, u);
    else if (!draws_draw(&v->draws, s, node, u, &out->bonus, e)) return false;
    if (out->bonus < 0) out->bonus = rest.last; // nothing is left, as in verify_reject
    return true;
}

// --- blocks

typedef struct DraftBlock {
    int length;
    int node[TREE_MAX_NODES];                    // the root, then the chain
    double u[TREE_MAX_NODES], r[TREE_MAX_NODES]; // from 1 on, of node i; r[0] = 1
} DraftBlock;

static double ratio(Verifier *v, const Session *s, int node, const Proposal *p) {
    const float *q = tree_q(&s->tree, p->q);
    int token = s->tree.token[p->child];
    return q[token] > 0 ? draws_chance(&v->draws, s, node, p->child) / (double)q[token] : 0;
}

static void read_block(Verifier *v, const Session *s, DraftBlock *b) {
    const Tree *t = &s->tree;
    b->length = b->node[0] = 0;
    b->r[0] = 1;
    for (int i; (i = t->first_proposal[b->node[b->length]]) != TREE_NONE;) {
        const Proposal *p = &t->proposals[i];
        int n = b->length++;
        assert(p->q != ONE_HOT && p->next == TREE_NONE);
        b->node[n + 1] = p->child;
        b->u[n + 1] = random_uniform(&v->random);
        b->r[n + 1] = fmin(1, b->r[n] * ratio(v, s, b->node[n], p));
    }
}

double verify_block(double r, double S) {
    assert(r >= 0 && r <= 1 && S >= 0);
    return S > 0 ? S / (S + 1 - r) : 0;
}

// Whether the chain is accepted up to node i; if it is, and goes on, v->p becomes the rest. S <= r, and so
// h <= r: most nodes are decided without their distribution.
static bool accept_block(Verifier *v, const Session *s, const DraftBlock *b, int i, bool *accepted,
                         Error *e) {
    *accepted = i == 0 || b->u[i] < b->r[i];
    if (!*accepted || i == b->length) return true;
    const Proposal *next = &s->tree.proposals[s->tree.first_proposal[b->node[i]]];
    if (!draws_distribution(&v->draws, s, b->node[i], v->p, e)) return false;
    double left = verify_rest(v->p, tree_q(&s->tree, next->q), b->r[i], v->vocab);
    *accepted = i == 0 || b->u[i] < verify_block(b->r[i], left);
    return true;
}

static bool verify_chain(Verifier *v, const Session *s, Verdict *out, Error *e) {
    DraftBlock b;
    bool accepted = false;
    read_block(v, s, &b);
    out->tried = b.length;
    for (out->accepted = b.length + 1; !accepted;)
        if (!accept_block(v, s, &b, --out->accepted, &accepted, e)) return false;
    out->node = b.node[out->accepted];
    double u = random_uniform(&v->random);
    if (out->accepted < b.length) out->bonus = sampler_draw(v->p, v->vocab, u);
    else if (!draws_draw(&v->draws, s, out->node, u, &out->bonus, e)) return false;
    if (out->bonus < 0) out->bonus = 0; // p is 0 everywhere
    return true;
}

// --- all of it

static bool walk(Verifier *v, const Session *s, Verdict *out, Error *e) {
    bool greedy = sampling_is_greedy(&v->sampling);
    for (int next;;) {
        if (greedy) next = pick_greedy(s, out->node, out);
        else if (!pick_sampled(v, s, out->node, out, &next, e)) return false;
        if (next == TREE_NONE) return true;
        assert(next > out->node && s->tree.canonical[s->tree.parent[next]] == out->node);
        out->node = next;
        out->accepted++;
    }
}

bool verify(Verifier *v, const Session *s, Verdict *out, Error *e) {
    uint64_t before = v->random.counter;
    verify_check(v);
    assert(s->tree.count > 0 && s->tree.vocab == v->vocab);
    *out = (Verdict){.node = 0};
    bool block = v->blocks && !sampling_is_greedy(&v->sampling);
    if (!(block ? verify_chain(v, s, out, e) : walk(v, s, out, e))) return false;
    assert(out->accepted == s->tree.depth[out->node] && out->accepted <= out->tried);
    assert(out->bonus >= 0 && out->bonus < v->vocab);
    assert(v->random.counter - before == (sampling_is_greedy(&v->sampling) ? 0 : (uint64_t)out->tried + 1));
    return true;
}
