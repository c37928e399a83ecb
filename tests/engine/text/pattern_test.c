// Patterns: matches, Oniguruma's readings, refusals, and that no pattern runs forever.
#include "tests/support/check.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/text/stage.h"

#include <stdio.h>
#include <string.h>

// All matches of a pattern, each in brackets.
static void marked(const char *source, bool literal, const char *text, Text *out) {
    Error e = {0};
    Pattern *p = pattern_open(source, literal, "test", &e);
    Search s;
    bool found = true;
    size_t from, to, done = 0;
    if (!p) fail_msg("%s", e.text);
    search_open(&s, p);
    search_begin(&s, text, strlen(text));
    while (found) {
        assert_true(search_next(&s, &found, &from, &to, &e));
        if (!found) break;
        text_add(out, text + done, from - done);
        text_puts(out, "[");
        text_add(out, text + from, to - from);
        text_puts(out, "]");
        done = to;
    }
    text_puts(out, text + done);
    search_close(&s);
    pattern_close(p);
}

typedef struct {
    const char *source, *text, *want;
} Row;

static const Row ROWS[] = {
    {"a+", "baac a", "b[aa]c [a]"},
    {"x*", "axxb", "[]a[xx]b[]"},    // no empty match right after a match
    {"$", "a\nb\n", "a[]\nb[]\n[]"}, // Ruby's $ is every line's
    {"^.", "ab\ncd", "[a]b\n[c]d"},
    {"\\A.", "ab\ncd", "[a]b\ncd"},
    {"\\s",
     "a\xc2\x85"
     "b\xe1\xa0\x8e"
     "c\x1c",
     "a[\xc2\x85]b\xe1\xa0\x8e"
     "c\x1c"}, // U+0085 is, U+180E and U+001C are not
    {"\\S+",
     "a\xc2\xa0"
     "b",
     "[a]\xc2\xa0[b]"},
    {"[^\\s]+", "a b", "[a] [b]"},
    {"\\w+", "e\xcc\x81_1 \xe2\x93\x90-", "[e\xcc\x81_1] [\xe2\x93\x90]-"}, // marks and circled letters are
    {"[\\w-]+", "a-b c", "[a-b] [c]"},
    {"\\W+", "a -b", "a[ -]b"},
    {"\\p{N}{1,3}", "12345", "[123][45]"},
    {"\\p{L}+",
     "a\xe4\xb8\xad"
     "1",
     "[a\xe4\xb8\xad]1"},
    {"\\u4e2d", "\xe4\xb8\xad", "[\xe4\xb8\xad]"},
    {"[]a]+", "a]b", "[a]]b"},
    {"[^]a]+", "a]b", "a][b]"},
    {"(?i:'s|'ll)", "'S'lL'x", "['S]['lL]'x"},
    {"\\s+(?!\\S)", "a   b  ", "a[  ] b[  ]"},
    {".", "\r\n", "[\r]\n"},
};

static void rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Text got = {0};
        marked(ROWS[i].source, false, ROWS[i].text, &got);
        if (strcmp(text_get(&got), ROWS[i].want) != 0)
            fail_msg("/%s/ on '%s': wanted '%s', got '%s'", ROWS[i].source, ROWS[i].text, ROWS[i].want,
                     text_get(&got));
        text_release(&got);
    }
    Text got = {0};
    marked("a.(", true, "a.(a.(ab(", &got);
    assert_string_equal(text_get(&got), "[a.(][a.(]ab(");
    text_release(&got);
}

static void refused(void **state) {
    (void)state;
    static const char *const sources[] = {"\\h",
                                          "\\R",
                                          "\\X",
                                          "\\K",
                                          "\\b",
                                          "\\v",
                                          "\\1",
                                          "\\Qa",
                                          "[[a]b]",
                                          "[[:alpha:]]",
                                          "[a&&b]",
                                          "a{1,3}+",
                                          "(*LIMIT_MATCH=1)a",
                                          "(?C1)a",
                                          "(?m:a)",
                                          "(?<n>a)(?(1)b)",
                                          "[\\W]",
                                          "\\u12",
                                          "\\",
                                          "(",
                                          "[a",
                                          "a**",
                                          "\\p{Nonsense}"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        Error e = {0};
        Pattern *p = pattern_open(sources[i], false, "FILE", &e);
        if (p) fail_msg("/%s/ is not refused", sources[i]);
        assert_int_equal(e.kind, ERROR_INPUT);
        assert_non_null(strstr(e.text, sources[i]));
        assert_non_null(strstr(e.text, "FILE"));
    }
}

// Patterns that backtrack exponentially end with an error, in seconds.
static void endless(void **state) {
    (void)state;
    static const char *const sources[] = {"(a+)+[bd]", "(a|a)*[bd]", "(a*)*[bd]", "(?:a?){60}a{60}[bd]"};
    static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac";
    Clock clock = clock_monotonic();
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        Error e = {0};
        Pattern *p = pattern_open(sources[i], false, "FILE", &e);
        Search s;
        bool found;
        size_t from, to;
        double start = clock.now(clock.state);
        assert_non_null(p);
        search_open(&s, p);
        search_begin(&s, text, strlen(text));
        bool ok = search_next(&s, &found, &from, &to, &e);
        double took = clock.now(clock.state) - start;
        assert_non_null(strstr(e.text, "takes too long on this text"));
        if (took > 5) fail_msg("/%s/ took %.1f s", sources[i], took);
        assert_false(ok);
        search_close(&s);
        pattern_close(p);
    }
}

// What backtracks once over a long run is no such pattern.
static void long_runs(void **state) {
    (void)state;
    static const char *const sources[] = {"\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", "(?:a|b| )*c|[ab ]+", " ?[^x]+"};
    size_t n = 4u << 20;
    char *text = mem_new(n, 1);
    memset(text, ' ', n);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        Error e = {0};
        Pattern *p = pattern_open(sources[i], false, "FILE", &e);
        Search s;
        bool found;
        size_t from, to;
        search_open(&s, p);
        search_begin(&s, text, i == 1 ? 1000 : n);
        if (!search_next(&s, &found, &from, &to, &e)) fail_msg("/%s/: %s", sources[i], e.text);
        assert_true(found);
        assert_int_equal(to - from, i == 1 ? 1000 : n);
        search_close(&s);
        pattern_close(p);
    }
    mem_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(refused),
        cmocka_unit_test(endless),
        cmocka_unit_test(long_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
