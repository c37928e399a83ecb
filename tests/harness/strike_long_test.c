// Every place in every command that can be struck (tests/support/strikes.h): by a call that fails, by death
// before a call that changes the disk, and by death at random moments.
#include "tests/support/check.h"

#include "tests/support/strikes.h"

static void all_fail(void **state) {
    (void)state;
    strikes_fail(0);
}

static void all_kill(void **state) {
    (void)state;
    strikes_kill(0);
}

static void at_random(void **state) {
    (void)state;
    strikes_random(40);
}

int main(int count, char **names) {
    if (count > 1) cmocka_set_test_filter(names[1]); // one of them
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_fail), cmocka_unit_test(all_kill),
                                       cmocka_unit_test(at_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
