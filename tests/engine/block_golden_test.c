// Drafts of blocks on the CPU give the golden values (tests/support/block_golden.h).
#include "tests/support/block_golden.h"
#include "tests/support/check.h"

#include "engine/cpu/cpu.h"

static void all_drafts(void **state) {
    (void)state;
    block_golden(&(ExactBackend){&cpu_backend, cpu_open, NULL, NULL, 0});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_drafts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
