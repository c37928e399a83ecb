// A replay in the store, by the program: its samples and steps are the replay's own, it can be priced on
// another machine, and what is refused leaves nothing.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "tests/support/child.h"

#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 12, ANSWER = 60 };

// Rows of text that repeats itself with errors, and of what some draft had accepted.
static void write_tokens(const char *folder, const char *name, int seed) {
    Random random = test_random((uint64_t)seed);
    Text t = {0};
    for (int row = 0; row < ROWS; row++) {
        int length = row == 3 ? ANSWER + 1 : ANSWER; // of the list
        text_printf(&t,
                    "{\"id\": %d, \"prompt_token_ids\": [1, 2, 3, 4, 5, 6, 1, 2], \"generated_token_ids\": [",
                    row);
        for (int i = 0; i < ANSWER; i++)
            text_printf(&t, "%s%d", i ? ", " : "", test_between(&random, 0, 9) < 8 ? 1 + (i + 2) % 6 : 9);
        text_puts(&t, "], \"acc_eagle\": {\"acc_len\": [");
        for (int i = 0; i < length; i++) text_printf(&t, "%s%d", i ? ", " : "", test_between(&random, 1, 4));
        text_puts(&t, "]}}\n");
    }
    if (!file_write(folder_path(folder, name), text_get(&t), t.length, NULL)) fail_msg("cannot write");
    text_release(&t);
}

static double ask(const char *folder, const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open(folder_path(folder, "x.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    double x = sqlite3_column_double(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return x;
}

static double field(const json_t *o, const char *name) {
    const json_t *x = json_object_get(o, name);
    if (!json_is_number(x)) fail_msg("JSON has no %s", name);
    return json_number_value(x);
}

// S of every point as it was printed, and the price of no fewer rows than were run.
static void in_store(void **state) {
    Child c;
    Error e = {0};
    write_tokens(*state, "a.jsonl", 1);
    write_tokens(*state, "b.jsonl", 2);
    CHILD_OUTPACE(&c, *state, 0, "replay", "--tokens", "a.jsonl", "--tokens", "b.jsonl", "--model", "m",
                  "--db", "x.db", "--method", "prompt-lookup:draft=4", "--method", "suffix:warm=on",
                  "--json");
    const char *at = text_get(&c.out);
    for (int set = 0; set < 2; set++, at = strchr(at, '\n') + 1) {
        json_t *root = json_from_bytes(at, strcspn(at, "\n"), "out", &e);
        if (!root) fail_msg("%s", e.text);
        const json_t *methods = json_object_get(root, "methods");
        assert_int_equal(json_array_size(methods), 3);
        for (size_t m = 0; m < 3; m++) {
            char sql[128];
            snprintf(sql, sizeof sql, "SELECT S FROM result WHERE number = %zu", (size_t)set * 3 + m + 1);
            double S = field(json_array_get(methods, m), "S"), kept = ask(*state, sql);
            if (fabs(S - kept) > 1e-9) fail_msg("set %d, method %zu: S %g, in the store %g", set, m, S, kept);
            assert_true(m > 0 ? S > 1.2 : S == 1);
        }
        json_decref(root);
    }
    child_release(&c);
    assert_true(ask(*state, "SELECT count(*) FROM sample") == 2 * 3 * ROWS);
    assert_true(ask(*state, "SELECT sum(emitted) FROM step") == 2 * 3 * ROWS * ANSWER);
    assert_true(ask(*state, "SELECT count(*) FROM sample WHERE decode_ns <> 0 OR prefill_ns IS NOT NULL") ==
                0);
    assert_true(ask(*state, "SELECT count(*) FROM step WHERE forward_ns IS NOT NULL") == 0);
    assert_true(ask(*state, "SELECT count(*) FROM estimate WHERE metric = 'speedup'") == 0);
    CHILD_OUTPACE(&c, *state, 2, "replay", "--tokens", "a.jsonl", "--tokens", "b.jsonl", "--model", "m",
                  "--db", "x.db", "--method", "prompt-lookup:draft=4", "--method", "suffix:warm=on");
    assert_non_null(strstr(text_get(&c.err), "are in 'x.db' already, as run 1"));
    child_release(&c);
}

// A step of several rows costs at least a step of one: speedups lie between 1 and S.
static void priced(void **state) {
    Child c;
    write_tokens(*state, "a.jsonl", 1);
    CHILD_OUTPACE(&c, *state, 0, "replay", "--tokens", "a.jsonl", "--db", "x.db", "--method",
                  "prompt-lookup");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "replay", "--db", "x.db", "--on", "h100", "--shape", "llama3-8b",
                  "--json");
    json_t *root = json_loads(text_get(&c.out), 0, NULL), *points = json_object_get(root, "points");
    const json_t *p = json_array_get(points, 1);
    assert_int_equal(json_array_size(points), 2);
    double speedup = field(p, "speedup");
    if (!(speedup > 1 && speedup < 1.02 * field(p, "S")))
        fail_msg("speedup %g, S %g", speedup, field(p, "S"));
    json_decref(root);
    child_release(&c);
}

// Row 3's list is longer than its text.
static void acceptance(void **state) {
    Child c;
    write_tokens(*state, "a.jsonl", 1);
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "acceptance", "a.jsonl", "--list", "acc_eagle",
                  "--drafts", "1,3", "--db", "x.db");
    assert_non_null(strstr(text_get(&c.out), "; 1 rows left out"));
    child_release(&c);
    assert_true(ask(*state, "SELECT count(*) FROM sample") == 3 * (ROWS - 1));
    assert_true(
        ask(*state,
            "SELECT max(step.accepted) FROM step JOIN sample ON sample.id = sample_id WHERE point_id = 2") ==
        1);
    assert_true(
        ask(*state,
            "SELECT max(step.accepted) FROM step JOIN sample ON sample.id = sample_id WHERE point_id = 3") ==
        3);
    assert_true(ask(*state, "SELECT sum(count) FROM step_pass JOIN sample ON sample.id = sample_id"
                            " WHERE point_id = 3 AND model = 1 AND a = 0") ==
                3 * ask(*state, "SELECT sum(steps) FROM sample WHERE point_id = 3"));
    CHILD_OUTPACE(&c, *state, 2, "store", "import", "acceptance", "a.jsonl", "--db", "y.db");
    assert_non_null(strstr(text_get(&c.err), "'a.jsonl', line 1: field 'acc_ngram' must be a list"));
    assert_false(file_exists(folder_path(*state, "y.db")));
    child_release(&c);
}

static void refused(void **state) {
    Child c;
    write_tokens(*state, "a.jsonl", 1);
    assert_true(file_write(folder_path(*state, "bad.jsonl"), "{}\n", 3, NULL));
    CHILD_OUTPACE(&c, *state, 2, "replay", "--tokens", "a.jsonl", "--tokens", "bad.jsonl", "--db", "x.db");
    assert_non_null(strstr(text_get(&c.err), "bad.jsonl"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "replay", "--tokens", "a.jsonl", "--db", "x.db", "--method", "prompt-lookup",
                  "--method", "lookahead");
    assert_non_null(strstr(text_get(&c.err), "method 'lookahead': it reads the model's outputs"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "store", "import", "acceptance", "a.jsonl", "--list", "acc_eagle",
                  "--drafts", "1,0", "--db", "x.db");
    child_release(&c);
    assert_false(file_exists(folder_path(*state, "x.db")));
    CHILD_OUTPACE(&c, *state, 2, "replay", "--tokens", "a.jsonl", "--method", "suffix", "--method", "jacobi");
    assert_string_equal(text_get(&c.out), "");
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(in_store, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(priced, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(acceptance, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refused, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
