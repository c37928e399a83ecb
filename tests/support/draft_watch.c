#include "tests/support/draft_watch.h"

#include "tests/support/null_session.h"

#include <math.h>
#include <string.h>

enum { MOST_VOCAB = 16 };

// The second model's prediction after the sequence before the step and the first n proposed tokens, or masks
// in their places.
static int says(DraftWatch *w, const Tree *t, int n, float *logits) {
    int whole[WATCH_CONTEXT + TREE_MAX_NODES];
    memcpy(whole, w->text.sequence, (size_t)w->text.before * sizeof *whole);
    for (int i = 0; i < n; i++) whole[w->text.before + i] = w->mask ? w->mask : t->token[i + 1];
    return w->says(w, whole, w->text.before + n, logits);
}

static void check_token(DraftWatch *w, const Tree *t, int i) {
    float logits[MOST_VOCAB], p[MOST_VOCAB];
    int want = says(w, t, i, logits), vocab = w->second.shape.vocab;
    const Proposal *proposal = &t->proposals[t->first_proposal[i]];
    assert_int_equal(t->parent[i + 1], i);
    assert_int_equal(proposal->next, TREE_NONE);
    if (w->sampling.temperature == 0) {
        assert_int_equal(proposal->q, ONE_HOT);
        if (t->token[i + 1] != want) fail_msg("guess %d is %d, want %d", i, t->token[i + 1], want);
        return;
    }
    Sampler sampler;
    sampler_init(&sampler, &w->sampling, vocab);
    sampler_distribution(&sampler, logits, p);
    sampler_release(&sampler);
    for (int v = 0; v < t->vocab; v++) {
        double wanted = v < vocab ? (double)p[v] : 0, got = (double)tree_q(t, proposal->q)[v];
        if (got != wanted) fail_msg("guess %d: q of %d is %g, want %g", i, v, got, wanted);
    }
    assert_true(tree_q(t, proposal->q)[t->token[i + 1]] > 0);
}

static double share_of_best(const float *logits, int n) {
    double sum = 0, most = 0;
    for (int i = 0; i < n; i++) {
        sum += exp((double)logits[i]);
        most = fmax(most, exp((double)logits[i]));
    }
    return most / sum;
}

static bool ends(const DraftWatch *w, const float *logits) {
    double chance = share_of_best(logits, w->second.shape.real_vocab);
    return w->strict ? chance < w->confidence : chance <= w->confidence;
}

// How many there should be; the confidence rule needs the tokens that were proposed.
static int length_wanted(DraftWatch *w, const Tree *t) {
    int room = w->target.context - w->text.before, own = w->second.context - w->text.before + 1,
        n = w->length_wanted;
    float logits[MOST_VOCAB];
    if (own < 0) own = 0;
    n = n < room ? n : room;
    n = n < own ? n : own;
    for (int i = 0; (w->confidence > 0 || w->learned) && i < n && i < t->count - 1; i++) {
        says(w, t, i, logits);
        if (w->learned ? pace_ends(&w->pace, i + 1, share_of_best(logits, w->second.shape.real_vocab))
                       : ends(w, logits))
            return i + 1;
    }
    return n;
}

// The second model keeps the tokens that it has run and the sequence has: not the last guess, which it hasn't
// run, nor the last token, which comes first in its next step. Where it had no room, it stays as it was.
static void check_second(const DraftWatch *w, int accepted, int proposed) {
    if (w->alone || w->missed) return;
    int run = proposed ? proposed - 1 : 0, room = w->second.context - w->text.before;
    if (w->mask && proposed) run = w->length_wanted - 1 < room ? w->length_wanted - 1 : room; // all at once
    int kept = accepted < run ? accepted : run;
    for (int i = 0; w->mask && i < kept; i++) // masks stay where they are the very tokens
        if (w->text.sequence[w->text.before + i] != w->mask) kept = i;
    if (w->text.before > w->second.context) return;
    int want = w->text.before + kept < w->text.length - 1 ? w->text.before + kept : w->text.length - 1;
    if (w->second.cache.length != want)
        fail_msg("the second model holds %d tokens of %d, want %d", w->second.cache.length, w->text.length,
                 want);
}

// A pass for each guess; one more if the target had no room for the guess. A row a pass, and one for
// the guess that was not run the last time. In parallel, one pass.
static void check_work(const DraftWatch *w, const StepReport *r, int proposed) {
    int passes = 0, rows = 0;
    for (int i = 0; i < r->pass_count; i++) {
        const Pass *p = &r->passes[i];
        if (p->model == PASS_TARGET || p->a == p->b) continue;
        passes += p->count;
        rows += p->count * p->rows;
    }
    if (proposed == 0 || w->alone) return;
    if (w->mask) {
        assert_int_equal(passes, 1);
        assert_true(rows >= proposed);
        return;
    }
    assert_in_range(passes, proposed, proposed + 1);
    assert_in_range(rows, passes, passes + 1 + w->missed);
}

static void on_step(void *state, const StepReport *r) {
    DraftWatch *w = state;
    const Tree *t = &w->target.tree;
    int want = length_wanted(w, t);
    if (t->count - 1 != want)
        fail_msg("step %d: %d guesses, want %d (context %d, the second model's %d, at %d)", r->number,
                 t->count - 1, want, w->target.context, w->second.context, w->text.before);
    for (int i = 0; i < want; i++) check_token(w, t, i);
    check_work(w, r, want);
    w->missed = w->learned && w->length_wanted == 0 ? w->missed + r->emitted : 0;
    check_second(w, r->accepted, want);
    bool full = r->accepted >= want;
    if (w->heuristic && want) w->length_wanted += full ? 2 : -1;
    if (w->learned) pace_learn(&w->pace, r->accepted), w->length_wanted = w->pace.length;
    else if (w->length_wanted < 1) w->length_wanted = 1;
    w->rested += want == 0;
    w->accepted += r->accepted;
    w->full += full && want;
    w->proposed += want;
}

void draft_watch_decode(DraftWatch *w, Method *m, Random *r) {
    DecodeOptions o = watched_options(WATCH_TOKENS, 1, 2, r);
    o.prefill_chunk = test_between(r, 0, 5);
    watched_prompt(&w->text, test_between(r, 1, test_between(r, 0, 4) ? 12 : WATCH_CONTEXT), WATCH_VOCAB, r);
    w->length_wanted = w->gamma;
    w->missed = 0;
    pace_begin(&w->pace);
    DecodeResult out = watched_decode(&w->text, on_step, &w->target, m, &o);
    decode_result_release(&out);
}

void draft_watch_draw(DraftWatch *w, Random *r) {
    static const double temperatures[] = {0, 0, 0.7, 3};
    w->gamma = test_between(r, 1, WATCH_GAMMA);
    w->confidence = (double)test_between(r, -20, 90) / 100;
    if (w->confidence < 0) w->confidence = 0;
    w->sampling = (Sampling){temperatures[test_between(r, 0, 3)], test_between(r, 0, 3), 1};
}

void draft_watch_rounds(Random r, void (*open)(DraftWatch *w, Method *m, Random *r), int least) {
    int accepted = 0, proposed = 0, full = 0;
    for (int round = 0; round < 150; round++) {
        DraftWatch w = {.accepted = 0};
        Method m;
        open(&w, &m, &r);
        for (int prompt = 0; prompt < 3; prompt++) draft_watch_decode(&w, &m, &r);
        accepted += w.accepted;
        proposed += w.proposed;
        full += w.full;
        method_close(&m);
        session_release(&w.target);
        session_release(&w.second);
        session_release(&w.slow);
        session_release(&w.slow_target);
    }
    print_message("%d of %d guesses accepted, %d full matches\n", accepted, proposed, full);
    assert_true(accepted > least && proposed - accepted > least && full > least / 5);
}
