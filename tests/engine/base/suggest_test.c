#include "tests/support/check.h"

#include "engine/base/error.h"

#include <string.h>

static int least(int a, int b) { return a < b ? a : b; }

// The definition, word for word: what is the cheapest last edit of these two prefixes?
static int slow_distance(const char *a, int n, const char *b, int m) {
    if (n == 0) return m;
    if (m == 0) return n;
    int best = least(slow_distance(a, n - 1, b, m) + 1, slow_distance(a, n, b, m - 1) + 1);
    best = least(best, slow_distance(a, n - 1, b, m - 1) + (a[n - 1] != b[m - 1]));
    if (n > 1 && m > 1 && a[n - 1] == b[m - 2] && a[n - 2] == b[m - 1])
        best = least(best, slow_distance(a, n - 2, b, m - 2) + 1);
    return best;
}

static void random_word(Random *r, char *out, int most, int letters) {
    int n = test_between(r, 0, most);
    for (int i = 0; i < n; i++) out[i] = (char)('a' + test_between(r, 0, letters - 1));
    out[n] = 0;
}

static void distances(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 3000; round++) {
        char a[8], b[8];
        int letters = test_between(&r, 1, 4);
        random_word(&r, a, 7, letters);
        random_word(&r, b, 7, letters);
        int want = slow_distance(a, (int)strlen(a), b, (int)strlen(b)), got = suggest_distance(a, b);
        if (want != got) fail_msg("'%s' to '%s': want %d, got %d", a, b, want, got);
    }
}

// Longer than the slow model can go: what must hold for any distance.
static void longer_words(void **state) {
    (void)state;
    Random r = test_random(2);
    for (int round = 0; round < 2000; round++) {
        char a[100], b[100];
        random_word(&r, a, 99, 3);
        random_word(&r, b, 99, 3);
        int n = (int)strlen(a), m = (int)strlen(b), d = suggest_distance(a, b);
        assert_int_equal(suggest_distance(b, a), d);
        assert_int_equal(suggest_distance(a, a), 0);
        if (n > 63 || m > 63) {
            assert_int_equal(d, strcmp(a, b) ? 64 : 0);
            continue;
        }
        assert_in_range(d, n > m ? n - m : m - n, n > m ? n : m);
        if (n == 0) continue;
        int at = test_between(&r, 0, n - 1);
        strcpy(b, a);
        b[at] = 'z';
        assert_int_equal(suggest_distance(a, b), 1);
        memmove(b + at, b + at + 1, (size_t)(n - at));
        assert_int_equal(suggest_distance(a, b), 1);
    }
}

static void suggestions(void **state) {
    (void)state;
    static const char *const names[] = {"lookahead", "jacobi",         "prompt_lookup",        "speculative",
                                        "kangaroo",  "reference-code", "reference-mathematics"};
    static const char *const rows[][2] = {
        {"lookahaed", "lookahead"},
        {"jakobi", "jacobi"},
        {"prompt-lookup", "prompt_lookup"},
        {"kangaro", "kangaroo"},
        {"jacobi", "jacobi"},
        {"reference-math", "reference-mathematics"}, // it begins the name, though it is nearer to the other
        {"reference-cod", "reference-code"},
        {"kan", "kangaroo"},
        {"ka", NULL},
        {"medusa", NULL},
        {"", NULL},
        {"x", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *got = suggest(rows[i][0], names, sizeof names / sizeof names[0], sizeof names[0]);
        if (rows[i][1] ? !got || strcmp(got, rows[i][1]) : got != NULL)
            fail_msg("'%s': want '%s', got '%s'", rows[i][0], rows[i][1] ? rows[i][1] : "nothing",
                     got ? got : "nothing");
    }
    assert_null(suggest("anything", names, 0, sizeof names[0]));
    char long_word[1000]; // a third of it may be wrong, but it is near to nothing
    memset(long_word, 'k', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = 0;
    assert_null(suggest(long_word, names, sizeof names / sizeof names[0], sizeof names[0]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),
        cmocka_unit_test(longer_words),
        cmocka_unit_test(suggestions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
