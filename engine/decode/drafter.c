#include "engine/decode/drafter.h"

#include <string.h>

static Sampling choose(const DraftSampling *own, const Sampling *run) {
    Sampling s = *run;
    if (own->temperature >= 0) s.temperature = own->temperature;
    if (own->top_k >= 0) s.top_k = own->top_k;
    if (own->top_p >= 0) s.top_p = own->top_p;
    return s;
}

bool drafter_init(Drafter *d, Session *session, int target_vocab, const DraftSampling *own,
                  const Sampling *run, bool confidence, Error *e) {
    Sampling sampling = choose(own, run);
    int vocab = session->shape.vocab < target_vocab ? session->shape.vocab : target_vocab;
    *d = (Drafter){.session = session, .vocab = vocab, .confidence = confidence};
    d->greedy = sampling_is_greedy(&sampling);
    if (d->greedy && !confidence) return true;
    if (d->greedy) sampling = (Sampling){.temperature = 1, .top_p = 1}; // nothing is drawn
    (void)e;
    draws_init(&d->draws, &sampling, vocab);
    d->draws.confident = confidence;
    return true;
}

void drafter_release(Drafter *d) {
    draws_release(&d->draws);
    *d = (Drafter){0};
}

void drafter_begin(Drafter *d, uint64_t seed) { d->random = (Random){.seed = seed, .stream = STREAM_DRAFT}; }

// The tree's q has the target's length; ids that only one model has are padding, which nobody says. A draft's
// nodes have no proposals of their own, so its draws are from all of p; where that is nothing, it is id 0.
static bool propose_draw(Drafter *d, int node, Tree *tree, int parent, Draft *out, Error *e) {
    float *p;
    int q = tree_distribution(tree, &p);
    if (q == TREE_NONE)
        return error_system(e, "out of memory for a distribution over %d tokens", tree->vocab);
    memset(p + d->vocab, 0, (size_t)(tree->vocab - d->vocab) * sizeof *p);
    if (!draws_draw(&d->draws, d->session, node, random_uniform(&d->random), &out->token, e) ||
        !draws_distribution(&d->draws, d->session, node, p, e))
        return false;
    if (out->token < 0) out->token = 0;
    out->node = tree_propose_sampled(tree, parent, out->token, q, false);
    return true;
}

static bool read(Drafter *d, Error *e) {
    return d->greedy && !d->confidence ? session_read(d->session, HEAD_ARGMAX, e)
                                       : draws_read(&d->draws, d->session, &d->random, e);
}

bool drafter_propose(Drafter *d, int node, Tree *tree, int parent, Draft *out, Error *e) {
    Session *s = d->session;
    if (!read(d, e)) return false;
    int best = session_argmax(s, node);
    *out = (Draft){.token = best, .confidence = 1};
    if (d->confidence) out->confidence = draws_confidence(&d->draws, s, node);
    if (!d->greedy) return propose_draw(d, node, tree, parent, out, e);
    out->node = tree_propose(tree, parent, best);
    return true;
}
