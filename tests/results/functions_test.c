// bits and ones against loops over single bits; NULL, short and out-of-range arguments.
#include "tests/support/check.h"

#include "results/sql.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int set_up(void **state) {
    sqlite3 *db;
    if (sqlite3_open(":memory:", &db) || sql_functions(db)) return -1;
    *state = db;
    return 0;
}

static int tear_down(void **state) { return sqlite3_close(*state); }

// The first column, or -1 where it is NULL, -2 where it fails.
static int64_t ask(sqlite3 *db, const char *sql) {
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL)) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    int64_t answer = sqlite3_step(s) != SQLITE_ROW              ? -2
                     : sqlite3_column_type(s, 0) == SQLITE_NULL ? -1
                                                                : sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return answer;
}

static void any_bits(void **state) {
    Random r = test_random(1);
    for (int round = 0; round < 500; round++) {
        uint8_t row[9];
        char sql[128], hex[2 * sizeof row + 1] = "";
        int size = (int)random_below(&r, sizeof row + 1), at = (int)random_below(&r, 80);
        int n = (int)random_below(&r, 64), wanted_ones = 0;
        int64_t wanted = 0;
        for (int i = 0; i < size; i++) {
            row[i] = (uint8_t)random_below(&r, 256);
            snprintf(hex + 2 * i, 3, "%02x", row[i]);
        }
        for (int i = 0; i < n; i++)
            if (at + i < 8 * size && row[(at + i) / 8] & 1 << (at + i) % 8) {
                wanted += (int64_t)1 << i;
                wanted_ones++;
            }
        snprintf(sql, sizeof sql, "SELECT bits(x'%s', %d, %d)", hex, at, n);
        int64_t got = ask(*state, sql);
        if (got != wanted) fail_msg("%s: wanted %lld, got %lld", sql, (long long)wanted, (long long)got);
        snprintf(sql, sizeof sql, "SELECT ones(%lld)", (long long)wanted);
        assert_int_equal(ask(*state, sql), wanted_ones);
    }
}

static void edges(void **state) {
    assert_int_equal(ask(*state, "SELECT ones(-1)"), 64);
    assert_int_equal(ask(*state, "SELECT ones(NULL)"), -1);
    assert_int_equal(ask(*state, "SELECT bits(NULL, 0, 8)"), -1);
    assert_int_equal(ask(*state, "SELECT bits(x'ff', 9223372036854775807, 63)"), 0);
    assert_int_equal(ask(*state, "SELECT bits(x'ff', -1, 8)"), -2);
    assert_int_equal(ask(*state, "SELECT bits(x'ff', 0, 64)"), -2);
    assert_int_equal(ask(*state, "SELECT 1000 * sqrt(2)"), 1414);
    assert_int_equal(ask(*state, "SELECT sqrt(-1)"), -1);
    assert_int_equal(ask(*state, "SELECT sqrt(NULL)"), -1);
    assert_int_equal(ask(*state, "SELECT measured(NULL, 1, 2)"), -1);
    assert_int_equal(ask(*state, "SELECT measured(1.9523, 1.913, 1.998) = '1.95 [1.91, 2.00]'"), 1);
    assert_int_equal(ask(*state, "SELECT measured(1605.457, NULL, NULL) = '1605'"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bits),
        cmocka_unit_test(edges),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
