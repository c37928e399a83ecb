// outpace quality, run as a user would.
#include "tests/support/check.h"

#include "engine/base/json.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tests/support/spoil.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "model", "quantise", "tiny", "four", "--bits", "4");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "larger", "--set", "vocab_size=600");
    child_release(&c);
    scratch_copy(folder_path(*state, "tiny"), folder_path(*state, "mute"));
    spoil_remove(folder_path(*state, "mute"), "tokenizer.json", "");
    folder_write(*state, "own.jsonl",
                 "{\"turns\": [\"a text\"], \"reference\": \"an answer of words\"}\n"
                 "{\"turns\": [\"more\"], \"reference\": \"and more of them\"}\n");
    folder_write(*state, "lines.txt", "one line of text\nanother line\n");
    return 0;
}

static double number_of(const json_t *row, const char *key) {
    const json_t *x = json_object_get(row, key);
    if (!json_is_number(x)) fail_msg("no number '%s'", key);
    return json_number_value(x);
}

// Takes the child's output.
static json_t *rows_of(Child *c) {
    Error e = {0};
    json_t *rows = json_from_bytes(text_get(&c->out), c->out.length, "stdout", &e);
    if (!json_is_array(rows)) fail_msg("%s", e.text);
    child_release(c);
    return rows;
}

// A random model's loss is about ln of the vocabulary; the sets' sums make the last row.
static void numbers(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "quality", "four", "--against", "tiny", "--path", "own.jsonl", "--path",
                  "lines.txt", "--greedy", "8", "--json");
    json_t *rows = rows_of(&c);
    assert_int_equal(json_array_size(rows), 3);
    const json_t *a = json_array_get(rows, 0), *b = json_array_get(rows, 1), *all = json_array_get(rows, 2);
    assert_string_equal(json_string_value(json_object_get(all, "text")), "all");
    double tokens = number_of(a, "tokens") + number_of(b, "tokens");
    assert_true(tokens == number_of(all, "tokens") && number_of(all, "texts") == 4); // NOLINT: counts
    double loss =
        number_of(a, "loss") * number_of(a, "tokens") + number_of(b, "loss") * number_of(b, "tokens");
    assert_true(fabs(loss / tokens - number_of(all, "loss")) < 1e-9);
    assert_true(fabs(exp(number_of(a, "loss")) - number_of(a, "perplexity")) <
                1e-6 * number_of(a, "perplexity"));
    assert_true(number_of(all, "loss") > 4 && number_of(all, "loss") < 12);
    assert_true(fabs(number_of(all, "loss") - number_of(all, "original_loss")) < 0.5);
    assert_true(number_of(all, "divergence") > 0 && number_of(all, "divergence") < 0.5);
    assert_true(number_of(all, "greedy") > 0 && number_of(all, "greedy_same") <= 1);
    assert_true(number_of(all, "greedy_unbroken") <= number_of(all, "greedy_same"));
    json_decref(rows);
}

static void alone(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "quality", "tiny", "--path", "own.jsonl", "--limit", "1", "--json");
    json_t *rows = rows_of(&c);
    assert_int_equal(json_array_size(rows), 1);
    assert_true(number_of(json_array_get(rows, 0), "texts") == 1); // NOLINT: a count
    assert_null(json_object_get(json_array_get(rows, 0), "original_loss"));
    json_decref(rows);
}

// The same model twice: bf16 is equal, activations of 8 bits are close.
static void eight_bits(void **state) {
    static const char *const computes[] = {"bf16", "int8"};
    for (int i = 0; i < 2; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 0, "quality", "four", "--against", "four", "--path", "own.jsonl",
                      "--greedy", "8", "--compute", computes[i], "--json");
        json_t *rows = rows_of(&c);
        double divergence = number_of(json_array_get(rows, 0), "divergence");
        if (i ? !(divergence > 0 && divergence < 0.05) : !(divergence <= 0))
            fail_msg("%s: divergence %g", computes[i], divergence);
        json_decref(rows);
    }
}

static void refusals(void **state) {
    static const struct {
        const char *words[8], *want;
    } rows[] = {
        {{"tiny"}, "--dataset NAME or --path FILE"},
        {{"mute", "--path", "own.jsonl"}, "'mute' has no tokenizer"},
        {{"tiny", "--against", "larger", "--path", "own.jsonl"}, "vocabularies of 512 and 600"},
        {{"tiny", "--dataset", "chatt"}, "chatt"},
        {{"tiny", "--compute", "int8", "--path", "own.jsonl"}, "this model has none"},
        {{"tiny", "--against", "nothing", "--path", "own.jsonl"}, "'nothing'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Child c;
        const char *const *w = rows[i].words;
        CHILD_OUTPACE(&c, *state, 2, "quality", w[0], w[1], w[2], w[3], w[4]);
        if (!strstr(text_get(&c.err), rows[i].want))
            fail_msg("'%s' lacks '%s'", text_get(&c.err), rows[i].want);
        child_release(&c);
    }
}

static void table(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "quality", "four", "--against", "tiny", "--path", "own.jsonl");
    if (!strstr(text_get(&c.out), "model     four: Q4, stand-in: random weights, shape tiny, "
                                  "quantised: 4 bits, groups of 32, of tiny (") ||
        !strstr(text_get(&c.out), "original  tiny: BF16"))
        fail_msg("%s", text_get(&c.out));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers), cmocka_unit_test(alone),
                                       cmocka_unit_test(eight_bits), cmocka_unit_test(refusals),
                                       cmocka_unit_test(table)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
