#include "tests/support/check.h"

#include "simulate/statistics.h"

enum { COUNT = 2000 };

// p itself is uniform for uniform numbers: of 400 sets, about a tenth lies below a tenth.
static void uniform_numbers_pass(void **state) {
    (void)state;
    Random r = test_random(61);
    int low = 0;
    for (int round = 0; round < 400; round++) {
        double u[COUNT];
        for (int i = 0; i < COUNT; i++) u[i] = random_uniform(&r);
        Uniformity seen = uniformity(u, COUNT);
        assert_int_equal(seen.degrees, 49);
        low += seen.p < 0.1;
    }
    assert_in_range(low, 20, 64); // 40, give or take four standard deviations
}

static void others_do_not(void **state) {
    (void)state;
    Random r = test_random(62);
    double u[COUNT];
    for (int i = 0; i < COUNT; i++) {
        double x = random_uniform(&r);
        u[i] = x * x;
    }
    assert_true(uniformity(u, COUNT).p < 1e-9);
    for (int i = 0; i < COUNT; i++) u[i] = 0.999999;
    assert_true(uniformity(u, COUNT).p < 1e-9);
}

static void few_numbers_say_nothing(void **state) {
    (void)state;
    double u[19] = {0};
    assert_true(uniformity(u, 0).p == 1 && uniformity(u, 19).p == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(uniform_numbers_pass),
                                       cmocka_unit_test(others_do_not),
                                       cmocka_unit_test(few_numbers_say_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
