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

// Either way, by more than noise.
static void drift(void **state) {
    (void)state;
    assert_false(surface_drifted(1, 1));
    assert_false(surface_drifted(1, 1.14));
    assert_false(surface_drifted(1.14, 1));
    assert_true(surface_drifted(1, 1.16));
    assert_true(surface_drifted(1.16, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens), cmocka_unit_test(drift)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
