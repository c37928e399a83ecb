// Plans of random costs: they fit, an earlier larger one doesn't, and more time never gives less.
#include "tests/support/check.h"

#include "simulate/plan.h"

enum { MOST = 12, ROUNDS = 2000 };

static PlanCosts random_costs(double *points, Random *r) {
    int count = 1 + (int)random_below(r, MOST);
    for (int i = 0; i < count; i++) points[i] = 0.1 + random_uniform(r);
    return (PlanCosts){0.2 * random_uniform(r), 1 + random_uniform(r), points, count};
}

static double seconds_of(const PlanCosts *c, PlanSample s) {
    double round = c->baseline;
    for (int i = 0; i < s.points; i++) round += c->points[i];
    return s.points * c->begin + s.prompts * round;
}

static void samples(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int n = 0; n < ROUNDS; n++) {
        double points[MOST], time = 0, before = 0;
        PlanCosts c = random_costs(points, &r);
        int prompts = 1 + (int)random_below(&r, 6), least = 1 + (int)random_below(&r, 8);
        for (int step = 0; step < 60; step++, time += random_uniform(&r)) {
            PlanSample s = plan_sample(&c, prompts, least, time);
            if (s.points == 0) {
                assert_true(seconds_of(&c, (PlanSample){c.count < 2 ? 1 : 2, 1}) > time);
                continue;
            }
            double cells = (double)s.points * s.prompts;
            assert_true(seconds_of(&c, s) <= time);
            assert_true(s.points <= c.count && s.prompts <= prompts);
            assert_true(s.points >= (c.count < 2 ? 1 : 2));
            if (s.points < c.count) assert_true(s.prompts <= PLAN_PROMPTS);
            if (s.points < least && s.points < c.count) assert_int_equal(s.prompts, 1);
            assert_true(cells >= before);
            before = cells;
        }
        assert_int_equal(plan_sample(&c, prompts, least, 1e9).points, c.count);
        assert_int_equal(plan_sample(&c, prompts, least, 1e9).prompts, prompts);
    }
}

static void races(void **state) {
    (void)state;
    Random r = test_random(2);
    for (int n = 0; n < ROUNDS; n++) {
        double points[MOST], time = 100 * random_uniform(&r);
        PlanCosts c = random_costs(points, &r);
        int racers = plan_racers(&c, time);
        assert_true(racers >= 0 && racers <= c.count);
        if (racers) assert_true(racers * c.begin + PLAN_ROUNDS * plan_round(&c, racers) <= time);
        if (racers < c.count)
            assert_true((racers + 1) * c.begin + PLAN_ROUNDS * plan_round(&c, racers + 1) > time);
    }
}

// In the least time that tells something there is a sample of that size, and a race of two after it.
static void least(void **state) {
    (void)state;
    Random r = test_random(3);
    for (int n = 0; n < ROUNDS; n++) {
        double points[MOST];
        PlanCosts c = random_costs(points, &r);
        int least = 2 + (int)random_below(&r, 8), fit = least < c.count ? least : c.count;
        double sample = seconds_of(&c, (PlanSample){fit, PLAN_PROMPTS}), all = plan_least(&c, least);
        assert_true(plan_sample(&c, PLAN_PROMPTS, least, sample + 1e-9).points == fit);
        assert_true(plan_racers(&c, all - sample + 1e-9) >= (c.count < PLAN_RACERS ? c.count : PLAN_RACERS));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples),
        cmocka_unit_test(races),
        cmocka_unit_test(least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
