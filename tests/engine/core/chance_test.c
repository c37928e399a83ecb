// The vector loop against exp and a sum in double, at every length round the loop's edges.
#include "tests/support/check.h"

#include "engine/core/draws.h"

#include <math.h>

static double slow_chance(const float *x, int n, float largest) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp((double)x[i] - (double)largest);
    return 1 / sum;
}

static void check(const float *x, int n) {
    float largest = x[0];
    for (int i = 1; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    double got = top_chance(x, n, largest), want = slow_chance(x, n, largest);
    if (!(fabs(got - want) <= 1e-6 * want)) fail_msg("%d logits: %.9g, want %.9g", n, got, want);
}

static void random_logits(void **state) {
    (void)state;
    enum { MOST = 40000 };
    Random r = test_random(75);
    float *x = test_malloc(MOST * sizeof *x);
    for (int round = 0; round < 300; round++) {
        int n = round < 200 ? test_between(&r, 1, 1200) : test_between(&r, 1, MOST);
        double spread = (double)test_between(&r, 0, 60) / 4;
        for (int i = 0; i < n; i++) x[i] = (float)(spread * (double)random_normal(&r)) + 100;
        check(x, n);
    }
    test_free(x);
}

static void edges(void **state) {
    (void)state;
    float one[] = {-3.5f}, far[] = {0, -80, -1e30f, -INFINITY}, alike[512];
    assert_true(top_chance(one, 1, -3.5f) == 1);
    assert_true(top_chance(far, 4, 0) == 1);
    for (int i = 0; i < 512; i++) alike[i] = 7;
    assert_true(top_chance(alike, 512, 7) == 1.0 / 512);
    for (float d = 0; d > -30; d -= 0.001f) { // every part of the exponential
        float two[] = {0, d};
        check(two, 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_logits),
        cmocka_unit_test(edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
