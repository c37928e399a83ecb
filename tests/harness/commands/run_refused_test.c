// Experiments that can't be run, or only in part, by the real program: the points that are left out and why,
// what plan finds before, mistakes in a config, prompts that are too long.
#include "tests/support/check.h"

#include "tests/support/child.h"
#include "tests/support/spoil.h"
#include "tests/support/stores.h"

#include <stdio.h>
#include <string.h>

static const char CONFIG[] = "name: test\n"
                             "models: [{name: tiny, target: tiny}]\n"
                             "datasets: [{name: own, path: own.jsonl, turns: 2}]\n"
                             "hardware: {device: 'null'}\n"
                             "generation: {max_tokens: 24, ignore_eos: on}\n"
                             "methods: [jacobi, prompt-lookup, lookahead]\n";

static const char PROMPTS[] =
    "{\"turns\": [\"text 0 of this file, and more of it\", \"and on\"], \"reference\": \"a file of text\"}\n"
    "{\"turns\": [\"text 1 of this file, and more of it\"]}\n";

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    folder_write(*state, "x.yaml", CONFIG);
    folder_write(*state, "own.jsonl", PROMPTS);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    return 0;
}

static void partial(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 3, "run", "x.yaml", "--db", "partial.db", "--set",
                  "methods=[jacobi, speculative, medusa]", "--set", "datasets.own.limit=2");
    assert_non_null(strstr(text_get(&c.out), "skipped: method 'speculative': a draft model is needed"));
    assert_non_null(strstr(text_get(&c.err), "2 of 3 points cannot be run, and are left out:\npoint 2, "));
    assert_non_null(strstr(text_get(&c.out), "1 points measured, 2 skipped"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 3, "run", "x.yaml", "--db", "partial.db", "--json", "--set",
                  "methods=[jacobi, speculative, medusa]", "--set", "datasets.own.limit=2");
    assert_non_null(strstr(text_get(&c.err), "2 of 3 points cannot be run, and are left out:\npoint 2, "));
    child_release(&c);
    // Once the missing file is there, it is another run, and all points are measured.
    static const char *const REST[] = {"run",   "x.yaml",
                                       "--db",  "partial.db",
                                       "--set", "methods=[jacobi, {name: rest, matrix: {datastore: later}}]",
                                       "--set", "datasets.own.limit=2",
                                       NULL};
    child_outpace(&c, *state, 3, REST);
    assert_non_null(strstr(text_get(&c.out), "1 points measured, 1 skipped, 0 failed"));
    assert_non_null(strstr(text_get(&c.out), "skipped: method 'rest': cannot open 'later'"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "datasets", "index", "own.jsonl", "--model", "tiny", "-o", "later");
    child_release(&c);
    child_outpace(&c, *state, 0, REST);
    assert_non_null(strstr(text_get(&c.out), "2 points measured, 0 skipped, 0 failed"));
    child_release(&c);
}

// Whatever run refuses, validate and plan report, too, with the point and the reason.
static void validate_finds_what_run_refuses(void **state) {
    static const struct {
        const char *methods, *want;
    } rows[] = {
        {"[jacobi, {name: kangaroo, matrix: {exit_layer: [1, 2]}}]",
         "point 3, kangaroo exit_layer=2, model tiny: method 'kangaroo': 'exit_layer' is 2, the adapter "
         "was "
         "made for layer 1: each layer needs an adapter of its own (in a config a model entry for each"},
        {"[jacobi, {name: rest, matrix: {datastore: nowhere}}]",
         "point 2, rest datastore=nowhere, model tiny: "
         "method 'rest': cannot open 'nowhere'"},
        {"[jacobi, speculative]",
         "point 2, speculative, model tiny: method 'speculative': a draft model is "},
        {"[jacobi, medusa]", "point 2, medusa, model tiny: method 'medusa': Medusa heads are needed"},
        {"[jacobi, {name: ngrammys, matrix: {strategy: unigram}}]", "this device has no weights"},
        {"[jacobi, {name: lookahead, matrix: {W: 200, N: 9, G: 200}}]", "point 2, lookahead W=200 N=9 G=200"},
    };
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "model", "adapter", "tiny", "exit", "--exit-layer", "1");
    child_release(&c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char set[200];
        snprintf(set, sizeof set, "methods=%s", rows[i].methods);
        for (int k = 0; k < 3; k++) {
            static const char *const commands[] = {"plan", "plan", "run"};
            CHILD_OUTPACE(&c, *state, 3, commands[k], "x.yaml", k ? "--db=refused.db" : "--check", "--model",
                          "target=tiny,adapter=exit", "--set", set, "--db", "refused.db", "--set",
                          "datasets.own.limit=1");
            const char *told = text_get(k < 2 ? &c.out : &c.err);
            if (!strstr(told, rows[i].want))
                fail_msg("%s %s: wanted '%s', got '%s'", commands[k], set, rows[i].want, told);
            child_release(&c);
        }
    }
}

// Where a draft gives logits that are not finite its point fails, and the others are measured; where the
// target does, all fail.
static void logits_that_are_not_finite(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "nan");
    child_release(&c);
    spoil_weight(folder_path(*state, "nan"), "model.norm.weight", "0");
    CHILD_OUTPACE(&c, *state, 3, "run", "x.yaml", "--db", "nan.db", "--device", "cpu", "--model",
                  "target=tiny,draft=nan", "--set", "methods=[jacobi, speculative]", "--set",
                  "datasets.own.limit=2");
    assert_non_null(strstr(text_get(&c.out), "model 'nan': the logits after position "));
    assert_non_null(strstr(text_get(&c.out), "1 points measured, 0 skipped, 1 failed"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 3, "run", "x.yaml", "--db", "nan.db", "--device", "cpu", "--model",
                  "target=nan,draft=tiny", "--set", "methods=[jacobi, speculative]", "--set",
                  "datasets.own.limit=2");
    assert_non_null(strstr(text_get(&c.out), "0 points measured, 0 skipped, 2 failed"));
    child_release(&c);
}

static void mistakes(void **state) {
    static const struct {
        const char *set, *want;
    } rows[] = {
        {"datasets.own.path=nowhere.jsonl", "nowhere.jsonl"},
        {"datasets.own.template=vicunna", "did you mean 'vicuna'"},
        {"models.tiny.target=nowhere", "nowhere"},
        {"models=[{reference: nobody}]", "there is no model 'nobody'"},
        {"methods=[jakobi]", "did you mean 'jacobi'"},
        {"hardware.math=fast", "math"},
        {"hardware.weights=held", "weights: held needs device cpu, and a point has it on 'null'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 2, "plan", "--check", "x.yaml", "--set", rows[i].set);
        if (!strstr(text_get(&c.err), rows[i].want))
            fail_msg("%s: wanted '%s', got '%s'", rows[i].set, rows[i].want, text_get(&c.err));
        child_release(&c);
    }
}

// Their number is reported at once, and the places where they may be.
static void prompts_too_long(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "short", "--set", "max_position_embeddings=16");
    child_release(&c);
    folder_write(*state, "long.txt",
                 "one\na prompt that is far longer than what it holds\nand another one, which is too\n");
    CHILD_OUTPACE(&c, *state, 2, "plan", "--check", "x.yaml", "--model", "target=short", "--set",
                  "datasets=[{name: own, path: long.txt}]");
    assert_non_null(strstr(
        text_get(&c.err),
        "2 of 3 prompts of 'own' have more tokens than the model's context holds, which is 16, '2' has "));
    assert_non_null(strstr(text_get(&c.err), "'too_long: skip' in the dataset leaves them out"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "plan", "--check", "x.yaml", "--model", "target=short", "--set",
                  "datasets=[{name: own, path: long.txt, limit: 2}]");
    assert_non_null(strstr(text_get(&c.err), "prompt '2' of 'own' has "));
    child_release(&c);
}

static void prompts_left_out(void **state) {
    Child c;
    Text text = {0};
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "middling", "--set", "max_position_embeddings=64");
    child_release(&c);
    for (int i = 0; i < 20; i++) text_puts(&text, "far longer than what it holds ");
    folder_write(*state, "longest.txt", text_get(&text));
    text_puts(&text, "\none\n");
    folder_write(*state, "longer.txt", text_get(&text));
    text_release(&text);
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--model", "target=middling", "--db", "left.db", "--set",
                  "datasets=[{name: own, path: longer.txt, too_long: skip}]");
    assert_non_null(strstr(text_get(&c.err), "left out: 1 of 2 prompts of own, which have more tokens than"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "sql", "SELECT name FROM prompt", "--db", "left.db", "--format", "csv");
    assert_string_equal(text_get(&c.out), "name\r\n2\r\n");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "table", "lookahead-table-3", "--run", "1", "--db", "left.db");
    assert_non_null(strstr(text_get(&c.out), "chosen: left out: 1 of 2 prompts of own"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "plan", "--check", "x.yaml", "--model", "target=middling", "--set",
                  "datasets=[{name: own, path: longest.txt, too_long: skip}]");
    assert_non_null(
        strstr(text_get(&c.err), "all 1 prompts of 'own' have more tokens than a model's context"));
    child_release(&c);
    // A part leaves out the prompts that are too long for the models of other parts: one run has one set.
    static const char *const PARTS[] = {"1/2", "2/2"};
    for (int i = 0; i < 2; i++) {
        CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "parts-left.db", "--shard", PARTS[i], "--set",
                      "models=[{name: a, target: tiny}, {name: b, target: middling}]", "--set",
                      "methods=[jacobi]", "--set",
                      "datasets=[{name: own, path: longer.txt, too_long: skip}]");
        assert_non_null(strstr(text_get(&c.err), "left out: 1 of 2 prompts of own"));
        child_release(&c);
    }
    assert_int_equal(stores_ask(*state, "parts-left.db", "SELECT count(*) FROM run"), 1);
}

// Where a config's models are missing, the error names its smaller scale, if it has one.
static void smaller_scale(void **state) {
    static const char HINT[] = "; or run it at --scale smoke";
    Child c;
    Text text = {0};
    text_printf(&text, "%ssmoke: {models: [{name: tiny, target: tiny}]}\n", CONFIG);
    folder_write(*state, "s.yaml", text_get(&text));
    text_release(&text);
    CHILD_OUTPACE(&c, *state, 2, "plan", "--check", "s.yaml", "--set", "models.tiny.target=nowhere");
    if (!strstr(text_get(&c.err), HINT)) fail_msg("wanted '%s', got '%s'", HINT, text_get(&c.err));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "plan", "--check", "x.yaml", "--set", "models.tiny.target=nowhere");
    assert_null(strstr(text_get(&c.err), HINT));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "plan", "--check", "s.yaml", "--scale", "smoke");
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partial),
        cmocka_unit_test(validate_finds_what_run_refuses),
        cmocka_unit_test(logits_that_are_not_finite),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(prompts_too_long),
        cmocka_unit_test(prompts_left_out),
        cmocka_unit_test(smaller_scale),
    };
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
