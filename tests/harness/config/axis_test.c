// Axes: ranges against counting in whole numbers; lists of both; refusals.
#include "tests/support/check.h"

#include "engine/base/text.h"
#include "harness/config/values.h"

#include <stdio.h>
#include <string.h>

// The axis "a: TEXT" with its values in a row.
static bool expand(const char *text, Text *out, Error *e) {
    YamlTree t;
    Text file = {0};
    text_printf(&file, "a: %s\n", text);
    bool ok = yaml_parse(&t, text_get(&file), file.length, "x.yaml", e);
    ok = ok && axis_expand(&t, yaml_find(t.root, "a"), e);
    const YamlNode *axis = ok ? yaml_find(t.root, "a") : NULL;
    for (const YamlNode *n = axis ? axis->first : NULL; n; n = n->next)
        text_printf(out, "%s%s", n == axis->first ? "" : " ", n->text);
    text_release(&file);
    yaml_release(&t);
    return ok;
}

static void expect(const char *text, const char *want) {
    Text got = {0};
    Error e = {0};
    if (!expand(text, &got, &e)) fail_msg("'%s': %s", text, e.text);
    if (strcmp(text_get(&got), want) != 0)
        fail_msg("'%s': wanted '%s', got '%s'", text, want, text_get(&got));
    text_release(&got);
}

static void examples(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"5", "5"},
        {"word", "word"},
        {"[5, 10, 15]", "5 10 15"},
        {"2..6", "2 3 4 5 6"},
        {"2..14+2", "2 4 6 8 10 12 14"},
        {"2..7+2", "2 4 6"},
        {"1..64*2", "1 2 4 8 16 32 64"},
        {"1..63*2", "1 2 4 8 16 32"},
        {"3..3", "3"},
        {"-2..1", "-2 -1 0 1"},
        {"-3..-1", "-3 -2 -1"},
        {"0.1..0.9+0.1", "0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9"},
        {"0.5..4*2", "0.5 1 2 4"},
        {"1..8*1.5", "1 1.5 2.25 3.375 5.0625 7.59375"},
        {"[1, 10..12, 20..40*2]", "1 10 11 12 20 40"},
        {"'2..4'", "2..4"},
        {"../x", "../x"},
        {"v1..2", "v1..2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect(cases[i][0], cases[i][1]);
}

// A step in hundredths, counted in whole numbers, is what fractions must give.
static void random_ranges(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 3000; round++) {
        int from = test_between(&r, -300, 300), to = from + test_between(&r, 0, 2000);
        int step = test_between(&r, 1, 90);
        char text[64];
        Text want = {0};
        snprintf(text, sizeof text, "%.2f..%.2f+%.2f", from / 100.0, to / 100.0, step / 100.0);
        for (int n = from; n <= to; n += step) text_printf(&want, "%s%.10g", n == from ? "" : " ", n / 100.0);
        expect(text, text_get(&want));
        text_release(&want);
    }
}

static void random_powers(void **state) {
    (void)state;
    Random r = test_random(2);
    for (int round = 0; round < 1000; round++) {
        int from = test_between(&r, 1, 20), to = from + test_between(&r, 0, 4000);
        int factor = test_between(&r, 2, 5);
        char text[64];
        Text want = {0};
        snprintf(text, sizeof text, "%d..%d*%d", from, to, factor);
        for (int n = from; n <= to; n *= factor) text_printf(&want, "%s%d", n == from ? "" : " ", n);
        expect(text, text_get(&want));
        text_release(&want);
    }
}

static void places(void **state) {
    (void)state;
    static const char FILE_TEXT[] = "a:\n  - 7\n  - 1..3\n";
    static const int lines[] = {2, 3, 3, 3};
    YamlTree t;
    Error e = {0};
    assert_true(yaml_parse(&t, FILE_TEXT, strlen(FILE_TEXT), "x.yaml", &e));
    YamlNode *axis = yaml_find(t.root, "a");
    assert_true(axis_expand(&t, axis, &e));
    int i = 0;
    for (const YamlNode *n = axis->first; n; n = n->next, i++) {
        assert_int_equal(n->line, lines[i]);
        assert_int_equal(n->column, 5);
    }
    assert_int_equal(i, 4);
    assert_int_equal(axis->count, 4);
    yaml_release(&t);
}

static void refusals(void **state) {
    (void)state;
    static const char MEND[] = "write 2..14, 2..14+2 or 1..64*2, the smaller number first";
    static const char *const ranges[] = {"2..",       "2..x",   "5..2",   "2..14:2", "1..64*1",
                                         "1..64*0.5", "0..8*2", "1..8+0", "1..8+-1", "1..8+",
                                         "1...8",     "1..8 9", "-4..8*2"};
    static const char *const others[][2] = {
        {"{b: 1}", "x.yaml:1:4: an axis must be a value, a list or a range"},
        {"[]", "x.yaml:1:4: this axis has no values: write one, or take it away"},
        {"", "x.yaml:1:3: this value is empty: write one, or take it away"},
        {"[1, '']", "x.yaml:1:8: this value is empty: write one, or take it away"},
        {"[1, [2]]", "x.yaml:1:8: each item of an axis must be one value or a range such as 2..14+2"},
        {"1..4097", "x.yaml:1:4: this axis has more than 4096 values: take larger steps"},
        {"1e9..2e9", "1e9..2e9"},
        {"1000000000..2000000000+0.0000000001",
         "x.yaml:1:4: this axis has more than 4096 values: take larger steps"},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        Error e = {0};
        Text got = {0};
        if (expand(ranges[i], &got, &e)) fail_msg("'%s' was taken as '%s'", ranges[i], text_get(&got));
        if (!strstr(e.text, MEND) || strncmp(e.text, "x.yaml:1:4: '", 13) != 0) fail_msg("'%s'", e.text);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        Error e = {0};
        Text got = {0};
        bool ok = expand(others[i][0], &got, &e);
        const char *said = ok ? text_get(&got) : e.text;
        if (strcmp(said, others[i][1]) != 0)
            fail_msg("'%s': wanted '%s', got '%s'", others[i][0], others[i][1], said);
        text_release(&got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples), cmocka_unit_test(random_ranges), cmocka_unit_test(random_powers),
        cmocka_unit_test(places),   cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
