// Each step's chain against a slow model of the draft: another session runs the text and the guesses through
// the first layers only, and reads the last token there.
#include "tests/support/draft_watch.h"
#include "tests/support/null_session.h"

#include <stdio.h>
#include <string.h>

enum { VOCAB = 3 }; // so that a guess is right now and then

static int exit_says(DraftWatch *w, const int *tokens, int n, float *logits) {
    Session *s = &w->slow;
    session_reset(s);
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, tokens[0]);
    for (int i = 1; i < n; i++) node = tree_probe(&s->tree, node, tokens[i], true);
    assert_true(session_run(s, w->layer, NULL));
    session_peek(s, node);
    assert_true(session_read(s, HEAD_ARGMAX | HEAD_LOGITS, NULL));
    if (logits) memcpy(logits, session_logits(s, node), (size_t)s->shape.vocab * sizeof *logits);
    return session_argmax(s, node);
}

static void open_sessions(DraftWatch *w, Random *r) {
    NullSetup setup = {.vocab = WATCH_VOCAB,
                       .masked = WATCH_VOCAB - VOCAB,
                       .context = WATCH_CONTEXT,
                       .window = test_between(r, 0, 5),
                       .max_nodes = 32};
    null_session_open(&w->target, &setup);
    null_session_open(&w->second, &setup);
    setup.context = WATCH_CONTEXT + WATCH_GAMMA;
    setup.max_nodes = 0;
    null_session_open(&w->slow, &setup);
}

static void open_method(DraftWatch *w, Method *m, Random *r) {
    char text[200];
    Error e = {0};
    open_sessions(w, r);
    MethodEnv env = {.target = &w->target, .sampling = {.top_p = 1}};
    int asked = test_between(r, 0, NULL_LAYERS - 1);
    w->layer = asked ? asked : 1;
    w->says = exit_says;
    w->alone = true;
    draft_watch_draw(w, r);
    snprintf(text, sizeof text,
             "early-exit:gamma=%d,eta=%.2f,exit_layer=%d,draft_temperature=%g,draft_top_k=%d", w->gamma,
             w->confidence, asked, w->sampling.temperature, w->sampling.top_k);
    if (!method_open(m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
}

static void every_setting(void **state) {
    (void)state;
    draft_watch_rounds(test_random(97), open_method, 2000);
}

static void refuses(void **state) {
    (void)state;
    Session target;
    Method m;
    Error e = {0};
    null_session_open(&target, &(NullSetup){.vocab = 20, .context = 50});
    MethodEnv env = {.target = &target};
    assert_false(method_open(&m, "early-exit:exit_layer=3", &env, &e));
    assert_string_equal(e.text,
                        "method 'early-exit': 'exit_layer' is 3, the target has 3 layers: choose 1 to 2");
    assert_false(method_open(&m, "mix:early-exit+early-exit", &env, &e));
    assert_non_null(strstr(e.text, "early-exit and early-exit cannot share the target's lower layers"));
    target.shape.layers = 1;
    assert_false(method_open(&m, "early-exit", &env, &e));
    assert_non_null(strstr(e.text, "the target has one layer, so there is none to leave it after"));
    session_release(&target);
}

typedef struct {
    int guesses, heads, shallow, deep; // of all steps
    int end;                           // the token that ends a text
    const Session *target;
} Count;

static void count_step(void *state, const StepReport *r) {
    Count *c = state;
    const Tree *t = &c->target->tree;
    c->guesses += r->candidates;
    for (int i = 1; i < t->count - 1; i++) assert_int_not_equal(t->token[i], c->end);
    for (int i = 0; i < r->pass_count; i++) {
        const Pass *p = &r->passes[i];
        assert_int_equal(p->model, PASS_TARGET);
        if (p->a == p->b) c->heads += p->b == 1 ? p->count : 0;
        else if (p->a == 0) c->shallow += p->count * p->rows;
        else c->deep += p->count * p->rows;
    }
}

// The shallow layers run once for each token, the deep ones too: nothing is computed twice. The log has a
// pass of the head at the exit for each guess. No guess follows one that ends the text.
static void layers_run_once(void **state) {
    (void)state;
    Session target;
    int prompt[] = {1, 2, 0, 1}, end = -1;
    null_session_open(&target, &(NullSetup){.vocab = 4, .context = 100});
    for (int ends = 0; ends < 2; ends++) {
        Method m;
        DecodeResult out;
        Count c = {.target = &target, .end = end};
        MethodEnv env = {.target = &target, .sampling = {.top_p = 1}, .eos = &end, .eos_count = ends};
        DecodeOptions o = {.max_tokens = 60,
                           .ignore_eos = true,
                           .merge = true,
                           .clock = still_clock(),
                           .step = count_step,
                           .state = &c};
        assert_true(method_open(&m, "early-exit:gamma=4", &env, NULL));
        double rows = target.rows, passes = target.passes;
        assert_true(decode(&target, &m, prompt, 4, &o, &out, NULL));
        assert_true(target.rows - rows == out.rows + 3);
        assert_true(target.passes - passes <= out.steps * (1 + 4 + 1) + 2);
        assert_true(out.rows == out.steps + c.guesses && c.shallow == out.rows && c.deep == out.rows);
        assert_int_equal(c.heads, c.guesses);
        assert_true(ends ? c.guesses < 4 * out.steps : c.guesses == 4 * out.steps);
        end = out.ids[9];
        decode_result_release(&out);
        method_close(&m);
    }
    session_release(&target);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),
        cmocka_unit_test(refuses),
        cmocka_unit_test(layers_run_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
