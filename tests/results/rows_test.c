// Rows end well only if all of them could be read, and if their reader agrees.
#include "tests/support/check.h"

#include "results/rows.h"
#include "tests/support/folder.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static Store *store_of(void **state) {
    Error e = {0};
    Store *s = store_open(folder_path(*state, "a.db"), STORE_WRITE, NULL, &e);
    if (!s) fail_msg("%s", e.text);
    return s;
}

static void read_to_the_end(void **state) {
    Store *s = store_of(state);
    Error e = {0};
    Rows *r = rows_open(s, "SELECT value FROM json_each('[3, 5]')", &e);
    assert_true(r && rows_next(r));
    assert_int_equal(rows_int(r, 0), 3);
    assert_true(rows_next(r));
    assert_int_equal(rows_int(r, 0), 5);
    assert_false(rows_next(r) || rows_next(r));
    assert_true(rows_end(r, true, &e));
    store_close(s);
}

// SQLite meets an overflow in the second row only, when the first has been given.
static void fails_on_the_way(void **state) {
    Store *s = store_of(state);
    Error e = {0};
    Rows *r = rows_open(s, "SELECT abs(value) FROM json_each('[3, -9223372036854775808]')", &e);
    assert_true(r && rows_next(r));
    assert_false(rows_next(r) || rows_next(r));
    assert_false(rows_end(r, true, &e));
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_non_null(strstr(e.text, "overflow"));
    store_close(s);
}

static void its_reader_gives_up(void **state) {
    Store *s = store_of(state);
    Error e = {0};
    Rows *r = rows_open(s, "SELECT 1", &e);
    assert_true(r && rows_next(r));
    error_input(&e, "enough");
    assert_false(rows_end(r, false, &e));
    assert_string_equal(e.text, "enough");
    assert_null(rows_open(s, "DELETE FROM run", &e));
    assert_null(rows_open(s, "ATTACH 'b.db' AS b", &e)); // SQLite says that it only reads
    assert_non_null(strstr(e.text, "the query gives no rows"));
    assert_false(rows_end(NULL, true, NULL));
    store_close(s);
}

// In a process of its own: SQLite's limit is one of the process.
static void a_greedy_query(void **state) {
    static const struct {
        const char *sql, *want;
    } ROWS[] = {
        {"SELECT zeroblob(3000000)", "a value of the query is too long"},
        {"WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t LIMIT 30)"
         " SELECT count(y) FROM (SELECT zeroblob(1900000 + x) AS y FROM t ORDER BY y)",
         "the query takes more than 32 MB of memory"},
        {"SELECT 7", ""},
    };
    store_close(store_of(state));
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            Error e = {0};
            int64_t n;
            Store *s = store_open(folder_path(*state, "a.db"), STORE_READ,
                                  &(StoreOptions){.most_bytes = 32000000}, &e);
            bool ok = s && rows_one_int(s, ROWS[i].sql, 0, &n, &e);
            bool right = ok ? !ROWS[i].want[0] && n == 7 : strstr(e.text, ROWS[i].want) != NULL;
            if (!right) fprintf(stderr, "%s: wanted '%s', got '%s'\n", ROWS[i].sql, ROWS[i].want, e.text);
            _exit(!right);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(read_to_the_end),
        IN_FOLDER(fails_on_the_way),
        IN_FOLDER(its_reader_gives_up),
        IN_FOLDER(a_greedy_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
