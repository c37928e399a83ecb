// Replay against the same methods on a real loop: a null model's output, given as answers, gives that model's
// S; methods that need a model are refused.
#include "tests/support/check.h"

#include "engine/decode/structures/datastore.h"
#include "engine/decode/decode.h"
#include "harness/replay/replay.h"
#include "tests/support/child.h"
#include "tests/support/null_session.h"

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

// Decodes by the null model; the texts become its output.
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
        list[i] = (ReplayText){.ids = ids[i], .prompt = PROMPT, .count = PROMPT + ANSWER};
        for (int k = 0; k < PROMPT; k++) ids[i][k] = test_between(&random, 0, VOCAB - 1);
    }
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        Said said = {0};
        Replay r;
        decode_all(METHODS[i], &texts, &said);
        assert_true(replay_run(&texts, METHODS[i], still_clock(), NULL, &r, NULL));
        if (r.total_tokens != said.tokens || r.total_steps != said.steps || r.rows != said.rows)
            fail_msg("%s: wanted %g tokens, %g steps, %g rows, got %g, %g, %g", METHODS[i], said.tokens,
                     said.steps, said.rows, r.total_tokens, r.total_steps, r.rows);
        assert_true(fabs(replay_ctar(&r, 2) - said.at_least_2 / said.steps) < 1e-12);
        assert_true(isnan(replay_rate(&r))); // the clock saw no time
        assert_true(replay_ctar(&r, 0) == 1 && (i == 0) == (replay_ctar(&r, 1) == 0));
        replay_release(&r);
    }
}

// What Ouroboros' pool accepts, the slow way: of the phrases that began with the last token, the W seen last,
// each once, the newest K.
static int slow_pool(const int *ids, int length, int count, int K, int beta, int W) {
    int best = 0, found = 0;
    const int *seen[64];
    for (int end = length; end >= beta && found < W && found < K; end--) {
        const int *phrase = ids + end - beta + 1;
        bool again = false;
        if (phrase[-1] != ids[length - 1]) continue;
        for (int i = 0; i < found; i++)
            again = again || memcmp(seen[i], phrase, ((size_t)beta - 1) * sizeof *ids) == 0;
        if (again) continue;
        seen[found++] = phrase;
        int same = 0;
        while (same < beta - 1 && length + same < count && phrase[same] == ids[length + same]) same++;
        if (same > best) best = same;
    }
    return best;
}

static void pool(void **state) {
    static int ids[TEXTS][PROMPT + ANSWER];
    static const int ROWS[][3] = {{1, 2, 1}, {4, 5, 2}, {3, 4, 20}, {20, 7, 20}};
    ReplayText list[TEXTS];
    ReplayTexts texts = {.texts = list, .count = TEXTS, .vocab = VOCAB, .longest = PROMPT + ANSWER};
    Random random = test_random(2);
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        list[i] = (ReplayText){.ids = ids[i], .prompt = PROMPT, .count = PROMPT + ANSWER};
        for (int k = 0; k < PROMPT + ANSWER; k++)
            ids[i][k] =
                k < 6 || test_between(&random, 0, 9) < 2 ? test_between(&random, 0, 5) : ids[i][k - 6];
    }
    for (size_t row = 0; row < sizeof ROWS / sizeof *ROWS; row++) {
        double steps = 0, cold;
        char method[64];
        Replay r;
        for (int i = 0; i < TEXTS; i++)
            for (int at = PROMPT; at < PROMPT + ANSWER; steps++)
                at += 1 + slow_pool(ids[i], at, PROMPT + ANSWER, ROWS[row][0], ROWS[row][1], ROWS[row][2]);
        snprintf(method, sizeof method, "ouroboros-pool:K=%d,beta=%d,W=%d", ROWS[row][0], ROWS[row][1],
                 ROWS[row][2]);
        assert_true(replay_run(&texts, method, clock_processor(), NULL, &r, NULL));
        if (r.total_steps != steps || r.total_tokens != TEXTS * ANSWER)
            fail_msg("%s: wanted %g steps, got %g", method, steps, r.total_steps);
        cold = r.total_steps;
        assert_true(replay_rate(&r) * r.seconds > 0.999 * TEXTS * ANSWER);
        replay_release(&r);
        strcat(method, ",warm=on");
        assert_true(replay_run(&texts, method, clock_processor(), NULL, &r, NULL));
        assert_true(r.total_steps <= 1.05 * cold);
        replay_release(&r);
    }
}

// A walk over the positions: a step emits what was recorded where it begins, at most draft + 1, and no more
// than the text has.
// A value may be the name of a method that reads the model's outputs.
static void a_value_is_no_method(void **state) {
    int ids[] = {1, 2, 3, 1, 2, 3};
    ReplayText text = {.ids = ids, .prompt = 3, .count = 6};
    ReplayTexts texts = {.texts = &text, .count = 1, .vocab = VOCAB, .longest = 6};
    char method[2 * FOLDER_PATH_SIZE];
    Replay r;
    Error e = {0};
    const char *store = folder_path(*state, "jacobi");
    assert_true(datastore_write(store, ids, 6, VOCAB, NULL));
    snprintf(method, sizeof method, "mix:prompt-lookup+rest(datastore=%s)", store);
    if (!replay_run(&texts, method, still_clock(), NULL, &r, &e)) fail_msg("%s: %s", method, e.text);
    replay_release(&r);
}

static void recorded(void **state) {
    static int ids[TEXTS][PROMPT + ANSWER];
    static uint8_t lists[TEXTS][ANSWER];
    static const int DRAFTS[] = {1, 3, 40};
    ReplayText list[TEXTS];
    ReplayTexts texts = {.texts = list, .count = TEXTS, .vocab = VOCAB, .longest = PROMPT + ANSWER};
    Random random = test_random(3);
    (void)state;
    texts.lists[texts.list_count++] = (char[]){"acc_x"};
    for (int i = 0; i < TEXTS; i++) {
        list[i] =
            (ReplayText){.ids = ids[i], .prompt = PROMPT, .count = PROMPT + ANSWER, .lists = {lists[i]}};
        for (int k = 0; k < PROMPT + ANSWER; k++) ids[i][k] = test_between(&random, 0, VOCAB - 1);
        for (int k = 0; k < ANSWER; k++) lists[i][k] = (uint8_t)test_between(&random, 1, 9);
    }
    for (size_t d = 0; d < sizeof DRAFTS / sizeof *DRAFTS; d++) {
        double steps = 0;
        char method[64];
        Replay r;
        for (int i = 0; i < TEXTS; i++)
            for (int at = 0; at < ANSWER; steps++)
                at += lists[i][at] < DRAFTS[d] + 1 ? lists[i][at] : DRAFTS[d] + 1;
        snprintf(method, sizeof method, "recorded:list=acc_x,draft=%d", DRAFTS[d]);
        assert_true(replay_run(&texts, method, still_clock(), NULL, &r, NULL));
        if (r.total_steps != steps || r.rows != steps * (DRAFTS[d] + 1))
            fail_msg("%s: wanted %g steps, got %g of %g rows", method, steps, r.total_steps, r.rows);
        replay_release(&r);
    }
}

// The method of text goes first; where it has a guess the recorded draft doesn't run.
static void recorded_after_another(void **state) {
    int ids[] = {1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t list[] = {9, 9, 9, 9, 2, 1, 1};
    ReplayText text = {.ids = ids, .prompt = 5, .count = 12, .lists = {list}};
    ReplayTexts texts = {.texts = &text, .count = 1, .vocab = VOCAB, .longest = 12, .list_count = 1};
    Replay r;
    (void)state;
    texts.lists[0] = (char[]){"acc_x"};
    // After 1, prompt-lookup's guess is 2 3, and the model adds 4; after 4, its guess 1 2 is wrong; after 5
    // it has none, and one recorded token is accepted; after 7, none is.
    assert_true(replay_run(&texts, "recorded:list=acc_x,draft=3,of=prompt-lookup(ngram_max=1,draft=2)",
                           still_clock(), NULL, &r, NULL));
    if (r.total_steps != 4 || r.rows != 3 + 3 + 4 + 4)
        fail_msg("wanted 4 steps of 14 rows, got %g of %g", r.total_steps, r.rows);
    replay_release(&r);
}

static void needs_a_model(void **state) {
    static const char *const ROWS[][2] = {
        {"lookahead", "method 'lookahead': it reads the model's outputs"},
        {"mix:jacobi+prompt-lookup", "method 'mix': method 'jacobi': it reads the model's outputs"},
        {"recorded:of=jacobi", "no list 'acc_eagle'"},
        {"ngrammys", "asks a model for its distribution"},
        {"ouroboros-pool:beta=1", "method 'ouroboros-pool'"},
        {"medusa", "method 'medusa': it reads the model's outputs"},
        {"promptlookup", "prompt-lookup"},
        {"recorded", "no list 'acc_eagle'"},
    };
    int ids[] = {1, 2, 3, 4};
    ReplayText text = {.ids = ids, .prompt = 2, .count = 4};
    ReplayTexts texts = {.texts = &text, .count = 1, .vocab = VOCAB, .longest = 4};
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Error e = {0};
        Replay r;
        assert_false(replay_run(&texts, ROWS[i][0], still_clock(), NULL, &r, &e));
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
        cmocka_unit_test(pool),
        cmocka_unit_test(needs_a_model),
        cmocka_unit_test_setup_teardown(a_value_is_no_method, folder_setup, folder_teardown),
        cmocka_unit_test(recorded),
        cmocka_unit_test(recorded_after_another),
        cmocka_unit_test_setup_teardown(command, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
