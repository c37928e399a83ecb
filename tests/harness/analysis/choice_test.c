// A part of a run chosen by names: every command's view of it, the baselines it still divides by, and
// messages for unknown names.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "harness/analysis/choice.h"
#include "results/rows.h"
#include "results/sql.h"
#include "tests/support/child.h"
#include "tests/support/plot_store.h"

#include <stdio.h>
#include <string.h>

// sql: the test's changes.
static Store *make(const char *folder, const char *sql) {
    Error e = {0};
    const char *path = folder_path(folder, "a.db");
    if (!file_exists(path)) {
        plot_store_make(path, 0);
        Store *new = store_open(path, STORE_WRITE, NULL, &e);
        if (!new || !sql_script(new, sql, &e)) fail_msg("%s", e.text);
        store_close(new);
    }
    Store *store = store_open(path, STORE_READ, NULL, &e);
    if (!store) fail_msg("%s", e.text);
    return store;
}

static int64_t count(Store *store, const char *sql) {
    int64_t n;
    Error e = {0};
    if (!rows_one_int(store, sql, PLOT_SWEEP, &n, &e)) fail_msg("%s", e.text);
    return n;
}

static void expect(const char *folder, const Choice *c, const char *condition) {
    char plain[256];
    Error e = {0};
    Store *store = make(folder, "");
    snprintf(plain, sizeof plain, "SELECT count(*) FROM result WHERE run_id = ?1 AND %s", condition);
    int64_t want = count(store, plain);
    assert_true(want > 0);
    if (!choice_apply(c, store, PLOT_SWEEP, &e)) fail_msg("%s", e.text);
    assert_int_equal(count(store, "SELECT count(*) FROM point WHERE run_id = ?1"), want);
    assert_int_equal(count(store, "SELECT count(*) FROM result WHERE run_id = ?1"), want);
    assert_int_equal(count(store, plain), want);
    store_close(store);
}

#define ONE(...) \
    { .items = {__VA_ARGS__}, .count = sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *) }

static void names(void **state) {
    expect(*state, &(Choice){.method = ONE("lookahead")}, "method = 'lookahead'");
    expect(*state, &(Choice){.method = ONE("lookahead,kangaroo")}, "method IN ('lookahead', 'kangaroo')");
    expect(*state, &(Choice){.method = ONE("lookahead", "jacobi")}, "method IN ('lookahead', 'jacobi')");
    expect(*state, &(Choice){.dataset = ONE("chat"), .method = ONE("k*")},
           "dataset = 'chat' AND method = 'kangaroo'");
    expect(*state, &(Choice){.label = ONE("lookahead W=1? N=3*")}, "label GLOB 'lookahead W=1? N=3*'");
    expect(*state, &(Choice){.dataset = ONE(PLOT_AWKWARD)}, "dataset <> 'chat'");
    expect(*state, &(Choice){.model = ONE("small")}, "1");
}

// A speedup is the same where its baseline is not shown.
static void baseline_is_found(void **state) {
    static const char SPEEDUP[] =
        "SELECT cast(1e6 * sum(speedup) AS int) FROM result WHERE run_id = ?1 AND method = 'kangaroo'";
    Error e = {0};
    Store *store = make(*state, "");
    int64_t want = count(store, SPEEDUP);
    assert_true(want > 0);
    if (!choice_apply(&(Choice){.method = ONE("kangaroo")}, store, PLOT_SWEEP, &e)) fail_msg("%s", e.text);
    assert_int_equal(count(store, SPEEDUP), want);
    store_close(store);
}

// Views are made aside where those of the file are another program's.
static void views_of_another(void **state) {
    Error e = {0};
    Store *store =
        make(*state, "DROP VIEW heat; CREATE VIEW heat AS SELECT 1 AS x; UPDATE made SET hash = 1;");
    if (!choice_apply(&(Choice){.method = ONE("kangaroo")}, store, PLOT_SWEEP, &e)) fail_msg("%s", e.text);
    assert_int_equal(count(store, "SELECT count(*) FROM result WHERE run_id = ?1 AND method <> 'kangaroo'"),
                     0);
    store_close(store);
}

static void refused(const char *folder, const Choice *c, int64_t run, const char *want) {
    Error e = {0};
    Store *store = make(folder, "");
    assert_false(choice_apply(c, store, run, &e));
    if (!strstr(e.text, want)) fail_msg("wanted '%s', got '%s'", want, e.text);
    assert_int_equal(e.kind, ERROR_INPUT);
    store_close(store);
}

static void unknown_names(void **state) {
    refused(*state, &(Choice){.method = ONE("lookahed")}, PLOT_SWEEP,
            "run 1 has no method 'lookahed'; did you mean 'lookahead'? It has 'autoregressive', 'jacobi', ");
    refused(*state, &(Choice){.model = ONE("q")}, PLOT_SWEEP, "run 1 has no model 'q'; it has 'small'");
    refused(*state, &(Choice){.label = ONE("none like this")}, PLOT_SWEEP, " more");
    refused(*state, &(Choice){.method = ONE("jacobi,")}, PLOT_SWEEP,
            "must be names with commas between them");
    refused(*state, &(Choice){.method = ONE("jacobi"), .label = ONE("kangaroo*")}, PLOT_SWEEP,
            "but no point with all of them");
    refused(*state, &(Choice){.method = ONE("jacobi")}, PLOT_SURFACE,
            "run 2 has no methods: it measured steps of given shapes");
}

static void holds(const Text *text, const char *want, bool wanted) {
    if ((strstr(text_get(text), want) != NULL) != wanted)
        fail_msg("%s '%s' in %s", wanted ? "wanted" : "did not want", want, text_get(text));
}

static void by_command(void **state) {
    static const char *const COMMANDS[][3] = {
        {"show", "1", "--json"}, {"show", "1", "--tasks"}, {"store", "export", "1"}};
    Child c;
    store_close(make(*state, "UPDATE prompt SET task = number % 2"));
    for (int i = 0; i < 3; i++) {
        const char *const *command = COMMANDS[i];
        CHILD_OUTPACE(&c, *state, 0, command[0], command[1], command[2], "--db", "a.db", "--method",
                      "kangaroo,jacobi");
        holds(&c.out, "kangaroo", true);
        holds(&c.out, "jacobi", true);
        holds(&c.out, "lookahead", false);
        child_release(&c);
    }
    CHILD_OUTPACE(&c, *state, 0, "fit", "1", "--db", "a.db", "--dataset", "chat", "--tsv");
    holds(&c.out, "small, chat", true);
    holds(&c.out, "script", false);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "report", "--run", "1", "--db", "a.db", "--dataset", "chat", "-o", "r.md");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "show", "2", "--db", "a.db", "--model", "sm*");
    holds(&c.out, "step", true);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "compare", "1", "1", "--db", "a.db", "--model", "large");
    holds(&c.err, "has no model 'large'", true);
    child_release(&c);
}

// Series that don't fit a figure are named, with the fix.
static void left_out_is_told(void **state) {
    Child c;
    store_close(make(*state, "UPDATE point SET temperature = 0.01 * number WHERE run_id = 1"));
    CHILD_OUTPACE(&c, *state, 0, "plot", "speedup", "--run", "1", "--db", "a.db");
    holds(&c.err, "speedup: 12 of 44 panels are drawn, without 'small, ", true);
    holds(&c.err, "; --model, --dataset, --method and --label choose which\n", true);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "plot", "speedup", "--run", "1", "--db", "a.db", "--label", "jacobi*");
    assert_string_equal(text_get(&c.err), "");
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(baseline_is_found, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(views_of_another, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(unknown_names, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(by_command, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(left_out_is_told, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
