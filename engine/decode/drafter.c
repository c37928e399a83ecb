#include "engine/decode/drafter.h"

#include "engine/decode/chance.h"

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
    return sampling_is_greedy(&sampling) || sampler_init(&d->sampler, &sampling, vocab, e);
}

void drafter_release(Drafter *d) {
    sampler_release(&d->sampler);
    *d = (Drafter){0};
}

void drafter_begin(Drafter *d, uint64_t seed) { d->random = (Random){.seed = seed, .stream = STREAM_DRAFT}; }

static bool is_greedy(const Drafter *d) { return d->sampler.order == NULL; }

// The tree's q has the target's length; ids that only one model has are padding, which nobody says.
static bool propose_draw(Drafter *d, int node, Tree *tree, int parent, Draft *out, Error *e) {
    float *p;
    int q = tree_distribution(tree, &p);
    if (q == TREE_NONE)
        return error_system(e, "out of memory for a distribution over %d tokens", tree->vocab);
    memset(p + d->vocab, 0, (size_t)(tree->vocab - d->vocab) * sizeof *p);
    sampler_distribution(&d->sampler, session_logits(d->session, node), p);
    out->token = sampler_draw(p, d->vocab, random_uniform(&d->random));
    out->node = tree_propose_sampled(tree, parent, out->token, q, false);
    return true;
}

bool drafter_propose(Drafter *d, int node, Tree *tree, int parent, Draft *out, Error *e) {
    Session *s = d->session;
    bool logits = d->confidence || !is_greedy(d);
    if (!session_read(s, logits ? HEAD_ARGMAX | HEAD_LOGITS : HEAD_ARGMAX, e)) return false;
    int best = session_argmax(s, node);
    *out = (Draft){.token = best, .confidence = 1};
    if (d->confidence) {
        const float *x = session_logits(s, node);
        out->confidence = top_chance(x, s->shape.real_vocab, x[best]);
    }
    if (!is_greedy(d)) return propose_draw(d, node, tree, parent, out, e);
    out->node = tree_propose(tree, parent, best);
    return true;
}
