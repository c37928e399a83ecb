// Designs on grids and random places, against the promise itself: no place is far from all that are chosen.
#include "tests/support/check.h"

#include "simulate/design.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 120, AXES = 3 };

static double distance(const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < AXES; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

// How far the worst allowed place is from the nearest chosen one.
static double cover(const double *places, const bool *allowed, const int *chosen, int n) {
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        double near = HUGE_VAL;
        for (int k = 0; k < n; k++) near = fmin(near, distance(places + i * AXES, places + chosen[k] * AXES));
        if (!allowed || allowed[i]) worst = fmax(worst, near);
    }
    return worst;
}

static void random_places(double *places, Random *r) {
    for (int i = 0; i < COUNT * AXES; i++) places[i] = random_uniform(r);
}

// Chosen places are different and allowed, the same again, and cover no worse than random ones do.
static void covers(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 50; round++) {
        double places[COUNT * AXES], random_cover = 0;
        bool allowed[COUNT], taken[COUNT] = {false};
        int chosen[12], again[12];
        random_places(places, &r);
        for (int i = 0; i < COUNT; i++) allowed[i] = random_uniform(&r) < 0.7;
        int n = design_points(places, allowed, COUNT, AXES, 12, chosen);
        assert_int_equal(n, 12);
        for (int i = 0; i < n; i++) {
            assert_true(allowed[chosen[i]] && !taken[chosen[i]]);
            taken[chosen[i]] = true;
        }
        assert_int_equal(design_points(places, allowed, COUNT, AXES, 12, again), 12);
        assert_memory_equal(chosen, again, sizeof chosen);
        for (int k = 0; k < 20; k++) {
            for (int i = 0; i < n; i++) again[i] = test_between(&r, 0, COUNT - 1);
            random_cover += cover(places, allowed, again, n) / 20;
        }
        double got = cover(places, allowed, chosen, n);
        if (got > random_cover) fail_msg("round %d: covers %g, random places %g", round, got, random_cover);
    }
}

// On a line of 101 places: the middle, then the ends, then the quarters.
static void line(void **state) {
    (void)state;
    double places[101];
    int chosen[5];
    for (int i = 0; i < 101; i++) places[i] = i / 100.0;
    assert_int_equal(design_points(places, NULL, 101, 1, 5, chosen), 5);
    static const int WANTED[5] = {50, 0, 100, 25, 75};
    for (int i = 0; i < 5; i++)
        if (chosen[i] != WANTED[i]) fail_msg("choice %d: wanted %d, got %d", i, WANTED[i], chosen[i]);
}

// A space of fewer points than were asked for is taken whole; places that coincide are points all the same.
static void small(void **state) {
    (void)state;
    double places[4] = {0.5, 0.5, 0.5, 0.5};
    bool allowed[4] = {true, false, true, true}, none[4] = {false};
    int chosen[9], sum = 0;
    assert_int_equal(design_points(places, allowed, 4, 1, 9, chosen), 3);
    for (int i = 0; i < 3; i++) sum += 1 << chosen[i];
    assert_int_equal(sum, 1 + 4 + 8);
    assert_int_equal(design_points(places, none, 4, 1, 9, chosen), 0);
    assert_int_equal(design_points(places, NULL, 4, 1, 0, chosen), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers),
        cmocka_unit_test(line),
        cmocka_unit_test(small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
