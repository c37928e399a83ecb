// A run of the null model over several devices, by the program: one device is the plain prediction, more cut
// the step.
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static double field(const json_t *o, const char *name) {
    const json_t *x = json_object_get(o, name);
    if (!json_is_number(x)) fail_msg("JSON has no %s", name);
    return json_number_value(x);
}

static void scales(void **state) {
    Child c;
    folder_write(*state, "own.jsonl",
                 "{\"prompt\": \"some text of a file\"}\n{\"prompt\": \"and another text\"}\n");
    folder_write(*state, "x.yaml",
                 "name: x\nmodels: [{name: tiny, target: tiny}]\ndatasets: [{name: own, path: own.jsonl}]\n"
                 "hardware: {device: 'null'}\ngeneration: {max_tokens: 24, ignore_eos: on}\n"
                 "methods: [{name: lookahead, matrix: {W: 100, N: 5, G: 100}}, {name: lookahead, matrix: "
                 "{preset: paper-7b}},"
                 " jacobi]\n");
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "x.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "x", "--db", "x.db", "--on", "a100-40gb", "--shape", "llama2-7b",
                  "--devices", "1,4", "--link", "300,5", "--json");
    json_t *root = json_loads(text_get(&c.out), 0, NULL), *rows = json_object_get(root, "scaling");
    // The preset's W is not known; jacobi has none.
    assert_int_equal(json_array_size(rows), 2);
    const json_t *one = json_array_get(rows, 0), *four = json_array_get(rows, 1);
    double speedup = field(one, "lookahead");
    assert_true(speedup > 0 && fabs(field(one, "tensor") - speedup) < 1e-12 &&
                field(one, "autoregressive_tensor") == 1);
    // 800 tokens a step are bound by computing: four devices cut most of it.
    if (field(four, "lookahead") < 1.5 * speedup)
        fail_msg("four devices: %g, one: %g", field(four, "lookahead"), speedup);
    assert_true(field(four, "pipeline") < speedup && field(four, "autoregressive_pipeline") < 1);
    json_decref(root);
    child_release(&c);
    // Fitted: one token a step over several devices is as slow as given, and lookahead's step has the same
    // cost.
    CHILD_OUTPACE(&c, *state, 0, "simulate", "x", "--db", "x.db", "--on", "a100-40gb", "--shape", "llama2-7b",
                  "--devices", "1,4", "--link", "300,5", "--cut", "0.785", "--json");
    root = json_loads(text_get(&c.out), 0, NULL);
    rows = json_object_get(root, "scaling");
    one = json_array_get(rows, 0), four = json_array_get(rows, 1);
    assert_true(field(root, "cut") == 0.785 && field(one, "autoregressive_tensor") == 1);
    assert_true(fabs(field(four, "autoregressive_tensor") - 0.785) < 1e-9 &&
                fabs(field(four, "autoregressive_pipeline") - 0.785) < 1e-9);
    assert_true(field(four, "tensor") < field(four, "lookahead"));
    json_decref(root);
    child_release(&c);
    // As it would be imported without its baseline: there is no speedup to scale.
    sqlite3 *db;
    assert_int_equal(sqlite3_open(folder_path(*state, "x.db"), &db), SQLITE_OK);
    sqlite3_exec(db, "UPDATE point SET baseline_id = NULL, same_path_id = NULL WHERE method = 'lookahead'",
                 NULL, NULL, NULL);
    sqlite3_close(db);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "x", "--db", "x.db", "--on", "a100-40gb", "--shape", "llama2-7b",
                  "--devices", "1,4", "--link", "300,5", "--json");
    root = json_loads(text_get(&c.out), 0, NULL);
    assert_int_equal(json_array_size(json_object_get(root, "scaling")), 0);
    rows = json_object_get(root, "points");
    assert_int_equal(json_array_size(rows), 4);
    int alone = 0;
    for (size_t i = 0; i < 4; i++) {
        const json_t *point = json_array_get(rows, i);
        assert_true(field(point, "S") >= 1);
        alone += json_is_null(json_object_get(point, "speedup"));
    }
    assert_int_equal(alone, 2);
    json_decref(root);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "x", "--db", "x.db", "--on", "a100-40gb", "--shape", "llama2-7b",
                  "--devices", "1,4", "--link", "300,5");
    assert_null(strstr(text_get(&c.out), "nan"));
    child_release(&c);
}

static void mistakes(void **state) {
    static const char *const ROWS[][4] = {
        {"--devices", "1,2", NULL, "go together"},
        {"--devices", "1,2", "300", "must be GB/s and microseconds"},
        {"--devices", "1,2", "0,5", "must be above 0"},
        {"--devices", "1,2", "300,-1", "must be 0 or more"},
        {"--devices", "0", "300,5", "--devices"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 2, "simulate", "x", "--on", "l4", "--shape", "tiny", ROWS[i][0], ROWS[i][1],
                      ROWS[i][2] ? "--link" : NULL, ROWS[i][2]);
        if (!strstr(text_get(&c.err), ROWS[i][3]))
            fail_msg("row %zu: wanted '%s', got '%s'", i, ROWS[i][3], text_get(&c.err));
        child_release(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(scales, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(mistakes, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
