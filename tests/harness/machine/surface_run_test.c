#include "tests/support/check.h"

#include "harness/machine/surface_run.h"

// In a batch every row has its root, in a tree all share one.
static void tokens(void **state) {
    (void)state;
    assert_int_equal(surface_tokens(LAYOUT_TREE, 5, 3), 16);
    assert_int_equal(surface_tokens(LAYOUT_BATCH, 5, 3), 20);
    assert_int_equal(surface_tokens(LAYOUT_COPIED, 5, 3), 20);
    assert_int_equal(surface_tokens(LAYOUT_TREE, 1, 0), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
