// The order of all places, against a plain sort that compares them token by token.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/decode/structures/datastore.h"

typedef struct {
    const int *tokens;
    int n;
} Body;

static int slow_compare(const Body *b, int x, int y) {
    while (x < b->n && y < b->n && b->tokens[x] == b->tokens[y]) x++, y++;
    if (x == b->n || y == b->n) return x == b->n ? -1 : 1;
    return b->tokens[x] < b->tokens[y] ? -1 : 1;
}

static void check_order(const int *tokens, int n, int vocab) {
    int *places = mem_new((size_t)n, sizeof *places);
    char *seen = mem_new((size_t)n, 1);
    Body b = {tokens, n};
    assert_true(suffix_array_build(tokens, n, vocab, places, NULL));
    for (int i = 0; i < n; i++) {
        assert_in_range(places[i], 0, n - 1);
        assert_false(seen[places[i]]);
        seen[places[i]] = 1;
        if (i && slow_compare(&b, places[i - 1], places[i]) >= 0)
            fail_msg("place %d stands before place %d, %d tokens of %d kinds", places[i - 1], places[i], n,
                     vocab);
    }
    mem_free(places);
    mem_free(seen);
}

static void random_texts(void **state) {
    (void)state;
    enum { MOST = 400 };
    Random r = test_random(160);
    int tokens[MOST];
    for (int round = 0; round < 1500; round++) {
        int n = test_between(&r, 1, round % 3 ? 30 : MOST), vocab = test_between(&r, 1, round % 5 ? 4 : 1000);
        int period = test_between(&r, 0, 1) ? test_between(&r, 1, n) : n; // a text that comes back
        for (int i = 0; i < n; i++)
            tokens[i] = i < period ? test_between(&r, -1, vocab - 1) : tokens[i - period];
        check_order(tokens, n, vocab);
    }
}

// The worst for doubling: every round leaves the long repetitions open.
static void one_token_over_and_over(void **state) {
    (void)state;
    enum { MANY = 200000 };
    int *tokens = mem_new(MANY, sizeof *tokens), *places = mem_new(MANY, sizeof *places);
    assert_true(suffix_array_build(tokens, MANY, 1, places, NULL));
    for (int i = 0; i < MANY; i++) assert_int_equal(places[i], MANY - 1 - i);
    mem_free(tokens);
    mem_free(places);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_texts),
                                       cmocka_unit_test(one_token_over_and_over)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
