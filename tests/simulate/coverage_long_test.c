#include "tests/support/check.h"

#include "tests/support/coverage.h"

static void intervals_cover(void **state) {
    (void)state;
    coverage_run(20, 1000, 400);
    coverage_run(50, 1000, 400);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(intervals_cover)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
