#include "tests/support/check.h"

#include "engine/base/ranges.h"

#include <string.h>

static void lists_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int count, items[8];
    } cases[] = {
        {"7", 1, {7}},
        {"1,2,4", 3, {1, 2, 4}},
        {"3..6", 4, {3, 4, 5, 6}},
        {"2..14+4", 4, {2, 6, 10, 14}},
        {"2..13+4", 3, {2, 6, 10}},
        {"1,5..6,9", 4, {1, 5, 6, 9}},
        {"5..5", 1, {5}},
        {"1..64*2", 7, {1, 2, 4, 8, 16, 32, 64}},
        {"3..20*3,2", 3, {3, 9, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        IntList l;
        Error e = {0};
        if (!int_list_parse(cases[i].text, "--n", 0, 100, &l, &e))
            fail_msg("'%s': %s", cases[i].text, e.text);
        assert_int_equal(l.count, cases[i].count);
        assert_memory_equal(l.items, cases[i].items, (size_t)l.count * sizeof *l.items);
    }
}

static void wrong_lists_are_refused(void **state) {
    (void)state;
    static const char *const cases[] = {
        "",      "a",     "1,",     ",1",     "1;2",    "101",    "-1",    "6..3", "1..",
        "1...3", "1..3:", "1..3+0", "1..3:1", "0..8*2", "1..8*1", "1..8*", "1.5",  "99999999999999999999"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        IntList l;
        Error e = {0};
        if (int_list_parse(cases[i], "--n", 0, 100, &l, &e)) fail_msg("'%s' was taken", cases[i]);
        assert_true(strncmp(e.text, "--n has '", 9) == 0 && strstr(e.text, "from 0 to 100"));
        assert_int_equal(e.kind, ERROR_INPUT);
    }
}

static void long_lists_are_refused(void **state) {
    (void)state;
    IntList l;
    Error e = {0};
    assert_true(int_list_parse("1..256", "--n", 0, 1000, &l, &e));
    assert_false(int_list_parse("1..257", "--n", 0, 1000, &l, &e));
    assert_non_null(strstr(e.text, "more than 256"));
}

static void lists_of_reals(void **state) {
    (void)state;
    static const char *const wrong[] = {"", ":", "0.5:", ":0.5", "0.5,0.5", "1.1", "-0.1", "x", ".5", "1e-1"};
    RealList l;
    Error e = {0};
    assert_true(real_list_parse("0.5:1:0", "'a'", 0, 1, &l, &e) && l.count == 3);
    assert_true(l.items[0] == 0.5 && l.items[1] == 1 && l.items[2] == 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (real_list_parse(wrong[i], "'a'", 0, 1, &l, &e)) fail_msg("'%s' was taken", wrong[i]);
        assert_true(strncmp(e.text, "'a' is '", 8) == 0 && strstr(e.text, "from 0 to 1"));
    }
    char many[2 * REAL_LIST_MAX + 2] = "1";
    for (int i = 0; i < REAL_LIST_MAX; i++) memcpy(many + 1 + 2 * i, ":1", 3);
    assert_false(real_list_parse(many, "'a'", 0, 1, &l, &e));
    assert_non_null(strstr(e.text, "more than 64"));
    many[strlen(many) - 2] = 0;
    assert_true(real_list_parse(many, "'a'", 0, 1, &l, &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_are_read), cmocka_unit_test(lists_of_reals),
                                       cmocka_unit_test(wrong_lists_are_refused),
                                       cmocka_unit_test(long_lists_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
