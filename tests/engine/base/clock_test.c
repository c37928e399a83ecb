// The processor's clock counts the process's work, also under a limit of processor time, where Linux updates
// the process's own clock only now and then.
#include "tests/support/check.h"

#include "engine/base/clock.h"

#include <sys/resource.h>

// A stretch of work, and its time by each clock.
static void worked(double *processor, double *wall) {
    double cpu = clock_now(clock_processor()), start = clock_now(clock_monotonic());
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < 100000; i++) sum += i;
    (void)sum;
    *wall = clock_now(clock_monotonic()) - start;
    *processor = clock_now(clock_processor()) - cpu;
}

static void counts_short_work(void **state) {
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_CPU, &limit), 0);
    if (limit.rlim_cur == RLIM_INFINITY) limit.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_CPU, &limit), 0);
    for (int i = 0; i < 50; i++) {
        double processor, wall;
        worked(&processor, &wall);
        if (!(processor > 0)) fail_msg("round %d: no processor time in %g s of work", i, wall);
        assert_true(processor <= wall + 1e-4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_short_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
