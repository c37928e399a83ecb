// Written, read back, found again; sums that equal a scan; errors in one line.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "results/row.h"
#include "results/rows.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"

#include <stdio.h>
#include <string.h>

static int64_t one(Store *s, const char *sql) {
    int64_t out = -1;
    Error e = {0};
    if (!rows_one_int(s, sql, 0, &out, &e) && e.kind != ERROR_NONE) fail_msg("%s: %s", sql, e.text);
    return out;
}

static FilledStore filled(const char *path, int points, int prompts, int passes) {
    FilledStore f;
    Error e = {0};
    if (!filled_open(&f, path, NULL, points, prompts, &e) || !filled_add_all(&f, passes, &e))
        fail_msg("%s", e.text);
    return f;
}

static void counts(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"), 3, 4, 2);
    assert_int_equal(one(f.store, "SELECT count(*) FROM sample"), 3 * 4 * 2);
    assert_int_equal(one(f.store, "SELECT count(*) FROM step"), 3 * 4 * 2 * 10);
    assert_int_equal(one(f.store, "SELECT count(*) FROM divergence"), 2);
    assert_int_equal(one(f.store, "SELECT count(*) FROM step_pass"), 2 * 4 * 2 * 5 * 3); // halved steps only
    assert_true(store_check(f.store, NULL));
    filled_close(&f);
}

// What the sums say and a scan of the steps, by SQL that shares nothing with what wrote them.
static void sums(void **state) {
    static const char *const WRONG[] = {
        "SELECT count(*) FROM sample s WHERE steps != (SELECT count(*) FROM step WHERE sample_id = s.id)",
        "SELECT count(*) FROM sample s WHERE tokens != (SELECT sum(emitted) FROM step WHERE sample_id = "
        "s.id)",
        "SELECT count(*) FROM sample s WHERE rows != (SELECT sum(rows) FROM step WHERE sample_id = s.id)",
        "SELECT count(*) FROM sample s WHERE accepted != (SELECT sum(accepted * steps) FROM sample_accept "
        "WHERE"
        " sample_id = s.id)",
        "SELECT count(*) FROM sample s WHERE filling_steps != (SELECT coalesce(sum(steps), 0) FROM "
        "sample_accept"
        " WHERE sample_id = s.id AND kind = 1)",
        "SELECT count(*) FROM sample_source q WHERE won != (SELECT count(*) FROM step_source t WHERE "
        "t.sample_id ="
        " q.sample_id AND t.source_id = q.source_id AND won)",
        "SELECT count(*) FROM sample_source q WHERE won != (SELECT coalesce(sum(steps), 0) FROM sample_rank "
        "t WHERE"
        " t.sample_id = q.sample_id AND t.source_id = q.source_id)",
        "SELECT count(*) FROM (SELECT sum(won) AS w FROM step_source GROUP BY sample_id, number) WHERE w > 1",
        "SELECT count(*) FROM step_source AS t WHERE won AND length < (SELECT max(length) FROM step_source "
        "AS u"
        " WHERE u.sample_id = t.sample_id AND u.number = t.number)",
        "SELECT (SELECT sum(won) FROM step_source) - count(*) FROM (SELECT max(length) AS most FROM "
        "step_source"
        " GROUP BY sample_id, number) WHERE most > 0",
        "SELECT abs(sum(propose_ns) - (SELECT sum(propose_ns) FROM step)) > 1000 FROM sample",
    };
    FilledStore f = filled(folder_path(*state, "a.db"), 3, 4, 2);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        if (one(f.store, WRONG[i]) != 0)
            fail_msg("%s gave %lld", WRONG[i], (long long)one(f.store, WRONG[i]));
    assert_true(one(f.store, "SELECT sum(won) FROM sample_source") > 0);
    filled_close(&f);
}

// Passes that differ in anything from one of the whole target and its head are kept as they are.
static void unlike_passes(void **state) {
    static const StorePass WHOLE[2] = {{ROLE_TARGET, 0, 4, 5, 9, 1}, {ROLE_TARGET, 4, 4, 2, 9, 1}};
    FilledStore f = filled(folder_path(*state, "a.db"), 1, 1, 0);
    StorePass passes[11][2];
    StoreStep steps[11];
    for (int i = 0; i < 11; i++) {
        memcpy(passes[i], WHOLE, sizeof WHOLE);
        steps[i] = (StoreStep){
            .context = 9, .rows = 5, .emitted = 1, .pool = -1, .passes = passes[i], .pass_count = 2};
    }
    passes[1][0].model = passes[2][1].model = ROLE_DRAFT;
    passes[3][0].a = passes[4][1].a = 1;
    passes[5][0].b = passes[6][1].b = 3;
    passes[7][0].rows = 4;
    passes[8][0].context = 8;
    passes[9][0].count = passes[10][1].count = 2;
    StoreSample x = {
        .point = f.points[0], .prompt = f.prompts[0], .attempt = f.attempt, .steps = steps, .step_count = 11};
    assert_true(store_samples(f.store, &x, 1, NULL));
    assert_int_equal(one(f.store, "SELECT count(*) FROM step_pass"), 20);
    assert_int_equal(one(f.store, "SELECT sum(head_rows) FROM step WHERE number = 0"), 2);
    assert_int_equal(one(f.store, "SELECT count(*) FROM pass"), 22);
    assert_int_equal(one(f.store, "SELECT count(*) FROM pass WHERE b = 3"), 2);
    filled_close(&f);
}

static void resumed(void **state) {
    const char *path = folder_path(*state, "a.db");
    FilledStore f = filled(path, 2, 2, 1);
    int64_t run = f.run, point = f.points[1], prompt = f.prompts[1];
    filled_close(&f);
    f = filled(path, 2, 2, 2);
    assert_true(f.run == run && f.points[1] == point && f.prompts[1] == prompt);
    assert_int_equal(one(f.store, "SELECT count(*) FROM attempt"), 2);
    assert_int_equal(one(f.store, "SELECT count(*) FROM environment"), 1);
    assert_int_equal(one(f.store, "SELECT count(*) FROM sample"), 2 * 2 * 2);
    bool done = true;
    assert_true(store_done(f.store, point, 2, prompt, &done, NULL));
    assert_false(done);
    assert_true(store_done(f.store, point, 1, prompt, &done, NULL));
    assert_true(done);
    filled_close(&f);
}

static void changed_content(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"), 1, 1, 1);
    StoreRun other = {.hash = "other", .kind = "sweep", .name = "filled", .version = "0.1.0"};
    int64_t id;
    bool found = true;
    assert_true(store_run(f.store, &other, &id, &found, NULL));
    assert_true(!found && id != f.run);
    assert_true(store_run_new(f.store, &other, &id, NULL));
    int64_t newest;
    assert_true(store_run(f.store, &other, &newest, &found, NULL));
    assert_true(found && newest == id);
    filled_close(&f);
}

static void output_comes_back(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"), 1, 2, 1);
    size_t bytes;
    Rows *r = rows_ask(f.store,
                       "SELECT ids FROM sample JOIN output ON output.id = output_id"
                       " WHERE point_id = ?1 AND pass = 0 AND prompt_id = ?2",
                       f.points[0], NULL);
    rows_bind_int(r, 2, f.prompts[1]);
    assert_true(rows_next(r));
    const int *ids = rows_blob(r, 0, &bytes);
    assert_int_equal(bytes, 10 * sizeof *ids);
    for (int i = 0; i < 10; i++) assert_int_equal(ids[i], i * 7 + 1);
    assert_true(rows_end(r, true, NULL));
    filled_close(&f);
}

// Head and commit belong to samples whose steps have a device's time; elsewhere they are NULL, as it is.
static void a_device_in_parts(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"), 3, 2, 1);
    assert_int_equal(one(f.store,
                         "SELECT count(*) FROM sample JOIN point ON point.id = point_id WHERE number ="
                         " 3 AND device_ns > device_head_ns AND device_head_ns > device_commit_ns"
                         " AND device_commit_ns > 0"),
                     2);
    assert_int_equal(one(f.store, "SELECT count(*) FROM sample WHERE device_ns IS NULL AND device_head_ns IS"
                                  " NULL AND device_commit_ns IS NULL"),
                     4);
    filled_close(&f);
}

static void values_keep_their_type(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"), 2, 1, 0);
    assert_int_equal(one(f.store, "SELECT count(*) FROM point_param WHERE name = 'k' AND value = 1"), 1);
    assert_int_equal(
        one(f.store, "SELECT typeof(value) = 'real' FROM point_param WHERE name = 'temperature'"), 1);
    assert_int_equal(one(f.store, "SELECT typeof(value) = 'text' FROM point_param WHERE name = 'device'"), 1);
    filled_close(&f);
}

static void twice_is_refused(void **state) {
    Error e = {0};
    FilledStore f = filled(folder_path(*state, "a.db"), 1, 2, 1);
    StoreSample both[2] = {{.point = f.points[0], .prompt = f.prompts[0], .attempt = f.attempt, .pass = 1},
                           {.point = f.points[0], .prompt = f.prompts[0], .attempt = f.attempt, .pass = 0}};
    assert_false(store_samples(f.store, both, 2, &e));
    assert_non_null(strstr(e.text, "is there already"));
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_int_equal(one(f.store, "SELECT count(*) FROM sample"), 2); // nor the first of them
    filled_close(&f);
}

static void estimates_go_with_new_samples(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"), 3, 1, 1);
    StoreEstimate x = {.metric = "S", .value = 1.5, .low = 1, .high = 2, .deviation = 0.1, .resamples = 1000};
    for (int i = 0; i < 3; i++) assert_true(store_estimate(f.store, f.points[i], &x, NULL));
    assert_true(filled_add(&f, 1, 1, 0, NULL));
    assert_int_equal(one(f.store, "SELECT count(*) FROM estimate"), 2);
    assert_true(filled_add(&f, 0, 1, 0, NULL)); // the baseline of all
    assert_int_equal(one(f.store, "SELECT count(*) FROM estimate"), 0);
    filled_close(&f);
}

// A fit made again is the same row. Of other points it is a new one, and the older one says that it is of
// others: also as soon as a sample comes.
static void fits_are_of_their_points(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"), 3, 2, 1);
    Error e = {0};
    StoreGarbage g;
    char ids[64];
    bool added = false;
    StoreFit fit = {.hash = "1",
                    .points = "p",
                    .point_ids = ids,
                    .title = "tiny, chat",
                    .law = "paper",
                    .bonus = "kept",
                    .output = 64,
                    .estimator = "least_squares",
                    .fitted = 2,
                    .prompts = 2,
                    .resamples = 100,
                    .version = "0",
                    .estimates = {{"least_squares", 0.4, 0.3, 0.5, 2, 1, 3, 0.1, 2, 0.5, "prompts"},
                                  {"likelihood", 0.5, (double)NAN, (double)NAN, 2, (double)NAN, (double)NAN,
                                   0.2, 3, 0.1, NULL}},
                    .estimate_count = 2};
    snprintf(ids, sizeof ids, "[%lld,%lld]", (long long)f.points[1], (long long)f.points[2]);
    assert_true(store_fit(f.store, f.run, &fit, &added, &e) && added);
    assert_true(store_fit(f.store, f.run, &fit, &added, &e) && !added);
    assert_int_equal(one(f.store,
                         "SELECT count(*) FROM fitted WHERE alpha = 0.4 AND f_high = 3 AND output = 64"
                         " AND NOT other_points"),
                     1);
    assert_int_equal(
        one(f.store, "SELECT (SELECT count(*) FROM fit_point) * 10 + count(*) FROM fit_estimate"), 22);
    assert_true(filled_add(&f, 0, 1, 0, NULL)); // of a point that it is not of
    assert_int_equal(one(f.store, "SELECT other_points FROM fitted"), 0);
    assert_true(filled_add(&f, 1, 1, 0, NULL));
    assert_int_equal(one(f.store, "SELECT other_points FROM fitted"), 1);
    fit.hash = "2", fit.points = "q";
    assert_true(store_fit(f.store, f.run, &fit, &added, &e) && added);
    assert_int_equal(one(f.store, "SELECT count(*) * 10 + sum(other_points) FROM fitted"), 21);
    fit.hash = "3", fit.points = "r"; // a point more, and no sample more of the others
    snprintf(ids, sizeof ids, "[%lld]", (long long)f.points[1]);
    assert_true(store_fit(f.store, f.run, &fit, &added, &e) && added);
    assert_int_equal(one(f.store, "SELECT count(*) * 10 + sum(other_points) FROM fitted"), 32);
    assert_true(store_gc(f.store, &f.run, 1, &g, &e));
    assert_int_equal(one(f.store,
                         "SELECT (SELECT count(*) FROM fit) + (SELECT count(*) FROM fit_point) + count(*)"
                         " FROM fit_estimate"),
                     0);
    assert_true(store_check(f.store, &e));
    filled_close(&f);
}

// A store's bytes are those of its log, too, where it still has one.
static void garbage_is_counted_with_the_log(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"), 3, 8, 2);
    StoreGarbage g;
    Error e = {0};
    assert_true(store_gc(f.store, NULL, 0, &g, &e));
    assert_true(g.bytes_after > 0 && g.bytes_before >= g.bytes_after);
    filled_close(&f);
}

// Whether the word is in a list "a, b".
static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at++)
        if ((at == list || at[-1] == ' ') && (at[n] == ',' || !at[n])) return true;
    return false;
}

static bool has_column(const StoreRow *r, const char *column) {
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->columns[i].name, column) == 0) return true;
    return false;
}

static bool is_described(const char *table, const char *column) {
    bool found = false;
    for (const StoreRow *r = store_rows; r < store_rows + ROW_KINDS && !found; r++)
        found = strcmp(r->table, table) == 0 && (has_word(r->keys, column) || has_column(r, column));
    return found;
}

// Whether row.c describes all columns of the store's tables, and no others.
static bool rows_fit(Store *s) {
    bool ok = true;
    for (const StoreRow *r = store_rows; r < store_rows + ROW_KINDS; r++) {
        int described = 0;
        // An id and a column with a default have values of their own.
        LOCAL_MEMORY char *sql = mem_printf(
            "SELECT name, name = 'id' OR dflt_value IS NOT NULL FROM pragma_table_info('%s')", r->table);
        Rows *rows = rows_open(s, sql, NULL);
        while (rows_next(rows)) {
            described += has_column(r, rows_text(rows, 0));
            ok = ok && (rows_int(rows, 1) || is_described(r->table, rows_text(rows, 0)));
        }
        if (rows_end(rows, true, NULL)) ok = ok && described == r->count;
    }
    return ok;
}

// row.c and schema.sql have the same columns, and a difference either way is noticed.
static void rows_describe_all_columns(void **state) {
    static const char *const CHANGES[] = {"ALTER TABLE sample ADD COLUMN oddness INTEGER",
                                          "ALTER TABLE sample DROP COLUMN oddness",
                                          "ALTER TABLE surface DROP COLUMN drift"};
    Error e = {0};
    Store *s = store_open(folder_path(*state, "a.db"), STORE_TRIAL, NULL, &e);
    if (!s) fail_msg("%s", e.text);
    assert_true(rows_fit(s));
    assert_true(sql_script(s, "DROP VIEW heat; DROP VIEW drifted; DROP VIEW surface_doubt", &e));
    for (int i = 0; i < 3; i++) {
        if (!sql_script(s, CHANGES[i], &e)) fail_msg("%s: %s", CHANGES[i], e.text);
        if (rows_fit(s) != (i == 1)) fail_msg("%s: wanted %d, got %d", CHANGES[i], i == 1, i != 1);
    }
    store_close(s);
}

// A sum is unknown if a part is.
static void unknown_parts_of_sums(void **state) {
    FilledStore f = filled(folder_path(*state, "a.db"), 1, 1, 0);
    StoreStep steps[2];
    for (int i = 0; i < 2; i++) {
        row_unknown(ROW_STEP, &steps[i]);
        steps[i].kind = i ? STORE_STEADY : STORE_FILLING;
        steps[i].rows = 5 + i;
        steps[i].accepted = 1;
        steps[i].emitted = 2;
        steps[i].forward_s = 0.5;
        steps[i].verify_s = i ? -1 : 0.5;
        steps[i].passes = NULL;
        steps[i].sources = NULL;
        steps[i].pass_count = steps[i].source_count = steps[i].sequences = steps[i].match_bytes = 0;
        steps[i].rejected_count = 0;
        steps[i].matches = NULL;
    }
    StoreSample x = {.point = f.points[0],
                     .prompt = f.prompts[0],
                     .attempt = f.attempt,
                     .steps = steps,
                     .step_count = 2,
                     .device_head_s = 1};
    assert_true(store_samples(f.store, &x, 1, NULL));
    assert_int_equal(
        one(f.store, "SELECT count(*) FROM sample WHERE (steps, filling_steps, rows, accepted, forward_ns)"
                     " = (2, 1, 11, 2, 1000000000) AND coalesce(drafted, verify_ns, device_ns,"
                     " device_head_ns) IS NULL"),
        1);
    // No steps: nothing was run.
    x.pass = 1;
    x.step_count = 0;
    assert_true(store_samples(f.store, &x, 1, NULL));
    assert_int_equal(one(f.store,
                         "SELECT count(*) FROM sample WHERE pass = 1 AND (steps, rows, drafted, verify_ns)"
                         " = (0, 0, 0, 0) AND coalesce(device_ns, device_head_ns) IS NULL"),
                     1);
    // Only their number is known.
    x.pass = 2;
    x.step_count = 3;
    x.steps = NULL;
    assert_true(store_samples(f.store, &x, 1, NULL));
    assert_int_equal(one(f.store, "SELECT count(*) FROM sample WHERE pass = 2 AND (steps, accepted) = (3, 0)"
                                  " AND coalesce(rows, forward_ns, device_head_ns) IS NULL"),
                     1);
    filled_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_describe_all_columns, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(unknown_parts_of_sums, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(counts, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(sums, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(unlike_passes, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(resumed, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(changed_content, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(output_comes_back, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_device_in_parts, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(values_keep_their_type, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(twice_is_refused, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(estimates_go_with_new_samples, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(fits_are_of_their_points, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(garbage_is_counted_with_the_log, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
