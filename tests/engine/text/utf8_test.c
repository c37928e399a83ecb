// UTF-8 against utf8proc, and against the obvious definition of truncated and invalid bytes.
#include "tests/support/check.h"

#include "engine/text/utf8.h"

#include <string.h>
#include <utf8proc.h>

static int slow_length(const char *s, size_t n) {
    utf8proc_int32_t code;
    utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n, &code);
    return n && length > 0 ? (int)length : 0;
}

// Whether bytes can be added to s so that a character comes out: tried, not derived.
static bool slow_completes(const char *s, size_t n) {
    static const unsigned char seconds[] = {0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF};
    char t[4] = {0};
    memcpy(t, s, n);
    for (size_t length = n + 1; length <= 4; length++)
        for (size_t k = 0; k < sizeof seconds; k++) {
            t[n] = (char)seconds[k];
            for (size_t i = n + 1; i < length; i++) t[i] = (char)0x80;
            if (slow_length(t, length) == (int)length) return true;
        }
    return false;
}

// The longest start of a character at s, at least 1.
static int slow_bad_length(const char *s, size_t n) {
    int longest = 1;
    for (size_t i = 1; i <= n && i < 4; i++)
        if (slow_completes(s, i)) longest = (int)i;
    return longest;
}

static void check(const char *s, size_t n) {
    int length = slow_length(s, n);
    assert_int_equal(utf8_length(s, n), length);
    if (length == 0) assert_int_equal(utf8_bad_length(s, n), slow_bad_length(s, n));
    if (n < 4) assert_int_equal(utf8_is_cut(s, n) != 0, slow_completes(s, n) && !length);
}

static void all_of_two_bytes_and_many_of_four(void **state) {
    (void)state;
    Random r = test_random(2);
    char s[4];
    for (int a = 0; a < 256; a++) {
        s[0] = (char)a;
        check(s, 1);
        for (int b = 0; b < 256; b++) {
            s[1] = (char)b;
            check(s, 2);
            s[2] = (char)test_between(&r, 0x78, 0xC8);
            check(s, 3);
            s[3] = (char)test_between(&r, 0x78, 0xC8);
            check(s, 4);
        }
    }
    assert_int_equal(utf8_length("", 0), 0);
}

static void codes_there_and_back(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 0x110000; code++) {
        char s[4];
        if (code == 0xD800) code = 0xE000;
        int n = utf8_put(code, s);
        assert_int_equal(utf8_length(s, (size_t)n), n);
        assert_int_equal(utf8_code(s, n), code);
        assert_int_equal(utf8_last(s, (size_t)n), 0);
    }
}

static void white_space(void **state) {
    (void)state;
    size_t count = 0;
    for (uint32_t code = 0; code < 0x110000; code++) {
        char s[12] = "x";
        if (code == 0xD800) code = 0xE000;
        int n = utf8_put(code, s + 1);
        memcpy(s + 1 + n, "y", 2);
        size_t space = utf8_space_at_start(s + 1, (size_t)n + 1);
        assert_int_equal(space, utf8_space_at_end(s, (size_t)n + 1));
        assert_true(space == 0 || space == (size_t)n);
        count += space > 0;
        // The separators of Unicode are white space, all others are control characters.
        utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
        bool separator = c >= UTF8PROC_CATEGORY_ZS && c <= UTF8PROC_CATEGORY_ZP;
        assert_true(separator ? space > 0 : space == 0 || code < 0x20 || code == 0x85);
    }
    assert_int_equal(count, 25); // White_Space has 25 characters
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_two_bytes_and_many_of_four),
        cmocka_unit_test(codes_there_and_back),
        cmocka_unit_test(white_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
