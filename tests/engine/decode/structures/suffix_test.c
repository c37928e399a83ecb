// The index against a search that compares every place with the end of the sequence.
#include "tests/support/check.h"

#include "engine/decode/structures/suffix.h"

#include <string.h>

enum { MOST = 260 };

// The newest end before `end` of the n tokens just before `end`, or SUFFIX_NONE.
static int slow_before(const int *tokens, int n, int end) {
    for (int at = end - 1; at >= n; at--)
        if (memcmp(tokens + at - n, tokens + end - n, (size_t)n * sizeof *tokens) == 0) return at;
    return SUFFIX_NONE;
}

static void check_length(const SuffixIndex *x, const int *tokens, int length, int n) {
    int want = n < length ? slow_before(tokens, n, length) : SUFFIX_NONE, oldest = SUFFIX_NONE;
    int got = suffix_newest(x, n);
    while (want != SUFFIX_NONE) {
        if (got != want) fail_msg("n = %d of %d tokens: end %d, want %d", n, length, got, want);
        oldest = want;
        want = slow_before(tokens, n, want);
        got = suffix_before(x, n, got);
    }
    assert_int_equal(got, SUFFIX_NONE);
    if (suffix_oldest(x, n) != oldest)
        fail_msg("n = %d of %d tokens: oldest %d, want %d", n, length, suffix_oldest(x, n), oldest);
}

static void random_streams(void **state) {
    (void)state;
    Random r = test_random(20);
    for (int round = 0; round < 60; round++) {
        // Small ids and ids of every size, negative ones too: the index takes any int.
        int stride = test_between(&r, 0, 1) ? 1 : 1000003, first = test_between(&r, -8, 2);
        int tokens[MOST], alphabet = test_between(&r, 1, 6), longest = test_between(&r, 1, SUFFIX_LONGEST);
        SuffixIndex x;
        suffix_init(&x, longest);
        for (int sequence = 0; sequence < 2; sequence++) { // the second one on a cleared index
            int length = test_between(&r, 1, MOST);
            for (int i = 0; i < length; i++) {
                tokens[i] = test_between(&r, 0, alphabet - 1) * stride + first;
                suffix_push(&x, tokens[i]);
                for (int n = 1; n <= longest; n++) check_length(&x, tokens, i + 1, n);
            }
            suffix_clear(&x);
            assert_int_equal(suffix_newest(&x, 1), SUFFIX_NONE);
        }
        suffix_release(&x);
    }
}

static void asks_beyond_its_lengths(void **state) {
    (void)state;
    SuffixIndex x;
    suffix_init(&x, 2);
    assert_int_equal(suffix_newest(&x, 1), SUFFIX_NONE);
    assert_int_equal(suffix_oldest(&x, 1), SUFFIX_NONE);
    for (int i = 0; i < 9; i++) suffix_push(&x, 5);
    assert_int_equal(suffix_newest(&x, 3), SUFFIX_NONE);
    assert_int_equal(suffix_oldest(&x, 3), SUFFIX_NONE);
    assert_int_equal(suffix_newest(&x, 2), 8); // may overlap the n-gram at the end
    assert_int_equal(suffix_oldest(&x, 2), 2);
    suffix_release(&x);
}

// Enough different n-grams that the table grows many times, each found again at its one earlier place.
static void long_streams(void **state) {
    (void)state;
    enum { HALF = 20000, N = 4 };
    SuffixIndex x;
    suffix_init(&x, N);
    for (int i = 0; i < 2 * HALF; i++) {
        suffix_push(&x, i % HALF);
        for (int n = 1; n <= N && i >= HALF + N; n++) {
            assert_int_equal(suffix_newest(&x, n), i + 1 - HALF);
            assert_int_equal(suffix_oldest(&x, n), i + 1 - HALF);
        }
    }
    suffix_release(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_streams),
        cmocka_unit_test(asks_beyond_its_lengths),
        cmocka_unit_test(long_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
