// Each step's chain against a slow model that runs the draft from the first token on; on random streams of
// the null backend, where a draft with a shorter window agrees now and then.
#include "tests/support/draft_watch.h"
#include "tests/support/null_session.h"

#include <stdio.h>
#include <string.h>

static const char *const ADAPTIVES[] = {"off", "heuristic", "confidence"};

static int draft_says(DraftWatch *w, const int *tokens, int n, float *logits) {
    return slow_next(&w->slow, tokens, n, logits);
}

static void open_sessions(DraftWatch *w, Random *r) {
    NullSetup target = {.vocab = WATCH_VOCAB + 1, .masked = 1, .context = WATCH_CONTEXT, .max_nodes = 32};
    NullSetup draft = {.vocab = WATCH_VOCAB, .context = WATCH_CONTEXT, .max_nodes = 16};
    if (test_between(r, 0, 1))
        draft = (NullSetup){.vocab = WATCH_VOCAB + 2, .masked = 2, .context = WATCH_CONTEXT};
    draft.window = test_between(r, 0, 3); // 0 or 3: agrees with the target
    if (test_between(r, 0, 3) == 0) draft.context = test_between(r, 1, WATCH_CONTEXT);
    null_session_open(&w->target, &target);
    null_session_open(&w->second, &draft);
    draft.context = WATCH_CONTEXT + WATCH_GAMMA;
    draft.max_nodes = 0;
    null_session_open(&w->slow, &draft);
}

static void open_method(DraftWatch *w, Method *m, Random *r) {
    static const double temperatures[] = {0, 0, 0.7, 3};
    char text[200];
    Error e = {0};
    MethodEnv env = {.target = &w->target, .draft = &w->second, .sampling = {.top_p = 1}};
    int adaptive = test_between(r, 0, 2);
    double confidence = (double)test_between(r, 1, 100) / 100;
    w->says = draft_says;
    w->gamma = test_between(r, 1, WATCH_GAMMA);
    w->heuristic = adaptive == 1;
    w->confidence = adaptive == 2 ? confidence : 0;
    w->sampling = (Sampling){temperatures[test_between(r, 0, 3)], test_between(r, 0, 3), 1};
    if (test_between(r, 0, 1)) w->sampling.top_p = 0.8;
    snprintf(
        text, sizeof text,
        "speculative:gamma=%d,adaptive=%s,confidence=%.2f,draft_temperature=%g,draft_top_k=%d,draft_top_p=%g",
        w->gamma, ADAPTIVES[adaptive], confidence, w->sampling.temperature, w->sampling.top_k,
        w->sampling.top_p);
    if (!method_open(m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
}

static void every_setting(void **state) {
    (void)state;
    Random r = test_random(80);
    int accepted = 0, proposed = 0, full = 0;
    for (int round = 0; round < 200; round++) {
        DraftWatch w = {.accepted = 0};
        Method m;
        open_sessions(&w, &r);
        open_method(&w, &m, &r);
        for (int prompt = 0; prompt < 3; prompt++) draft_watch_decode(&w, &m, &r);
        accepted += w.accepted;
        proposed += w.proposed;
        full += w.full;
        method_close(&m);
        session_release(&w.target);
        session_release(&w.second);
        session_release(&w.slow);
    }
    print_message("%d of %d guesses accepted, %d full matches\n", accepted, proposed, full);
    assert_true(accepted > 5000 && proposed - accepted > 5000 && full > 1000);
}

// A draft that agrees with the target makes each step gamma + 1 tokens long, whatever the window.
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
        DecodeOptions o = {.max_tokens = 180, .merge = true, .clock = still_clock()};
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
    assert_string_equal(
        e.text,
        "method 'speculative': a draft model is needed: give one with --draft DIR, in a config draft: DIR");
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
    DecodeOptions o = {.max_tokens = 9, .merge = true, .clock = still_clock()};
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
