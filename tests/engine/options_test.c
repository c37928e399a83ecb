// The model's options: zeros are the defaults, every row reaches its field by its words, and two models are
// opened alike exactly when the rows that opening reads are equal.
#include "tests/support/check.h"

#include "engine/options.h"

#include <stdio.h>
#include <string.h>

static void zeros_are_the_defaults(void **state) {
    EngineOptions zero, set;
    (void)state;
    memset(&zero, 0, sizeof zero), memset(&set, 0, sizeof set);
    args_defaults(MODEL_OPTIONS, MODEL_SETTINGS, &set);
    assert_string_equal(set.device, "cpu"); // "" is, too
    memset(set.device, 0, sizeof set.device);
    assert_memory_equal(&zero, &set, sizeof set);
}

static void words_are_fields(void **state) {
    static const char *const LINE[] = {"bench",
                                       "--device",
                                       "cuda:0,cuda:1",
                                       "--math",
                                       "fast",
                                       "--compute",
                                       "bf16",
                                       "--threads",
                                       "3",
                                       "--layout",
                                       "batch",
                                       "--merge",
                                       "off",
                                       "--max-rows",
                                       "9",
                                       "--sliding-window=off",
                                       "--weights",
                                       "held",
                                       "--attention",
                                       "plain",
                                       "--isa",
                                       "avx2",
                                       "-c",
                                       "77"};
    enum { WORDS = sizeof LINE / sizeof *LINE };
    const ArgSet set = MODEL_SET(0, NULL), fewer = MODEL_SET(0, "isa merge context");
    char *argv[WORDS];
    EngineOptions o = {.threads = 0};
    Words rest;
    Text text = {0};
    Error e = {0};
    bool help;
    (void)state;
    for (int i = 0; i < WORDS; i++) argv[i] = (char *)(size_t)LINE[i];
    if (!args_parse_line(&set, 1, WORDS, argv, &o, &rest, &help, &e)) fail_msg("%s", e.text);
    assert_string_equal(o.device, "cuda:0,cuda:1");
    assert_true(o.math == MATH_FAST && o.compute == CHOOSE_BF16 && o.threads == 3 &&
                o.layout == LAYOUT_BATCH && o.no_merge && o.max_rows == 9 && o.no_window &&
                o.weights == WEIGHTS_HELD && o.attention == ATTENTION_PLAIN && o.context == 77);
    assert_string_equal(o.isa, "avx2");
    args_write_options(MODEL_OPTIONS, MODEL_SETTINGS, &o, &text);
    assert_string_equal(
        text_get(&text),
        " --device cuda:0,cuda:1 --math fast --compute bf16 --threads 3 --layout batch --merge off"
        " --max-rows 9 --sliding-window off --weights held --attention plain");
    text_release(&text);
    assert_false(args_set_option(&fewer, 1, &o, "merge", "on", &e));
    assert_true(args_set_option(&fewer, 1, &o, "max-rows", "2", &e));
    assert_int_equal(o.max_rows, 2);
}

static void other_words_are_refused(void **state) {
    static const char *const rows[][3] = {
        {"math", "quick", "--math is 'quick', must be one of exact, fast"},
        {"compute", "fp8", "--compute is 'fp8', must be one of weights, f32, bf16, f16, int8"},
        {"layout", "row", "--layout is 'row', must be one of tree, batch, copied"},
        {"sliding-window", "maybe", "--sliding-window is 'maybe', must be on or off"},
        {"weights", "packed", "--weights is 'packed', must be one of mapped, held, exact"},
        {"attention", "dense", "--attention is 'dense', must be one of flash, plain"},
        {"max_rows", "1", "there is no option --max_rows; did you mean --max-rows?"},
    };
    const ArgSet set = MODEL_SET(0, NULL);
    EngineOptions o = {.threads = 0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Error e = {0};
        assert_false(args_set_option(&set, 1, &o, rows[i][0], rows[i][1], &e));
        assert_string_equal(e.text, rows[i][2]);
    }
}

// A word that is not the default.
static const char *other_word(const Arg *a) {
    switch (a->type) {
    case ARG_CHOICE: return a->choices[1];
    case ARG_INT: return "7";
    case ARG_NOT: return "off";
    default: return "null";
    }
}

static void same_engine(void **state) {
    static const char STEP[] = "layout merge max_rows"; // read by steps only
    (void)state;
    for (int i = 0; i < MODEL_SETTINGS; i++) {
        const Arg *a = &MODEL_OPTIONS[i];
        EngineOptions one, other;
        bool step = strstr(STEP, a->name) != NULL;
        memset(&one, 0, sizeof one), memset(&other, 0, sizeof other);
        assert_true(args_set(a, 1, &other, a->name, other_word(a), NULL));
        if (options_same_engine(&one, &other) != step) fail_msg("%s", a->name);
        options_clear_step(&other);
        if (memcmp(&one, &other, sizeof one) == 0 && !step) fail_msg("%s", a->name);
        if (step) assert_memory_equal(&one, &other, sizeof one);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_are_the_defaults), cmocka_unit_test(words_are_fields),
        cmocka_unit_test(other_words_are_refused), cmocka_unit_test(same_engine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
