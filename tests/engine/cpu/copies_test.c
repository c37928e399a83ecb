// Copies of the cache on the CPU.
#include "tests/support/check.h"
#include "tests/support/copies_suite.h"

#include "engine/cpu/cpu.h"

static void same_bits(void **state) {
    (void)state;
    copies_suite(&(ExactBackend){.backend = &cpu_backend, .open = cpu_open}, 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
