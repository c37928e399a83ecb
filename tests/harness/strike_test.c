// A few strikes at every command (tests/support/strikes.h); strike_long_test.c has all of them.
#include "tests/support/check.h"

#include "tests/support/strikes.h"

static void a_few_fail(void **state) {
    (void)state;
    strikes_fail(14);
}

static void a_few_kill(void **state) {
    (void)state;
    strikes_kill(6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_few_fail), cmocka_unit_test(a_few_kill)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
