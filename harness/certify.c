#include "harness/certify.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <assert.h>
#include <math.h>

// Leaves the model's logits after sequence[0 .. length) in the session, root of an open step.
static bool ask(Session *s, const int *sequence, int length, Error *e) {
    if (s->cache.length > length - 1) session_reset(s);
    int done = s->cache.length;
    if (!session_prefill(s, sequence + done, length - 1 - done, 0, 0, NULL, e)) return false;
    session_begin_step(s, true, LAYOUT_TREE);
    tree_root(&s->tree, sequence[length - 1]);
    return session_run(s, s->shape.layers, e) && session_read(s, HEAD_LOGITS, e);
}

static int *join(const int *prompt, int prompt_count, const int *ids, int count, Error *e) {
    int *all = mem_alloc((size_t)(prompt_count + count) + 1, sizeof *all);
    if (!all) error_system(e, "out of memory for %d tokens", prompt_count + count);
    for (int i = 0; all && i < prompt_count; i++) all[i] = prompt[i];
    for (int i = 0; all && i < count; i++) all[prompt_count + i] = ids[i];
    return all;
}

static float margin_of(const float *logits, int vocab) {
    float best = -INFINITY, second = -INFINITY;
    for (int i = 0; i < vocab; i++) {
        if (logits[i] > best) {
            second = best;
            best = logits[i];
        } else if (logits[i] > second) second = logits[i];
    }
    return best - second;
}

bool certify_greedy(Session *s, const int *prompt, int prompt_count, const DecodeResult *want,
                    const DecodeResult *got, Divergence *out, Error *e) {
    int n = 0;
    while (n < want->tokens && n < got->tokens && want->ids[n] == got->ids[n]) n++;
    *out = (Divergence){.position = -1};
    if (n == want->tokens && n == got->tokens) return true;
    *out = (Divergence){n, n < want->tokens ? want->ids[n] : -1, n < got->tokens ? got->ids[n] : -1, 0};
    int *all = join(prompt, prompt_count, want->ids, n, e);
    if (all) session_reset(s);
    bool ok = all && ask(s, all, prompt_count + n, e);
    if (ok) out->margin = margin_of(session_logits(s, 0), s->shape.vocab);
    mem_free(all);
    return ok;
}

// The probability of all tokens that are likelier than this one (of equals, those with a lower id), and a
// random share of its own.
static double place_of(const float *p, int vocab, int token, double share) {
    double below = 0, total = 0;
    for (int i = 0; i < vocab; i++) {
        total += (double)p[i];
        if (p[i] > p[token] || (p[i] == p[token] && i < token)) below += (double)p[i];
    }
    return (below + share * (double)p[token]) / total;
}

bool certify_sampled(Session *s, const Sampling *sampling, const int *prompt, int prompt_count,
                     const int *ids, int count, Random *random, double *u, int *impossible, Error *e) {
    Sampler sampler = {0};
    int vocab = s->shape.vocab, *all = join(prompt, prompt_count, ids, count, e);
    float *p = mem_alloc((size_t)vocab, sizeof *p);
    bool ok = all && sampler_init(&sampler, sampling, vocab, e);
    if (ok && !p) ok = error_system(e, "out of memory for %d probabilities", vocab);
    session_reset(s);
    *impossible = 0;
    for (int i = 0; ok && i < count; i++) {
        ok = ask(s, all, prompt_count + i, e);
        if (!ok) break;
        sampler_distribution(&sampler, session_logits(s, 0), p);
        *impossible += !(p[ids[i]] > 0);
        u[i] = place_of(p, vocab, ids[i], random_uniform(random));
    }
    sampler_release(&sampler);
    mem_free(p);
    mem_free(all);
    return ok;
}
