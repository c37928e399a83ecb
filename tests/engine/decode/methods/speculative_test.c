// Each step's chain against a slow model that asks the draft anew, from the first token on, what it says; on
// random streams of the null backend, where a draft that sees a shorter window agrees now and then.
#include "tests/check.h"
#include "tests/null_session.h"

#include "engine/decode/decode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VOCAB = 5, CONTEXT = 60, TOKENS = 40, MOST_GAMMA = 9 };

typedef enum { OFF, HEURISTIC, CONFIDENCE } Adaptive;
static const char *const ADAPTIVES[] = {"off", "heuristic", "confidence"};

typedef struct {
    Session target, draft, slow; // slow: a second draft
    Sampling sampling;           // of the draft; temperature 0: greedy
    Adaptive adaptive;
    double confidence;
    int gamma, length_wanted;              // as the method should have it now
    int sequence[CONTEXT], length, before; // before: when the step began
    int accepted, full, proposed, wrapped;
} Watch;

static double no_time(void *state) {
    (void)state;
    return 0;
}

static bool on_emit(void *state, int token) {
    Watch *w = state;
    w->sequence[w->length++] = token;
    return true;
}

// What the draft says behind the sequence before the step and the first n proposed tokens.
static int draft_says(Watch *w, const Tree *t, int n, float *logits) {
    int whole[CONTEXT + MOST_GAMMA];
    memcpy(whole, w->sequence, (size_t)w->before * sizeof *whole);
    memcpy(whole + w->before, t->token + 1, (size_t)n * sizeof *whole);
    return slow_next(&w->slow, whole, w->before + n, logits);
}

static void check_token(Watch *w, const Tree *t, int i) {
    float logits[VOCAB + 2], p[VOCAB + 2];
    int says = draft_says(w, t, i, logits);
    const Proposal *proposal = &t->proposals[t->first_proposal[i]];
    assert_int_equal(t->parent[i + 1], i);
    assert_int_equal(proposal->next, TREE_NONE);
    if (w->sampling.temperature == 0) {
        assert_int_equal(proposal->q, ONE_HOT);
        if (t->token[i + 1] != says) fail_msg("guess %d is %d, want %d", i, t->token[i + 1], says);
        return;
    }
    Sampler sampler;
    assert_true(sampler_init(&sampler, &w->sampling, w->slow.shape.vocab, NULL));
    sampler_distribution(&sampler, logits, p);
    sampler_release(&sampler);
    for (int v = 0; v < t->vocab; v++) {
        double want = v < w->slow.shape.vocab ? (double)p[v] : 0;
        if ((double)tree_q(t, proposal->q)[v] != want)
            fail_msg("guess %d: q of %d is %g, want %g", i, v, (double)tree_q(t, proposal->q)[v], want);
    }
    assert_true(tree_q(t, proposal->q)[t->token[i + 1]] > 0);
}

static double top_chance(const float *logits, int n) {
    double sum = 0, most = 0;
    for (int i = 0; i < n; i++) {
        sum += exp((double)logits[i]);
        most = fmax(most, exp((double)logits[i]));
    }
    return most / sum;
}

// How many there should be; the confidence rule needs the tokens that were proposed.
static int length_wanted(Watch *w, const Tree *t) {
    int room = w->target.context - w->before, own = w->draft.context - w->before + 1, n = w->length_wanted;
    float logits[VOCAB + 2];
    if (own < 0) own = 0;
    n = n < room ? n : room;
    n = n < own ? n : own;
    for (int i = 0; w->adaptive == CONFIDENCE && i < n && i < t->count - 1; i++) {
        draft_says(w, t, i, logits);
        if (top_chance(logits, w->slow.shape.real_vocab) <= w->confidence) return i + 1;
    }
    return n;
}

// The draft keeps what it has run and the sequence bears: not the last guess, which it has not run, nor the
// last token, which comes first in its next step. Where it had no room, it stays as it was.
static void check_draft(const Watch *w, int accepted, int proposed) {
    int run = proposed ? proposed - 1 : 0, kept = accepted < run ? accepted : run;
    if (w->before > w->draft.context) return;
    int want = w->before + kept < w->length - 1 ? w->before + kept : w->length - 1;
    if (w->draft.cache.length != want)
        fail_msg("the draft holds %d tokens of %d, want %d", w->draft.cache.length, w->length, want);
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->target.tree;
    int want = length_wanted(w, t);
    if (t->count - 1 != want)
        fail_msg("step %d: %d guesses, want %d (adaptive %s, context %d, draft's %d, at %d)", r->number,
                 t->count - 1, want, ADAPTIVES[w->adaptive], w->target.context, w->draft.context, w->before);
    for (int i = 0; i < want; i++) check_token(w, t, i);
    check_draft(w, r->accepted, want);
    bool full = r->accepted >= want;
    if (w->adaptive == HEURISTIC && want) w->length_wanted += full ? 2 : -1;
    if (w->length_wanted < 1) w->length_wanted = 1;
    w->accepted += r->accepted;
    w->full += full && want;
    w->proposed += want;
    w->before = w->length;
}

static void watch_decode(Watch *w, Method *m, Random *r) {
    DecodeOptions o = {
        .max_tokens = TOKENS,
        .sampling = {.temperature = test_between(r, 0, 1) ? 0 : 2, .top_p = 1},
        .seed = random_bits(r),
        .merge = test_between(r, 0, 1),
        .layout = test_between(r, 0, 1) ? LAYOUT_TREE : LAYOUT_BATCH,
        .prefill_chunk = test_between(r, 0, 5),
        .clock = {no_time,                   NULL                   },
        .emit = on_emit,
        .step = on_step,
        .state = w
    };
    DecodeResult out;
    Error e = {0};
    int prompt[CONTEXT], count = test_between(r, 0, 4) ? test_between(r, 1, 12) : test_between(r, 1, CONTEXT);
    for (int i = 0; i < count; i++) prompt[i] = w->sequence[i] = test_between(r, 0, VOCAB - 1);
    w->length = w->before = count;
    w->length_wanted = w->gamma;
    if (!decode(&w->target, m, prompt, count, &o, &out, &e)) fail_msg("%s", e.text);
    decode_result_release(&out);
}

static void open_sessions(Watch *w, Random *r) {
    NullSetup target = {.vocab = VOCAB + 1, .masked = 1, .context = CONTEXT, .max_nodes = 32};
    NullSetup draft = {.vocab = VOCAB, .context = CONTEXT, .max_nodes = 16};
    if (test_between(r, 0, 1)) draft = (NullSetup){.vocab = VOCAB + 2, .masked = 2, .context = CONTEXT};
    draft.window = test_between(r, 0, 3); // 0 or 3: it says what the target does
    if (test_between(r, 0, 3) == 0) draft.context = test_between(r, 1, CONTEXT);
    null_session_open(&w->target, &target);
    null_session_open(&w->draft, &draft);
    null_session_open(&w->slow, &(NullSetup){.vocab = draft.vocab,
                                             .masked = draft.masked,
                                             .window = draft.window,
                                             .context = CONTEXT + MOST_GAMMA});
}

static void open_method(Watch *w, Method *m, Random *r) {
    static const double temperatures[] = {0, 0, 0.7, 3};
    char text[200];
    Error e = {0};
    MethodEnv env = {.target = &w->target, .draft = &w->draft, .sampling = {.top_p = 1}};
    w->gamma = test_between(r, 1, MOST_GAMMA);
    w->adaptive = (Adaptive)test_between(r, 0, 2);
    w->confidence = (double)test_between(r, 0, 100) / 100;
    w->sampling = (Sampling){temperatures[test_between(r, 0, 3)], test_between(r, 0, 3), 1};
    if (test_between(r, 0, 1)) w->sampling.top_p = 0.8;
    snprintf(text, sizeof text,
             "speculative:gamma=%d,adaptive=%s,confidence=%.2f,temperature=%g,top_k=%d,top_p=%g", w->gamma,
             ADAPTIVES[w->adaptive], w->confidence, w->sampling.temperature, w->sampling.top_k,
             w->sampling.top_p);
    if (!method_open(m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
}

static void every_setting(void **state) {
    (void)state;
    Random r = test_random(80);
    int accepted = 0, proposed = 0, full = 0;
    for (int round = 0; round < 200; round++) {
        Watch w = {0};
        Method m;
        open_sessions(&w, &r);
        open_method(&w, &m, &r);
        for (int prompt = 0; prompt < 3; prompt++) watch_decode(&w, &m, &r);
        accepted += w.accepted;
        proposed += w.proposed;
        full += w.full;
        method_close(&m);
        session_release(&w.target);
        session_release(&w.draft);
        session_release(&w.slow);
    }
    print_message("%d of %d guesses accepted, %d full matches\n", accepted, proposed, full);
    assert_true(accepted > 5000 && proposed - accepted > 5000 && full > 1000);
}

// A draft that says what the target says makes each step gamma + 1 tokens long, whatever the window.
static void perfect_draft(void **state) {
    (void)state;
    for (int window = 0; window < 20; window += 7) {
        NullSetup setup = {.vocab = 20, .context = 200, .window = window, .max_nodes = 32};
        Session target, draft;
        Method m;
        Error e = {0};
        int prompt[] = {1, 2, 3};
        null_session_open(&target, &setup);
        null_session_open(&draft, &setup);
        MethodEnv env = {.target = &target, .draft = &draft, .sampling = {.top_p = 1}};
        DecodeOptions o = {
            .max_tokens = 180, .merge = true, .clock = {no_time, NULL}
        };
        DecodeResult out;
        assert_true(method_open(&m, "speculative:gamma=5", &env, &e));
        assert_true(decode(&target, &m, prompt, 3, &o, &out, &e));
        assert_int_equal(out.steps, 30);
        decode_result_release(&out);
        method_close(&m);
        session_release(&target);
        session_release(&draft);
    }
}

static void refuses(void **state) {
    (void)state;
    Session target, draft;
    Method m;
    Error e = {0};
    null_session_open(&target, &(NullSetup){.vocab = 20, .context = 50});
    null_session_open(&draft, &(NullSetup){.vocab = 20, .context = 50, .masked = 3});
    MethodEnv env = {.target = &target};
    assert_false(method_open(&m, "speculative", &env, &e));
    assert_string_equal(e.text, "method 'speculative': a draft model is needed: give one with --draft DIR");
    env.draft = &draft;
    assert_false(method_open(&m, "speculative", &env, &e));
    assert_string_equal(e.text,
                        "method 'speculative': the draft model has 17 tokens, the target 20: they must "
                        "share a vocabulary");
    session_release(&target);
    session_release(&draft);
}

// A prompt may hold ids that are padding; the draft may have less of it.
static void prompt_outside_the_draft(void **state) {
    (void)state;
    Session target, draft;
    Method m;
    Error e = {0};
    int prompt[] = {1, 21};
    null_session_open(&target, &(NullSetup){.vocab = 24, .context = 50, .masked = 4});
    null_session_open(&draft, &(NullSetup){.vocab = 20, .context = 50});
    MethodEnv env = {.target = &target, .draft = &draft, .sampling = {.top_p = 1}};
    DecodeOptions o = {
        .max_tokens = 9, .merge = true, .clock = {no_time, NULL}
    };
    DecodeResult out;
    assert_true(method_open(&m, "speculative", &env, &e));
    assert_false(decode(&target, &m, prompt, 2, &o, &out, &e));
    assert_string_equal(e.text, "token 1 of the prompt is 21, outside the draft's vocabulary of 20");
    method_close(&m);
    session_release(&target);
    session_release(&draft);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),
        cmocka_unit_test(perfect_draft),
        cmocka_unit_test(refuses),
        cmocka_unit_test(prompt_outside_the_draft),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
