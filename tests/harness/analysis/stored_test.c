// The table of a run against the views, with and without estimates.
#include "tests/support/check.h"

#include "harness/analysis/estimates.h"
#include "harness/analysis/stored.h"
#include "results/rows.h"
#include "results/sql.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static json_t *table_of(FilledStore *f) {
    Error e = {0};
    RecordTable table;
    if (!stored_table(f->store, f->run, &(Records){.json = true}, &table, &e)) fail_msg("%s", e.text);
    return table_list(&table);
}

// The columns of result that the table has too, in its points' order.
static void expect_views(FilledStore *f) {
    static const char *const COLUMNS[] = {"S", "tokens_per_s", "speedup", "speedup_e2e", "speedup_specbench"};
    enum { COUNT = sizeof COLUMNS / sizeof *COLUMNS };
    json_t *list = table_of(f);
    Error e = {0};
    size_t i = 0;
    Rows *r = rows_open(f->store,
                        "SELECT number, S, tokens_per_s, speedup, speedup_e2e, speedup_specbench FROM result"
                        " WHERE run_id = ?1 ORDER BY number",
                        &e);
    if (!r) fail_msg("%s", e.text);
    rows_bind_int(r, 1, f->run);
    for (; rows_next(r); i++)
        for (int k = 0; k < COUNT; k++) {
            double got = json_real_value(json_object_get(json_array_get(list, i), COLUMNS[k]));
            if (!(fabs(got - rows_real(r, k + 1)) <= 1e-9 * fabs(got)))
                fail_msg("point %zu, %s: wanted %.9g, got %.9g", i + 1, COLUMNS[k], rows_real(r, k + 1), got);
        }
    assert_int_equal(i, json_array_size(list));
    assert_true(rows_end(r, true, &e));
    json_decref(list);
}

static void expect(const char *what, double want, double got) {
    if (!(fabs(want - got) <= 1e-9 * fabs(want))) fail_msg("%s: wanted %.9g, got %.9g", what, want, got);
}

static double number(json_t *list, size_t point, const char *key) {
    return json_number_value(json_object_get(json_array_get(list, point), key));
}

static void with_and_without_estimates(void **state) {
    FilledStore f;
    Error e = {0};
    if (!filled_open(&f, folder_path(*state, "a.db"), NULL, 3, 4, &e) || !filled_add_all(&f, 2, &e))
        fail_msg("%s", e.text);
    expect_views(&f);
    StoreEstimate x = {.metric = "speedup", .value = 7, .low = 6, .high = 8, .resamples = 10, .seed = 1};
    assert_true(store_estimate(f.store, f.points[1], &x, &e));
    json_t *list = table_of(&f);
    expect("speedup", 7, number(list, 1, "speedup"));
    expect("its lower end", 6, number(list, 1, "speedup_low"));
    assert_true(json_is_null(json_object_get(json_array_get(list, 2), "speedup_low")));
    json_decref(list);
    filled_close(&f);
}

// The store is opened again for it: if it's gone by then, that's reported, and there is none.
static void store_is_gone(void **state) {
    FilledStore f;
    Error e = {0};
    const char *path = folder_path(*state, "a.db");
    if (!filled_open(&f, path, NULL, 3, 4, &e) || !filled_add_all(&f, 1, &e)) fail_msg("%s", e.text);
    Store *s = store_open(path, STORE_READ, NULL, &e);
    assert_non_null(s);
    filled_close(&f);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(estimates_ensure(&s, f.run, ESTIMATES_OF_POINTS, &e));
    assert_null(s);
    assert_non_null(strstr(e.text, "not a regular file"));
}

// Shares of steps, from the view that counts them in another way.
static void ctar(void **state) {
    FilledStore f;
    Error e = {0};
    if (!filled_open(&f, folder_path(*state, "a.db"), NULL, 3, 4, &e) || !filled_add_all(&f, 1, &e))
        fail_msg("%s", e.text);
    json_t *list = table_of(&f);
    Rows *r = rows_open(f.store,
                        "SELECT number, w, ctar FROM ctar JOIN point ON point.id = point_id"
                        " WHERE w IN (1, 2, 4) AND number > 1",
                        &e);
    if (!r) fail_msg("%s", e.text);
    int compared = 0;
    for (; rows_next(r); compared++) {
        char key[16];
        snprintf(key, sizeof key, "CTAR%lld", (long long)rows_int(r, 1));
        expect(key, rows_real(r, 2), number(list, (size_t)rows_int(r, 0) - 1, key));
    }
    assert_true(compared > 2);
    assert_true(rows_end(r, true, &e));
    json_decref(list);
    filled_close(&f);
}

// Of one task there are no categories.
static void tasks(void **state) {
    FilledStore f;
    RecordTable table;
    Text text = {0};
    Error e = {0};
    if (!filled_open(&f, folder_path(*state, "a.db"), NULL, 3, 4, &e) || !filled_add_all(&f, 1, &e) ||
        !stored_task_table(f.store, f.run, &table, &e))
        fail_msg("%s", e.text);
    grid_print(&table.grid, 0, &text);
    grid_release(&table.grid);
    const char *qa = strstr(text_get(&text), "\nqa "), *writing = strstr(text_get(&text), "\nwriting ");
    if (strncmp(text_get(&text), "\nsmall, chat\ncategory ", 21) != 0 || !qa || !writing || writing < qa)
        fail_msg("%s", text_get(&text));
    text_release(&text);
    assert_true(sql_script(f.store, "UPDATE prompt SET task = 'qa'", &e));
    assert_false(stored_task_table(f.store, f.run, &table, &e));
    assert_string_equal(e.text, "run 1 has no data of several tasks, so no categories");
    grid_release(&table.grid);
    filled_close(&f);
}

// A category that holds all prompts has the intervals of the whole; a part has its own, around its value.
// They are made where they are missing.
static void task_intervals(void **state) {
    static const char PARTS[] = "UPDATE prompt SET task = 'all/' || task";
    static const char WRONG[] =
        "SELECT count(*) FROM task_matrix AS m JOIN point ON point.number = m.point JOIN estimate AS e ON"
        " e.point_id = point.id AND e.metric = 'S' WHERE m.task = 'all' AND (m.S_low IS NOT e.low OR m.S_high"
        " IS NOT e.high OR abs(m.S - e.value) > 1e-9)";
    static const char PART[] =
        "SELECT count(*) FROM task_matrix WHERE task <> 'all' AND S BETWEEN S_low AND S_high AND S_low <"
        " (SELECT max(S_high) FROM task_matrix) AND coalesce(acceptance >= acceptance_low, 1) AND"
        " coalesce(speedup <= speedup_high, 1)";
    FilledStore f;
    Error e = {0};
    bool missing;
    int64_t count;
    const char *path = folder_path(*state, "a.db");
    if (!filled_open(&f, path, NULL, 3, 16, &e) || !filled_add_all(&f, 2, &e) ||
        !sql_script(f.store, PARTS, &e) || !estimates_make(f.store, f.run, ESTIMATES_OF_TASKS, &e) ||
        !estimates_missing(f.store, f.run, ESTIMATES_OF_TASKS, &missing, &e))
        fail_msg("%s", e.text);
    assert_false(missing);
    assert_true(rows_one_int(f.store, "SELECT count(*) FROM task_matrix", 0, &count, &e));
    assert_int_equal(count, 3 * 3); // points; the category and its two parts
    assert_true(rows_one_int(f.store, WRONG, 0, &count, &e));
    assert_int_equal(count, 0);
    assert_true(rows_one_int(f.store, PART, 0, &count, &e));
    assert_int_equal(count, 3 * 2);
    assert_true(sql_script(f.store, "DELETE FROM estimate WHERE metric GLOB '* of *'", &e));
    assert_true(estimates_missing(f.store, f.run, ESTIMATES_OF_TASKS, &missing, &e));
    assert_true(missing);
    assert_true(estimates_missing(f.store, f.run, ESTIMATES_OF_POINTS, &missing, &e));
    assert_false(missing);
    filled_close(&f);
}

static void holds(const char *text, const char *word) {
    if (!strstr(text, word)) fail_msg("wanted: %s\ngot: %s", word, text);
}

// The table at a width of a terminal, 0 for a file, after a change of the store.
static void table_at(FilledStore *f, const char *change, int width, Text *out) {
    RecordTable table;
    Error e = {0};
    text_clear(out);
    if (!sql_script(f->store, change, &e) || !stored_table(f->store, f->run, NULL, &table, &e))
        fail_msg("%s", e.text);
    grid_print(&table.grid, width, out);
    grid_release(&table.grid);
}

// On 80 columns S has its interval, and the number of prompts is there. What was disturbed is told once, and
// a row has a mark at most.
static void narrow(void **state) {
    static const char HEAD[] =
        "\nsmall, chat: 6 prompts  (stand-in: for 7B)\npoint  method              S  [95%] ",
                      STATE[] = "something disturbed 2 of 36 samples (other processes, or changing clocks); ";
    FilledStore f;
    Text text = {0};
    Error e = {0};
    // Not above S, which would be told, too.
    static const char SLOWER[] = "UPDATE sample SET decode_ns = 3 * decode_ns WHERE point_id > 1";
    if (!filled_open(&f, folder_path(*state, "a.db"), NULL, 3, 12, &e) || !filled_add_all(&f, 1, &e) ||
        !sql_script(f.store, SLOWER, &e) || !estimates_make(f.store, f.run, ESTIMATES_OF_POINTS, &e))
        fail_msg("%s", e.text);
    table_at(&f, "UPDATE sample SET flags = 0", 80, &text);
    holds(text_get(&text), HEAD);
    assert_null(strstr(text_get(&text), "disturbed"));
    table_at(&f, "UPDATE sample SET flags = 8 WHERE id IN (1, 2)", 0, &text);
    holds(text_get(&text), STATE);
    assert_ptr_equal(strstr(text_get(&text), "disturbed"),
                     strstr(text_get(&text), STATE) + strlen("something "));
    assert_null(strchr(text_get(&text), '*'));
    table_at(&f, "UPDATE sample SET flags = 8 WHERE point_id = 2", 80, &text);
    holds(text_get(&text), "; *\nmarks times in doubt; S and texts");
    holds(text_get(&text), HEAD);
    const char *row = strstr(text_get(&text), "\n    2 "), *mark = row ? strchr(row, '*') : NULL;
    if (!mark || mark > strchr(row + 1, '\n')) fail_msg("point 2 has no mark:\n%s", text_get(&text));
    // Where points differ, each has its own number.
    table_at(&f, "DELETE FROM sample WHERE point_id = 2 AND prompt_id > 4", 0, &text);
    holds(text_get(&text), "\nsmall, chat  (stand-in: for 7B)\npoint ");
    holds(text_get(&text), " 2x1 ");
    holds(text_get(&text), " 6x1 ");
    text_release(&text);
    filled_close(&f);
}

// A long label moves the columns of all rows, and of their head, alike: the last of them begins where a word
// does.
static void long_labels(void **state) {
    static const char LONGER[] =
        "UPDATE point SET label = 'a label that is longer than thirty-six letters' WHERE number = 2";
    FilledStore f;
    RecordTable table;
    Text text = {0};
    Error e = {0};
    if (!filled_open(&f, folder_path(*state, "a.db"), NULL, 3, 4, &e) || !filled_add_all(&f, 1, &e) ||
        !sql_script(f.store, LONGER, &e) || !stored_table(f.store, f.run, NULL, &table, &e))
        fail_msg("%s", e.text);
    grid_print(&table.grid, 0, &text);
    grid_release(&table.grid);
    const char *head = strstr(text_get(&text), "point "), *line = head;
    assert_non_null(head);
    size_t last = (size_t)(strstr(head, "same ") - head);
    for (int i = 0; i < 4; i++, line = strchr(line, '\n') + 1)
        if (strcspn(line, "\n") <= last || line[last] == ' ' || strncmp(line + last - 2, "  ", 2) != 0)
            fail_msg("row %d is out of line:\n%s", i, text_get(&text));
    text_release(&text);
    filled_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(narrow, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(long_labels, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(with_and_without_estimates, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(store_is_gone, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(ctar, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(tasks, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(task_intervals, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
