// The choice of experts against a slow one on random logits with ties, infinities and NaN.
#include "engine/core/experts.h"
#include "tests/support/check.h"

#include <math.h>

enum { ROUNDS = 3000, MOST = 40 };

// Whether expert a comes before b.
static bool before(const float *x, int a, int b) {
    float u = isnan(x[a]) ? INFINITY : x[a], v = isnan(x[b]) ? INFINITY : x[b];
    return u > v || (u == v && a < b);
}

static int rank_of(const float *x, int n, int which) {
    int rank = 0;
    for (int i = 0; i < n; i++) rank += i != which && before(x, i, which);
    return rank;
}

static double sum_of(const Experts *e, const float *x, double highest) {
    double sum = 0;
    for (int i = 0; i < e->count; i++)
        if (!e->renormalised || rank_of(x, e->count, i) < e->chosen) sum += exp((double)x[i] - highest);
    return sum;
}

static void compare(const Experts *e, const float *x) {
    Route r;
    double highest = -INFINITY;
    int at = 0;
    experts_choose(e, x, &r);
    for (int i = 0; i < e->count; i++) highest = (double)x[i] > highest ? (double)x[i] : highest;
    double sum = sum_of(e, x, highest);
    for (int i = 0; i < e->count; i++) {
        if (rank_of(x, e->count, i) >= e->chosen) continue;
        double want = exp((double)x[i] - highest) / sum;
        assert_int_equal(r.expert[at], i);
        if (isfinite(want)) assert_true(fabs((double)r.weight[at] - want) <= 1e-6 * want + 1e-30);
        else assert_true(isnan(r.weight[at]));
        at++;
    }
    assert_int_equal(at, e->chosen);
}

static void the_best_are_chosen(void **state) {
    (void)state;
    Random r = test_random(71);
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, 3e38f, -3e38f};
    for (int round = 0; round < ROUNDS; round++) {
        float x[MOST];
        Experts e = {.count = test_between(&r, 1, MOST), .renormalised = test_between(&r, 0, 1)};
        e.chosen = test_between(&r, 1, e.count);
        int step = test_between(&r, 0, 2), odds = test_between(&r, 0, 3);
        for (int i = 0; i < e.count; i++) {
            x[i] = random_normal(&r) * 3;
            if (step) x[i] = roundf(x[i] * (float)step); // many are equal
            if (odds == 0 && test_between(&r, 0, 9) == 0) x[i] = odd[test_between(&r, 0, 6)];
        }
        compare(&e, x);
    }
}

// A shared MLP's weight is a sigmoid, without overflow.
static void shared_weights(void **state) {
    (void)state;
    assert_true(experts_shared_weight(0) == 0.5f && experts_shared_weight(1e30f) == 1.0f);
    assert_true(experts_shared_weight(-1e30f) == 0.0f && isnan(experts_shared_weight(NAN)));
    assert_true(fabsf(experts_shared_weight(1) - 0.7310586f) < 1e-6f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_are_chosen),
                                       cmocka_unit_test(shared_weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
