#include "tests/support/check.h"

#include "simulate/fit.h"

#include <math.h>

typedef struct {
    double valley, other, depth; // the deeper valley, another, how much shallower that is
    int calls;
} Valleys;

static double two_valleys(double x, void *context) {
    Valleys *v = context;
    v->calls++;
    double a = (x - v->valley) * (x - v->valley), b = (x - v->other) * (x - v->other) + v->depth;
    return fmin(a, b);
}

static void finds_the_deeper(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int n = 0; n < 2000; n++) {
        Valleys v = {random_uniform(&r), random_uniform(&r), 0.01 + 0.1 * random_uniform(&r), 0};
        if (n % 20 == 0) v.valley = n % 40 ? 0 : 1; // the edges
        double x = search_minimum(two_valleys, &v, 0, 1, 64, 1e-9);
        if (fabs(x - v.valley) > 1e-7) fail_msg("valleys %g and %g: found %g", v.valley, v.other, x);
        double guess = v.valley + 0.1 * (random_uniform(&r) - 0.5);
        x = search_minimum_near(two_valleys, &v, 0, 1, 64, 1e-9, fmin(fmax(guess, 0), 1), 0.03);
        if (fabs(x - v.valley) > 1e-7)
            fail_msg("from %g, valleys %g and %g: found %g", guess, v.valley, v.other, x);
    }
}

static void near_is_cheaper(void **state) {
    (void)state;
    Valleys far = {0.4, 0.9, 0.1, 0}, near = far;
    search_minimum(two_valleys, &far, 0, 1, 128, 1e-6);
    search_minimum_near(two_valleys, &near, 0, 1, 128, 1e-6, 0.41, 0.05);
    assert_true(near.calls * 4 < far.calls);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_the_deeper), cmocka_unit_test(near_is_cheaper)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
