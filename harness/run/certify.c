#include "harness/run/certify.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <math.h>

enum { AT_ONCE = 64 }; // tokens of a pass: each leaves logits for the whole vocabulary

// Runs tokens as one chain after what is committed; node i's logits can be read then.
static bool read_chain(Session *s, const int *tokens, int count, Error *e) {
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, tokens[0]);
    for (int i = 1; i < count; i++) node = tree_probe(&s->tree, node, tokens[i], true);
    return session_run(s, s->shape.layers, e) && session_read(s, HEAD_LOGITS, e);
}

static int *join(const IdList *prompt, const int *ids, int count, Error *e) {
    size_t n = prompt->count + (size_t)count;
    int *all = mem_alloc(n + 1, sizeof *all);
    if (!all) error_system(e, "out of memory for %zu tokens", n);
    for (size_t i = 0; all && i < n; i++)
        all[i] = i < prompt->count ? prompt->ids[i] : ids[i - prompt->count];
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

bool certify_greedy(Session *s, const IdList *prompt, const DecodeResult *want, const DecodeResult *got,
                    Divergence *out, Error *e) {
    int n = 0, last = (int)prompt->count - 1;
    while (n < want->tokens && n < got->tokens && want->ids[n] == got->ids[n]) n++;
    *out = (Divergence){.position = -1};
    if (n == want->tokens && n == got->tokens) return true;
    *out = (Divergence){n, n < want->tokens ? want->ids[n] : -1, n < got->tokens ? got->ids[n] : -1, 0};
    int *all = join(prompt, want->ids, n, e);
    session_reset(s);
    bool ok = all && session_prefill(s, all, last + n, 0, 0, NULL, e) && read_chain(s, all + last + n, 1, e);
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

bool certify_sampled(Session *s, const IdList *prompt, const int *ids, int count, SampledPlaces *out,
                     Error *e) {
    Sampler sampler = {0};
    int vocab = s->shape.vocab, last = (int)prompt->count - 1, *all = join(prompt, ids, count, e);
    float *p = mem_alloc((size_t)vocab, sizeof *p);
    bool ok = all != NULL;
    sampler_init(&sampler, &out->sampling, vocab);
    if (ok && !p) ok = error_system(e, "out of memory for %d probabilities", vocab);
    session_reset(s);
    ok = ok && session_prefill(s, all, last, 0, 0, NULL, e);
    for (int done = 0, n; ok && done < count; done += n) {
        n = count - done < AT_ONCE ? count - done : AT_ONCE;
        if (n > s->tree.capacity) n = s->tree.capacity;
        ok = read_chain(s, all + last + done, n, e);
        for (int i = 0; ok && i < n; i++) {
            sampler_distribution(&sampler, session_logits(s, i), p);
            out->impossible += !(p[ids[done + i]] > 0);
            out->u[out->count++] = place_of(p, vocab, ids[done + i], random_uniform(&out->random));
        }
        ok = ok && session_commit(s, n - 1, n, e);
    }
    sampler_release(&sampler);
    mem_free(p);
    mem_free(all);
    return ok;
}
