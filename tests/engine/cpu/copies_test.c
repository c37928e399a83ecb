// Copies of the cache on the CPU.
#include "tests/support/check.h"
#include "tests/support/copies_suite.h"

#include "engine/cpu/cpu.h"

static const ExactBackend CPU = {.backend = &cpu_backend, .open = cpu_open};

static void same_bits(void **state) {
    (void)state;
    copies_suite(&CPU, 15, false);
}

static void same_bits_in_rings(void **state) {
    (void)state;
    copies_suite(&CPU, 100, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(same_bits_in_rings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
