// outpace table: the items, one of them, the claims, and an experiment's runs in the store.
#include "tests/support/check.h"

#include "harness/papers/catalogue.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <string.h>

static const char CONFIG[] = "name: ouroboros-table-3\nmodels: [tiny]\ndatasets: [{name: code, limit: 9}]\n"
                             "hardware: {device: 'null'}\nmethods: [{name: jacobi, matrix: {m: [2, 4]}}]\n"
                             "smoke: {datasets: {code: {limit: 1}}, generation: {max_tokens: 4}}\n";

static int lines(const char *text) {
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static void items(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "table");
    const char *out = text_get(&c.out);
    assert_int_equal(lines(out), 1 + CATALOGUE_ITEMS + 2); // the head, and how to go on
    assert_non_null(strstr(out, "\nmistral-window "));
    assert_null(strstr(out, "(null)"));
    child_release(&c);
}

static void one_item(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "table", "lookahead-figure-4b", "--about");
    const char *out = text_get(&c.out);
    assert_non_null(strstr(out, "outpace run configs/lookahead-figure-4.yaml --scale smoke\n"));
    assert_non_null(strstr(out, "outpace fit lookahead-figure-4, then outpace table lookahead-figure-4b\n"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "table", "mistral-cache", "--about");
    assert_non_null(strstr(text_get(&c.out), "outpace bench --store models/mistral-7b"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "table", "lookahead-figure-4c", "--about");
    assert_non_null(strstr(text_get(&c.err), "did you mean 'lookahead-figure-4"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "table", "--claims", "mistral-cache");
    child_release(&c);
}

static void claims(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "table", "--claims");
    const char *out = text_get(&c.out);
    assert_true(lines(out) > 120 && lines(out) % 3 == 2); // a blank line and the sums behind them
    assert_true(strstr(out, "\nnot run ") && strstr(out, "\nholds ") && strstr(out, " measured: "));
    assert_true(strstr(out, " simulated: ") && strstr(out, "           no query: needs four V100"));
    assert_non_null(strstr(out, "\n\n6 hold, 0 do not, 0 are undecided, 4"));
    child_release(&c);
}

// What is chosen stands there where the config is; what was run, where the store has it.
static void what_is_here(void **state) {
    const char *f = *state;
    Child c;
    CHILD_OUTPACE(&c, f, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    scratch_write(f, "own.yaml", CONFIG, strlen(CONFIG));
    CHILD_OUTPACE(&c, f, 0, "run", "own.yaml", "--scale", "smoke", "--db", "s.db");
    child_release(&c);
    CHILD_OUTPACE(&c, f, 0, "table", "ouroboros-table-3", "--about", "--db", "s.db");
    assert_non_null(strstr(text_get(&c.out), "run 1, smoke, 20"));
    assert_non_null(strstr(text_get(&c.out), ", done, "));
    child_release(&c);
    CHILD_OUTPACE(&c, f, 0, "run", "last", "--db", "s.db"); // at the scale that it was run at
    assert_non_null(strstr(text_get(&c.out), "2 points measured"));
    child_release(&c);
    CHILD_OUTPACE(&c, f, 0, "run", "own.yaml", "--db", "s.db");
    child_release(&c);
    CHILD_OUTPACE(&c, f, 0, "table", "ouroboros-table-3", "--about", "--db", "s.db");
    assert_non_null(strstr(text_get(&c.out), "run 2, 20"));
    child_release(&c);
    CHILD_OUTPACE(&c, f, 0, "table", "ouroboros-table-3", "--about", "--db", "none.db");
    assert_non_null(strstr(text_get(&c.out), "here       -"));
    child_release(&c);
    CHILD_OUTPACE(&c, NULL, 0, "table", "ouroboros-table-3", "--about");
    assert_non_null(strstr(text_get(&c.out), "chosen "));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(items), cmocka_unit_test(one_item),
                                       cmocka_unit_test(claims), cmocka_unit_test(what_is_here)};
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
