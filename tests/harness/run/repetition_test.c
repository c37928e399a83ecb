// Random texts over few tokens, against counting by hand.
#include "tests/support/check.h"

#include "harness/run/repetition.h"

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
    return false;
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
