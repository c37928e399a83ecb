// The curve of a step's time by its rows.
#include "tests/support/check.h"

#include "simulate/tuning.h"

// Rising stays as it is; what is out of order is pooled, and its product with it.
static void curve(void **state) {
    (void)state;
    double rows[6] = {1, 2, 4, 8, 16, 32}, seconds[6] = {1, 2, 8, 4, 2, 16};
    TuningCurve c = {rows, seconds, 6};
    tuning_curve_rise(&c);
    static const double WANTED[6] = {1, 2, 4, 4, 4, 16};
    for (int i = 0; i < 6; i++)
        if (fabs(seconds[i] - WANTED[i]) > 1e-12)
            fail_msg("row %d: wanted %g, got %g", i, WANTED[i], seconds[i]);
    assert_true(fabs(tuning_curve_at(&c, 3) - 3) < 1e-12);
    assert_true(fabs(tuning_curve_at(&c, 0.5) - 1) < 1e-12);
    assert_true(fabs(tuning_curve_at(&c, 24) - 10) < 1e-12);
    assert_true(fabs(tuning_curve_at(&c, 64) - 32) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(curve)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
