// The walk is one for both ways: at a node, `pick` says which proposal is accepted, if any, or draws the
// bonus.
#include "engine/decode/verify.h"

#include "engine/base/memory.h"

#include <string.h>

bool verifier_init(Verifier *v, const Sampling *sampling, uint64_t seed, int vocab, Error *e) {
    *v = (Verifier){
        .random = {.seed = seed, .stream = STREAM_VERIFY},
          .vocab = vocab
    };
    v->sampler.sampling = *sampling;
    if (sampling_is_greedy(sampling)) return true;
    v->p = mem_alloc((size_t)vocab, sizeof *v->p);
    v->q = mem_alloc((size_t)vocab, sizeof *v->q);
    if (v->p && v->q && sampler_init(&v->sampler, sampling, vocab, e)) return true;
    verifier_release(v);
    return error_system(e, "out of memory for a verifier over %d tokens", vocab);
}

void verifier_release(Verifier *v) {
    sampler_release(&v->sampler);
    mem_free(v->p);
    mem_free(v->q);
    *v = (Verifier){0};
}

unsigned verifier_wants(const Verifier *v) {
    return sampling_is_greedy(&v->sampler.sampling) ? HEAD_ARGMAX : HEAD_ARGMAX | HEAD_LOGITS;
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

static double sum_of(const float *p, int n) {
    double total = 0;
    for (int i = 0; i < n; i++) total += (double)p[i];
    return total;
}

static void scale_to_one(float *p, int n, double total) {
    for (int i = 0; i < n; i++) p[i] = (float)((double)p[i] / total);
}

// q of a proposal: without the tokens that earlier siblings drew from it, where it was drawn so.
static void proposal_distribution(const Tree *t, int node, int proposal, float *q) {
    const Proposal *p = &t->proposals[proposal];
    memcpy(q, tree_q(t, p->q), (size_t)t->vocab * sizeof *q);
    if (!p->without_replacement) return;
    for (int i = t->first_proposal[node]; i != proposal; i = t->proposals[i].next)
        if (t->proposals[i].q == p->q) q[t->token[t->proposals[i].child]] = 0;
    double total = sum_of(q, t->vocab);
    if (total > 0) scale_to_one(q, t->vocab, total);
}

// A token that q cannot draw is never accepted: its rejection changes nothing that should stay.
double verify_acceptance(const float *p, const float *q, int token) {
    if (!q) return (double)p[token];
    if (!(q[token] > 0)) return 0;
    double ratio = (double)p[token] / (double)q[token];
    return ratio < 1 ? ratio : 1;
}

// Where rounding leaves nothing, the rejection could not have happened in exact arithmetic; p then stands, so
// that there is something to draw from.
void verify_reject(float *p, const float *q, int token, int vocab) {
    double total = 0;
    for (int i = 0; i < vocab; i++) {
        float left = q ? p[i] - q[i] : i == token ? 0 : p[i];
        total += left > 0 ? (double)left : 0;
    }
    if (!(total > 0)) return;
    for (int i = 0; i < vocab; i++) {
        float left = q ? p[i] - q[i] : i == token ? 0 : p[i];
        p[i] = left > 0 ? (float)((double)left / total) : 0;
    }
}

static int pick_sampled(Verifier *v, const Session *s, int node, Verdict *out) {
    const Tree *t = &s->tree;
    sampler_distribution(&v->sampler, session_logits(s, node), v->p);
    for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next) {
        const Proposal *proposal = &t->proposals[i];
        int token = t->token[proposal->child];
        const float *q = proposal->q == ONE_HOT ? NULL : v->q;
        if (q) proposal_distribution(t, node, i, v->q);
        out->tried++;
        if (random_uniform(&v->random) < verify_acceptance(v->p, q, token)) return proposal->child;
        verify_reject(v->p, q, token, v->vocab);
    }
    out->bonus = sampler_draw(v->p, v->vocab, random_uniform(&v->random));
    return TREE_NONE;
}

void verify(Verifier *v, const Session *s, Verdict *out) {
    bool greedy = sampling_is_greedy(&v->sampler.sampling);
    *out = (Verdict){.node = 0};
    for (int next; (next = greedy ? pick_greedy(s, out->node, out) : pick_sampled(v, s, out->node, out)) !=
                   TREE_NONE;) {
        out->node = next;
        out->accepted++;
    }
}
