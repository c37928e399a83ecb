// Each step's chain against a slow model of Kangaroo: from the first token on, the target's shallow layers
// give every state, and a new adapter session reads them one by one.
#include "tests/support/draft_watch.h"
#include "tests/support/null_session.h"

#include <stdio.h>
#include <string.h>

enum { VOCAB = 3 }; // so that a guess is right now and then

// The states of all n tokens after `layer` layers, (n, NULL_WIDTH).
static void states_of(Session *target, const int *tokens, int n, int layer, float *rows) {
    session_reset(target);
    session_begin_step(target, true, LAYOUT_TREE);
    int node = tree_root(&target->tree, tokens[0]);
    for (int i = 1; i < n; i++) node = tree_probe(&target->tree, node, tokens[i], false);
    assert_true(session_run(target, layer, NULL));
    for (int i = 0; i < n; i++)
        assert_true(session_get_hidden(target, &i, 1, HIDDEN_RAW, rows + (size_t)i * NULL_WIDTH, NULL));
}

static int adapter_says(DraftWatch *w, const int *tokens, int n, float *logits) {
    float rows[(WATCH_CONTEXT + WATCH_GAMMA) * NULL_WIDTH];
    Session *s = &w->slow;
    int said = -1;
    states_of(&w->slow_target, tokens, n, w->layer, rows);
    session_reset(s);
    for (int i = 0; i < n; i++) {
        session_begin_step(s, true, LAYOUT_TREE);
        int node = tree_root(&s->tree, tokens[i]);
        assert_true(session_set_hidden(s, node, 1, rows + (size_t)i * NULL_WIDTH, NULL));
        assert_true(session_run(s, s->shape.layers, NULL));
        assert_true(session_read(s, HEAD_ARGMAX | HEAD_LOGITS, NULL));
        said = session_argmax(s, node);
        if (logits) memcpy(logits, session_logits(s, node), (size_t)s->shape.vocab * sizeof *logits);
        assert_true(session_commit(s, node, 1, NULL));
    }
    return said;
}

static void open_sessions(DraftWatch *w, Random *r) {
    NullSetup target = {.vocab = WATCH_VOCAB,
                        .masked = WATCH_VOCAB - VOCAB,
                        .context = WATCH_CONTEXT,
                        .window = test_between(r, 0, 5),
                        .max_nodes = 32};
    NullSetup adapter = target;
    adapter.input = INPUT_HIDDEN;
    adapter.max_nodes = test_between(r, 0, 1) ? 16 : 0;
    if (test_between(r, 0, 3) == 0) adapter.context = test_between(r, 1, WATCH_CONTEXT);
    null_session_open(&w->target, &target);
    null_session_open(&w->second, &adapter);
    target.context = adapter.context = WATCH_CONTEXT + WATCH_GAMMA;
    target.max_nodes = adapter.max_nodes = 0;
    null_session_open(&w->slow_target, &target);
    null_session_open(&w->slow, &adapter);
}

static void open_method(DraftWatch *w, Method *m, Random *r) {
    char text[200];
    Error e = {0};
    open_sessions(w, r);
    w->layer = test_between(r, 1, NULL_LAYERS - 1);
    MethodEnv env = {.target = &w->target,
                     .adapters = {{.sessions = &w->second, .count = 1, .layer = w->layer}},
                     .sampling = {.top_p = 1}};
    w->says = adapter_says;
    draft_watch_draw(w, r);
    w->strict = test_between(r, 0, 1);
    snprintf(text, sizeof text,
             "kangaroo:gamma=%d,eta=%.2f,strict=%s,exit_layer=%d,draft_temperature=%g,draft_top_k=%d",
             w->gamma, w->confidence, w->strict ? "on" : "off", test_between(r, 0, 1) ? w->layer : 0,
             w->sampling.temperature, w->sampling.top_k);
    if (!method_open(m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
}

static void every_setting(void **state) {
    (void)state;
    draft_watch_rounds(test_random(82), open_method, 2000);
}

static void refuses(void **state) {
    (void)state;
    Session target, adapter;
    Method m;
    Error e = {0};
    null_session_open(&target, &(NullSetup){.vocab = 20, .context = 50});
    null_session_open(&adapter, &(NullSetup){.vocab = 20, .context = 50, .input = INPUT_HIDDEN});
    MethodEnv env = {.target = &target, .adapters = {{.sessions = &adapter, .count = 1, .layer = 2}}};
    assert_false(method_open(&m, "kangaroo:exit_layer=1", &env, &e));
    assert_non_null(
        strstr(e.text, "method 'kangaroo': 'exit_layer' is 1, the adapter was made for layer 2: "));
    env.adapters[0].layer = NULL_LAYERS;
    assert_false(method_open(&m, "kangaroo", &env, &e));
    assert_string_equal(e.text,
                        "method 'kangaroo': an adapter on one of the target's lower layers is needed: "
                        "give one with --adapter DIR, in a config adapter: DIR");
    session_release(&target);
    session_release(&adapter);
}

// The shallow layers run once for each token, the deep ones too: nothing is computed twice.
static void layers_run_once(void **state) {
    (void)state;
    Session target, adapter;
    Method m;
    int prompt[] = {1, 2, 0, 1};
    DecodeResult out;
    null_session_open(&target, &(NullSetup){.vocab = 4, .context = 100});
    null_session_open(&adapter, &(NullSetup){.vocab = 4, .context = 100, .input = INPUT_HIDDEN});
    MethodEnv env = {.target = &target,
                     .adapters = {{.sessions = &adapter, .count = 1, .layer = 1}},
                     .sampling = {.top_p = 1}};
    DecodeOptions o = {.max_tokens = 60, .merge = true, .clock = still_clock()};
    assert_true(method_open(&m, "kangaroo:gamma=4,eta=0", &env, NULL));
    double rows = target.rows, passes = target.passes;
    assert_true(decode(&target, &m, prompt, 4, &o, &out, NULL));
    assert_true(target.rows - rows == out.rows + 3);                    // each node once, and the prompt
    assert_true(target.passes - passes <= out.steps * (1 + 4 + 1) + 2); // root, guesses, all the rest
    decode_result_release(&out);
    method_close(&m);
    session_release(&target);
    session_release(&adapter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),
        cmocka_unit_test(refuses),
        cmocka_unit_test(layers_run_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
