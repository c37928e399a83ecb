// Replay against the same methods on a real loop: what a null model said, given as answers, gives the S that
// the null model gave; what needs a model is refused.
#include "tests/check.h"

#include "engine/decode/decode.h"
#include "harness/replay.h"
#include "tests/child.h"
#include "tests/null_session.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VOCAB = 24, TEXTS = 12, PROMPT = 20, ANSWER = 300 };

static const char *const METHODS[] = {"autoregressive", "prompt-lookup:draft=6,allow_short=on",
                                      "ngrammys:strategy=context,k=4,w=5",
                                      "mix:prompt-lookup+ngrammys(strategy=context)"};

typedef struct Said {
    double tokens, steps, rows, at_least_2;
} Said;

static void count_step(void *state, const StepReport *r) { ((Said *)state)->at_least_2 += r->emitted > 2; }

// Decodes by the null model; the texts become what it said.
static void decode_all(const char *name, ReplayTexts *texts, Said *said) {
    Session s;
    Method m;
    null_session_open(&s, &(NullSetup){.vocab = VOCAB, .context = 4096});
    MethodEnv env = {.target = &s};
    assert_true(method_open(&m, name, &env, NULL));
    DecodeOptions o = {
        .max_tokens = ANSWER, .merge = true, .clock = still_clock(), .step = count_step, .state = said};
    for (int i = 0; i < TEXTS; i++) {
        ReplayText *t = &texts->texts[i];
        DecodeResult r;
        assert_true(decode(&s, &m, t->ids, t->prompt, &o, &r, NULL));
        memcpy(t->ids + t->prompt, r.ids, ANSWER * sizeof *r.ids);
        said->tokens += r.tokens, said->steps += r.steps, said->rows += r.rows;
        decode_result_release(&r);
    }
    method_close(&m);
    session_release(&s);
}

static void as_the_model_was(void **state) {
    static int ids[TEXTS][PROMPT + ANSWER];
    ReplayText list[TEXTS];
    ReplayTexts texts = {.texts = list, .count = TEXTS, .vocab = VOCAB, .longest = PROMPT + ANSWER};
    Random random = test_random(1);
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        list[i] = (ReplayText){ids[i], PROMPT, PROMPT + ANSWER, ""};
        for (int k = 0; k < PROMPT; k++) ids[i][k] = test_between(&random, 0, VOCAB - 1);
    }
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        Said said = {0};
        Replay r;
        decode_all(METHODS[i], &texts, &said);
        assert_true(replay_run(&texts, METHODS[i], &r, NULL));
        if (r.total_tokens != said.tokens || r.total_steps != said.steps || r.rows != said.rows)
            fail_msg("%s: wanted %g tokens, %g steps, %g rows, got %g, %g, %g", METHODS[i], said.tokens,
                     said.steps, said.rows, r.total_tokens, r.total_steps, r.rows);
        assert_true(fabs(replay_ctar(&r, 2) - said.at_least_2 / said.steps) < 1e-12);
        assert_true(replay_ctar(&r, 0) == 1 && (i == 0) == (replay_ctar(&r, 1) == 0));
        replay_release(&r);
    }
}

static void needs_a_model(void **state) {
    static const char *const ROWS[][2] = {
        {"lookahead",                "'lookahead' looks at what the model says"},
        {"jacobi",                   "'jacobi' looks at"                       },
        {"mix:jacobi+prompt-lookup", "'jacobi' looks at"                       },
        {"ngrammys",                 "asks a model for its distribution"       },
        {"medusa",                   "heads are needed"                        },
        {"promptlookup",             "prompt-lookup"                           },
    };
    int ids[] = {1, 2, 3, 4};
    ReplayText text = {ids, 2, 4, ""};
    ReplayTexts texts = {.texts = &text, .count = 1, .vocab = VOCAB, .longest = 4};
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Error e = {0};
        Replay r;
        assert_false(replay_run(&texts, ROWS[i][0], &r, &e));
        if (!strstr(e.text, ROWS[i][1]))
            fail_msg("%s: wanted '%s', got '%s'", ROWS[i][0], ROWS[i][1], e.text);
        replay_release(&r);
    }
}

// Two turns of one prompt, one of another, whose second turn has no answer.
static void command(void **state) {
    Child c;
    FILE *f = fopen(folder_path(*state, "own.jsonl"), "w");
    fputs("{\"turns\": [\"say a b c d e f g\", \"again\"], \"reference\": [\"a b c d e f g\", \"a b c d e f "
          "g\"]}\n"
          "{\"turns\": [\"one two three four\", \"and on\"], \"reference\": [\"one two three four\"]}\n",
          f);
    fclose(f);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "replay", "--path", "own.jsonl", "--model", "tiny", "--json");
    json_t *root = json_loads(text_get(&c.out), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(root, "answers")), 3);
    assert_int_equal(json_integer_value(json_object_get(root, "unanswered")), 1);
    const json_t *methods = json_object_get(root, "methods");
    assert_int_equal(json_array_size(methods), 2);
    assert_true(json_number_value(json_object_get(json_array_get(methods, 1), "S")) > 1);
    json_decref(root);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "replay", "chat", "--model", "tiny");
    assert_non_null(strstr(text_get(&c.err), "has no answers to replay"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "replay", "code");
    assert_non_null(strstr(text_get(&c.err), "--model DIR"));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_model_was),
        cmocka_unit_test(needs_a_model),
        cmocka_unit_test_setup_teardown(command, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
