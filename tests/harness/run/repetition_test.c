// Random texts over few tokens, against counting by hand.
#include "tests/support/check.h"

#include "harness/run/ledger.h"

#include <math.h>
#include <string.h>

static double slow_share(const int *ids, int count) {
    int again = 0;
    for (int i = 0; i + 4 <= count; i++)
        for (int k = 0; k < i; k++)
            if (memcmp(ids + i, ids + k, 4 * sizeof *ids) == 0) {
                again++;
                break;
            }
    return count < 4 ? -1 : (double)again / (count - 3);
}

static bool slow_loops(const int *ids, int count) {
    for (int period = 1; 3 * period <= count; period++) {
        int length = 3 * period > 12 ? 3 * period : 12;
        bool same = length <= count;
        for (int i = count - length; same && i + period < count; i++) same = ids[i] == ids[i + period];
        if (same) return true;
    }
    for (int i = 0; i + 24 <= count; i++)
        for (int j = i + 8; j + 16 <= count; j++)
            for (int k = j + 8; k + 8 <= count; k++)
                if (!memcmp(ids + i, ids + j, 8 * sizeof *ids) && !memcmp(ids + i, ids + k, 8 * sizeof *ids))
                    return true;
    return false;
}

// Eight tokens three times with others between them; twice is no loop.
static void long_grams(void **state) {
    (void)state;
    int ids[40];
    for (int i = 0; i < 40; i++) ids[i] = 100 + i;
    for (int i = 0; i < 8; i++) ids[i + 12] = ids[i];
    assert_false(repetition_loops(ids, 40));
    for (int i = 0; i < 8; i++) ids[i + 27] = ids[i];
    assert_true(repetition_loops(ids, 40));
    assert_false(repetition_loops(ids, 34));
}

static void random_texts(void **state) {
    (void)state;
    enum { MOST = 60 };
    Random r = test_random(1);
    int loops = 0;
    for (int round = 0; round < 3000; round++) {
        int ids[MOST], count = test_between(&r, 0, MOST), tokens = test_between(&r, 1, 4),
                       from = test_between(&r, 0, MOST);
        int period = test_between(&r, 1, 15);
        for (int i = 0; i < count; i++)
            ids[i] = i >= from && i >= period ? ids[i - period] : test_between(&r, 1, tokens);
        double want = slow_share(ids, count), got = repetition_share(ids, count);
        if (fabs(want - got) > 1e-12) fail_msg("%d tokens: wanted %g, got %g", count, want, got);
        assert_int_equal(slow_loops(ids, count), repetition_loops(ids, count));
        loops += slow_loops(ids, count);
    }
    assert_true(loops > 300 && loops < 2700);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_texts), cmocka_unit_test(long_grams)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
