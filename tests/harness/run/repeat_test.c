// The error of timing against a simulation of many runs; the rule by its table.
#include "tests/support/check.h"

#include "harness/run/progress.h"

#include <math.h>

enum { PASSES = 5, PROMPTS = 12, RUNS = 4000 };

// Prompts differ much, passes little: the error foreseen is the spread of the mean pass over many runs.
static void error_of_timing(void **state) {
    (void)state;
    Random r = test_random(1);
    double base[PROMPTS], sum = 0, squares = 0, foreseen = 0;
    for (int i = 0; i < PROMPTS; i++) base[i] = 1 + 9 * random_uniform(&r);
    for (int run = 0; run < RUNS; run++) {
        double seconds[PASSES * PROMPTS], mean = 0;
        for (int i = 0; i < PASSES * PROMPTS; i++) {
            seconds[i] = base[i % PROMPTS] * (1 + 0.03 * (double)random_normal(&r));
            mean += seconds[i] / PASSES;
        }
        sum += mean / RUNS;
        squares += mean * mean / RUNS;
        foreseen += pow(repeat_error(seconds, PASSES, PROMPTS), 2) / RUNS;
    }
    double seen = sqrt(squares - sum * sum) / sum;
    if (fabs(sqrt(foreseen) / seen - 1) > 0.05) fail_msg("foreseen %g, seen %g", sqrt(foreseen), seen);
}

static void too_few(void **state) {
    (void)state;
    double seconds[2] = {1, 2};
    assert_true(isinf(repeat_error(seconds, 1, 2)));
    seconds[1] = 1;
    assert_true(repeat_error(seconds, 2, 1) <= 0);
}

static void rule(void **state) {
    (void)state;
    static const struct {
        int stop, passes;
        double error, spent, limit;
        bool done;
    } rows[] = {
        {STOP_PASSES, 1, 0, 0, 0, false},       {STOP_PASSES, 2, INFINITY, 0, 0, true}, // whatever its error
        {STOP_TIMING, 1, 0, 900, 100, false},                                           // at least `passes`
        {STOP_TIMING, 2, 0.02, 0, 0, true},     {STOP_TIMING, 2, 0.03, 900, 0, false},  // no limit of time
        {STOP_TIMING, 2, 0.03, 99, 100, false}, {STOP_TIMING, 2, 0.03, 100, 100, true},
        {STOP_TIMING, 7, 0.03, 0, 0, true}, // most_passes
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Measurement m = {.passes = 2,
                         .most_passes = 7,
                         .stop = rows[i].stop,
                         .timing_error = 0.02,
                         .time_limit = rows[i].limit};
        if (repeat_is_done(&m, rows[i].passes, rows[i].error, rows[i].spent) != rows[i].done)
            fail_msg("row %zu: wanted %d", i, rows[i].done);
    }
}

static void outliers(void **state) {
    (void)state;
    double seconds[2 * 5] = {1, 9, 1.01, 9, 0.99, 9, 1.2, 9, 1.005, 9};
    bool out[5];
    repeat_outliers(seconds, 5, 2, out);
    for (int i = 0; i < 5; i++) assert_int_equal(out[i], i == 3);
    seconds[6] = 1.015; // repeats that agree by chance make no outlier of a hundredth
    repeat_outliers(seconds, 5, 2, out);
    for (int i = 0; i < 5; i++) assert_false(out[i]);
    seconds[2] = 2;
    repeat_outliers(seconds, 2, 2, out); // of two, which is it?
    assert_false(out[0] || out[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(error_of_timing), cmocka_unit_test(too_few),
                                       cmocka_unit_test(rule), cmocka_unit_test(outliers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
