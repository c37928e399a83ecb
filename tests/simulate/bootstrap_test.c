#include "tests/support/check.h"

#include "simulate/statistics.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

static int setup(void **state) {
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, (unsigned long)test_seed());
    *state = random;
    return 0;
}

static int teardown(void **state) {
    gsl_rng_free(*state);
    return 0;
}

// As many units are drawn as there are; each as often as another; the draws of a seed are the same again.
static void units(void **state) {
    gsl_rng *random = *state;
    double draws[20], sums[20] = {0};
    for (int n = 0; n < 5000; n++) {
        double total = 0;
        draw_units(random, NULL, draws, 20);
        for (int i = 0; i < 20; i++) total += draws[i], sums[i] += draws[i];
        assert_true(total == 20);
    }
    for (int i = 0; i < 20; i++) assert_true(fabs(sums[i] / 5000 - 1) < 6 * sqrt(0.95 / 5000));
}

// A draw of groups and then within them: units of a group are drawn as often as the group was, times its
// size.
static void nested(void **state) {
    gsl_rng *random = *state;
    static const size_t STARTS[] = {0, 1, 6, 9};
    NestedPlan plan = {STARTS, 3};
    double draws[9], group_draws = 0, group_squares = 0;
    for (int n = 0; n < 4000; n++) {
        draw_nested(random, &plan, draws, 9);
        double five = draws[1] + draws[2] + draws[3] + draws[4] + draws[5];
        double three = draws[6] + draws[7] + draws[8];
        assert_true(fmod(five, 5) == 0 && fmod(three, 3) == 0 && draws[0] + five / 5 + three / 3 == 3);
        group_draws += five / 5;
        group_squares += five / 5 * five / 5;
    }
    // Binomial of 3 draws at 1/3.
    assert_true(fabs(group_draws / 4000 - 1) < 6 * sqrt(2.0 / 3 / 4000));
    assert_true(fabs(group_squares / 4000 - 5.0 / 3) < 0.2);
}

// 95% intervals of a ratio of sums hold the truth 95 times in 100, over pairs that go together.
static void ratio_covers(void **state) {
    gsl_rng *random = *state;
    enum { DRAWS = 400, N = 60 };
    int held = 0;
    double a[N], b[N];
    for (int n = 0; n < DRAWS; n++) {
        Interval interval;
        for (int i = 0; i < N; i++) {
            double size = gsl_ran_gamma(random, 4, 1); // long outputs take both methods long
            b[i] = size * (1 + 0.1 * gsl_ran_ugaussian(random));
            a[i] = 2 * size * (1 + 0.1 * gsl_ran_ugaussian(random));
        }
        assert_true(bootstrap_ratio(a, b, N, 300, 0.95, (uint64_t)n, &interval, NULL));
        held += interval.low <= 2 && interval.high >= 2;
        // Drawn apart, the error would be that of the sizes, some five times as large.
        assert_true(interval.se < 0.1);
    }
    assert_true(held > 0.90 * DRAWS && held < 0.985 * DRAWS);
}

static void same_seed_same_interval(void **state) {
    (void)state;
    double a[] = {1, 2, 3, 4, 5}, b[] = {2, 2, 1, 5, 4};
    Interval x, y, z;
    assert_true(bootstrap_ratio(a, b, 5, 100, 0.9, 7, &x, NULL));
    assert_true(bootstrap_ratio(a, b, 5, 100, 0.9, 7, &y, NULL));
    assert_true(bootstrap_ratio(a, b, 5, 100, 0.9, 8, &z, NULL));
    assert_memory_equal(&x, &y, sizeof x);
    assert_true(memcmp(&x, &z, sizeof x) != 0);
    assert_true(x.low <= 15.0 / 14 && x.high >= 15.0 / 14 && x.se > 0);
}

// Nothing to divide by in all resamples: an error, and no NaN.
static void undefined(void **state) {
    (void)state;
    double a[] = {1, 2}, zero[] = {0, 0};
    Interval interval;
    Error e = {0};
    assert_false(bootstrap_ratio(a, zero, 2, 50, 0.9, 7, &interval, &e));
    assert_non_null(strstr(e.text, "0 of 50"));
}

// 1 / how often the first of five units was drawn, which a third of the resamples cannot say; how often the
// second was, which all say; and what only few or none say.
static bool partly(void *context, const double *draws, double *out) {
    (void)context;
    out[0] = draws[0] > 0 ? 1 / draws[0] : NAN;
    out[1] = draws[1];
    out[2] = draws[0] > 0 ? NAN : 1;
    out[3] = NAN;
    return true;
}

// What a resample does not have is left out of that output alone, and counted.
static void partly_undefined(void **state) {
    (void)state;
    Interval x[4];
    int defined[4];
    Bootstrap b = {.draws = 5,
                   .draw = draw_units,
                   .statistic = partly,
                   .outputs = 4,
                   .resamples = 2000,
                   .level = 0.95,
                   .seed = 3};
    assert_true(bootstrap(&b, x, defined, NULL));
    assert_true(fabs(defined[0] / 2000.0 - (1 - pow(0.8, 5))) < 0.05);
    assert_true(x[0].low >= 0.25 && x[0].high == 1);
    assert_true(defined[1] == 2000 && x[1].low == 0 && x[1].high >= 2);
    assert_true(defined[2] == 2000 - defined[0] && isnan(x[2].low) && isnan(x[2].se));
    assert_true(defined[3] == 0 && isnan(x[3].high));
}

static void quantiles(void **state) {
    (void)state;
    double x[] = {5, 1, 3, 2, 4}, one[] = {7};
    assert_true(quantile(x, 5, 0) == 1 && quantile(x, 5, 1) == 5 && quantile(x, 5, 0.5) == 3);
    assert_true(fabs(quantile(x, 5, 0.1) - 1.4) < 1e-12 && quantile(one, 1, 0.3) == 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(units, setup, teardown),
        cmocka_unit_test_setup_teardown(nested, setup, teardown),
        cmocka_unit_test_setup_teardown(ratio_covers, setup, teardown),
        cmocka_unit_test(same_seed_same_interval),
        cmocka_unit_test(undefined),
        cmocka_unit_test(partly_undefined),
        cmocka_unit_test(quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
