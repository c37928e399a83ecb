#include "tests/support/check.h"

#include "engine/base/error.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

enum { ROOM = sizeof((Error *)NULL)->text };

static void kinds(void **state) {
    (void)state;
    Error e = {0};
    assert_int_equal(error_exit_code(&e), 0);
    assert_false(error_input(&e, "cannot read '%s': %d bytes", "file", 3));
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_int_equal(error_exit_code(&e), 2);
    assert_string_equal(e.text, "cannot read 'file': 3 bytes");
    assert_false(error_system(&e, "disk full"));
    assert_int_equal(e.kind, ERROR_SYSTEM);
    assert_int_equal(error_exit_code(&e), 1);
    assert_string_equal(e.text, "disk full"); // the last one wins
}

static void nobody_listens(void **state) {
    (void)state;
    assert_false(error_input(NULL, "%s", "x"));
    assert_false(error_system(NULL, "%s", "x"));
    assert_false(error_within(NULL, "%s", "x"));
}

static void within(void **state) {
    (void)state;
    Error e;
    error_system(&e, "disk full");
    assert_false(error_within(&e, "point %d", 7));
    assert_false(error_within(&e, "config '%s'", "a\nb"));
    assert_string_equal(e.text, "config 'a?b': point 7: disk full");
    assert_int_equal(e.kind, ERROR_SYSTEM);
}

static void one_clean_line(void **state) {
    (void)state;
    Error e;
    const struct {
        const char *in, *want;
    } rows[] = {
        {"", ""},
        {"a\nb\r\tc\x1b[31m\x7f", "a?b??c?[31m?"},
        {"K\xc3\xa4se \xe2\x82\xac \xf0\x9f\x98\x80", "K\xc3\xa4se \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xc2\x9b"
         "31m",
         "??31m"},                           // a control character of two bytes: the terminal's CSI
        {"\xff\xfe x \xc3(", "?? x ?("},     // not UTF-8
        {"\xed\xa0\x80 \xc0\xaf", "??? ??"}, // a surrogate, an overlong form
        {"end \xe2\x82", "end ??"},          // broken in the input, not cut by us
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        error_input(&e, "%s", rows[i].in);
        assert_string_equal(e.text, rows[i].want);
    }
}

static bool valid(const char *s) {
    utf8proc_int32_t c;
    for (utf8proc_ssize_t n; *s; s += n)
        if ((n = utf8proc_iterate((const utf8proc_uint8_t *)s, -1, &c)) < 1) return false;
    return true;
}

// The expected cut of a message of `pad` letters and then many characters of n bytes.
static size_t whole_characters(size_t pad, size_t n) { return pad + (ROOM - 1 - pad) / n * n; }

static void cut_at_a_character(void **state) {
    (void)state;
    static const char *const characters[] = {"x", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    char long_text[ROOM * 4 + 8];
    Error e;
    for (size_t n = 1; n <= 4; n++)
        for (size_t pad = 0; pad < 5; pad++) {
            memset(long_text, 'p', pad);
            for (size_t i = 0; i < ROOM; i++) snprintf(long_text + pad + i * n, 5, "%s", characters[n - 1]);
            error_input(&e, "%s", long_text);
            assert_int_equal(strlen(e.text), whole_characters(pad, n));
            assert_memory_equal(e.text, long_text, strlen(e.text));
            error_within(&e, "12"); // cuts again, four bytes earlier
            assert_int_equal(strlen(e.text), whole_characters(pad + 4, n));
            assert_memory_equal(e.text + 4, long_text, strlen(e.text) - 4);
            error_within(&e, "%s", long_text); // a prefix may be too long, too
            assert_true(valid(e.text));
            assert_null(strchr(e.text, '?'));
            assert_non_null(strstr(e.text, ": 12: "));
        }
}

// Random bytes, any length: always a line of valid UTF-8 without control characters; ASCII arrives as it is.
static void random_bytes(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 3000; round++) {
        char in[2 * ROOM + 1];
        int n = test_between(&r, 0, round % 2 ? 40 : 2 * ROOM);
        for (int i = 0; i < n; i++) in[i] = (char)test_between(&r, 1, test_between(&r, 0, 1) ? 255 : 127);
        in[n] = 0;
        Error e;
        error_input(&e, "%s", in);
        assert_true(valid(e.text));
        int length = (int)strlen(e.text);
        assert_true(length == n || (n >= ROOM && length >= ROOM - 4));
        for (int i = 0; i < length; i++) {
            unsigned char c = (unsigned char)e.text[i];
            assert_true(c >= 0x20 && c != 0x7f);
            assert_false(c == 0xc2 && (unsigned char)e.text[i + 1] < 0xa0);
            if (in[i] >= 0x20 && in[i] < 0x7f) assert_int_equal(e.text[i], in[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(within),
        cmocka_unit_test(one_clean_line),
        cmocka_unit_test(cut_at_a_character),
        cmocka_unit_test(random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
