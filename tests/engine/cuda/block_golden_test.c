// Drafts of blocks on a card (tests/simt) give the golden values (tests/support/block_golden.h).
#include "tests/support/block_golden.h"
#include "tests/support/check.h"
#include "tests/simt/settings.h"

#include "engine/cuda/cuda.h"

static void all_drafts(void **state) {
    (void)state;
    block_golden(&(ExactBackend){&cuda_backend, cuda_open, NULL, NULL, 0});
    assert_int_equal(simt_live_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_drafts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
