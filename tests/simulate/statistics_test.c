#include "tests/support/check.h"

#include "simulate/statistics.h"

#include <math.h>

static void middle_values(void **state) {
    (void)state;
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    assert_true(median(odd, 3) == 3 && median(even, 4) == 2.5 && median(one, 1) == 7);
    double spread[] = {1, 1, 2, 2, 4, 6, 9};
    assert_true(median_deviation(spread, 7) == 1);
}

// Half of the values are at most the median, half at least; the deviation likewise.
static void halves(void **state) {
    (void)state;
    Random r = test_random(34);
    for (size_t n = 1; n < 60; n++) {
        double x[60], y[60];
        for (size_t i = 0; i < n; i++) x[i] = y[i] = random_uniform(&r) - 0.5;
        double m = median(x, n), d = median_deviation(x, n);
        size_t low = 0, high = 0, near = 0, far = 0;
        for (size_t i = 0; i < n; i++) {
            low += y[i] <= m;
            high += y[i] >= m;
            near += fabs(y[i] - m) <= d;
            far += fabs(y[i] - m) >= d;
        }
        assert_true(2 * low >= n && 2 * high >= n && 2 * near >= n && 2 * far >= n);
    }
}

// The chance that the interval leaves the median out, counted: at most 5 of 100, and no wider than it has to
// be.
static void median_intervals(void **state) {
    (void)state;
    Random r = test_random(35);
    for (size_t n = 2; n <= 40; n += n < 6 ? 1 : 7) {
        enum { ROUNDS = 20000 };
        int out = 0;
        for (int round = 0; round < ROUNDS; round++) {
            double x[40], low, high;
            for (size_t i = 0; i < n; i++) x[i] = random_uniform(&r);
            median_interval(x, n, &low, &high);
            out += low > 0.5 || high < 0.5;
        }
        double share = (double)out / ROUNDS, allowed = n < 6 ? 2 * pow(0.5, (double)n) : 0.05;
        if (share > allowed + 0.012) fail_msg("%zu values: %g of the medians are left out", n, share);
        if (n > 20 && share < 0.01) fail_msg("%zu values: only %g of the medians are left out", n, share);
    }
    double one = 3, low, high;
    median_interval(&one, 1, &low, &high);
    assert_true(isnan(low) && isnan(high));
}

// t of 19 degrees is 2.093, times the root of 20 / 19; of many units the level is the one asked for.
static void levels_of_few(void **state) {
    (void)state;
    assert_true(fabs(resampled_level(0.95, 20) - 0.9682) < 1e-4);
    assert_true(fabs(resampled_level(0.95, 1000000) - 0.95) < 1e-5);
    assert_true(resampled_level(0.95, 2) < 1 && resampled_level(0.95, 2) > 0.9999);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(middle_values), cmocka_unit_test(halves),
                                       cmocka_unit_test(median_intervals), cmocka_unit_test(levels_of_few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
