// Kriging of known functions: it meets the measured points, forgets far away, and its stated errors are its
// real ones.
#include "tests/support/check.h"

#include "simulate/kriging.h"

#include <math.h>
#include <string.h>
#include <stdio.h>

enum { MEASURED = 9, ASKED = 60, AXES = 2 };

static double hills(const double *x, double phase) { return 0.2 * sin(2 * x[0] + phase) * cos(1.5 * x[1]); }

static void random_places(double *places, int count, Random *r) {
    for (int i = 0; i < count * AXES; i++) places[i] = random_uniform(r);
}

static void known(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 20; round++) {
        double places[MEASURED * AXES], values[MEASURED], errors[MEASURED] = {0}, mean[MEASURED],
                                                          error[MEASURED];
        random_places(places, MEASURED, &r);
        for (int i = 0; i < MEASURED; i++) values[i] = hills(places + i * AXES, round);
        KrigingData data = {AXES, places, values, errors, MEASURED};
        assert_true(kriging(&data, places, MEASURED, mean, error, NULL));
        for (int i = 0; i < MEASURED; i++)
            if (!(fabs(mean[i] - values[i]) < 2e-3 && error[i] < 2e-3))
                fail_msg("measured %g, got %g +- %g", values[i], mean[i], error[i]);
    }
}

// Where places in between are asked, the function is within two errors of the answer nearly always, and
// nearer than zero would be.
static void between(void **state) {
    (void)state;
    Random r = test_random(2);
    int within = 0, all = 0;
    double squares = 0, of_zero = 0;
    for (int round = 0; round < 40; round++) {
        double places[MEASURED * AXES], values[MEASURED], errors[MEASURED];
        double asked[ASKED * AXES], mean[ASKED], error[ASKED];
        random_places(places, MEASURED, &r);
        random_places(asked, ASKED, &r);
        for (int i = 0; i < MEASURED; i++) {
            errors[i] = 0.01;
            values[i] = hills(places + i * AXES, round) + 0.01 * (double)random_normal(&r);
        }
        KrigingData data = {AXES, places, values, errors, MEASURED};
        assert_true(kriging(&data, asked, ASKED, mean, error, NULL));
        for (int i = 0; i < ASKED; i++, all++) {
            double truth = hills(asked + i * AXES, round), off = truth - mean[i];
            within += fabs(off) < 2 * error[i];
            squares += off * off, of_zero += truth * truth;
        }
    }
    printf("%.1f%% within two errors; rms %.4f, of zero %.4f\n", 100.0 * within / all, sqrt(squares / all),
           sqrt(of_zero / all));
    assert_true(within > 0.85 * all);
    assert_true(squares < 0.1 * of_zero);
}

// Far away the answer is nothing, and uncertain; with nothing measured it is that everywhere. Places that
// coincide do not break it.
static void far(void **state) {
    (void)state;
    double places[] = {0, 0, 0, 0, 0.05, 0}, values[] = {0.3, 0.31, 0.29}, errors[] = {0.02, 0.02, 0.02};
    double asked[] = {0, 0, 30, 30}, mean[2], error[2];
    KrigingData data = {AXES, places, values, errors, 3}, none = {.axes = AXES};
    assert_true(kriging(&data, asked, 2, mean, error, NULL));
    assert_true(fabs(mean[0] - 0.3) < 0.03 && error[0] < 0.05);
    assert_true(fabs(mean[1]) < 1e-9 && error[1] >= 0.16);
    assert_true(kriging(&none, asked, 2, mean, error, NULL));
    for (int i = 0; i < 2; i++) assert_true(fabs(mean[i]) <= 0 && error[i] >= KRIGING_UNKNOWN);
}

static void no_number(void **state) {
    double place[] = {0, 0}, value[] = {NAN}, error[] = {0.02}, mean, asked;
    KrigingData data = {AXES, place, value, error, 1};
    Error e = {0};
    (void)state;
    assert_false(kriging(&data, place, 1, &mean, &asked, &e));
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_non_null(strstr(e.text, "not finite"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known),
        cmocka_unit_test(between),
        cmocka_unit_test(far),
        cmocka_unit_test(no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
