// Races of known runners, over and over: how often the best is lost, and how soon the slow are out.
#include "tests/support/check.h"

#include "simulate/tuning.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RACERS = 5, PROMPTS = 63, RACES = 1000 };
static const RaceRule RULE = {.level = 0.05, .margin = 0.02};

typedef struct Race {
    double seconds[RACERS][PROMPTS];
    bool out[RACERS];
    int leader, prompts; // when it ended
} Race;

// Prompts are long and short for all alike; what a racer makes of one, and the machine's noise, are its own.
static void run_race(Race *race, const double *speed, double own, Random *r) {
    *race = (Race){.leader = -1};
    for (int p = 0; p < PROMPTS; p++) {
        double length = 0.5 + random_uniform(r);
        for (int i = 0; i < RACERS; i++)
            race->seconds[i][p] = length / speed[i] * exp(own * (double)random_normal(r) - own * own / 2);
    }
    for (int p = 1; p <= PROMPTS; p++) {
        double seen[RACERS * PROMPTS];
        int look = race_look_at(p), left = 0;
        if (!look) continue;
        for (int i = 0; i < RACERS; i++) memcpy(seen + i * p, race->seconds[i], (size_t)p * sizeof *seen);
        race->leader = race_look(&RULE, seen, RACERS, p, look, race->out);
        race->prompts = p;
        assert_false(race->out[race->leader]);
        for (int i = 0; i < RACERS; i++) left += !race->out[i];
        if (left == 1) return;
    }
}

// The best, ahead by a little more than the margin, is lost in fewer races than the level says.
static void best_stays(void **state) {
    (void)state;
    Random r = test_random(1);
    static const double SPEED[RACERS] = {0.97, 0.9, 1, 0.97, 0.8};
    int lost = 0, found = 0;
    for (int n = 0; n < RACES; n++) {
        Race race;
        run_race(&race, SPEED, 0.1, &r);
        lost += race.out[2];
        found += race.leader == 2;
    }
    printf("lost %d, found %d of %d\n", lost, found, RACES);
    assert_true(lost <= RULE.level * RACES);
    assert_true(found >= 0.7 * RACES);
}

// Those that are all alike end their race, too, and whoever is left is as good as any.
static void equals(void **state) {
    (void)state;
    Random r = test_random(2);
    static const double SPEED[RACERS] = {1, 1, 1, 1, 1};
    int ended = 0;
    for (int n = 0; n < RACES / 10; n++) {
        Race race;
        run_race(&race, SPEED, 0.01, &r);
        ended += race.prompts < PROMPTS;
    }
    assert_true(ended > 0.9 * RACES / 10);
}

// Twice as slow at every prompt: out at the first look. No spread at all: out as well.
static void slow(void **state) {
    (void)state;
    Random r = test_random(3);
    static const double SPEED[RACERS] = {1, 0.5, 0.5, 0.4, 0.3};
    for (int n = 0; n < 2; n++) {
        Race race;
        run_race(&race, SPEED, n ? 0.05 : 0, &r);
        assert_int_equal(race.prompts, 4);
        assert_int_equal(race.leader, 0);
    }
}

// Looks are ever further apart, and each has the next number.
static void looks(void **state) {
    (void)state;
    int last = 0, before = 0, gap = 1;
    for (int p = 0; p < 1000; p++) {
        int look = race_look_at(p);
        if (!look) continue;
        assert_int_equal(look, last + 1);
        assert_true(last == 0 ? p == 4 : p - before >= gap);
        gap = last == 0 ? 1 : p - before;
        last = look, before = p;
    }
    assert_true(last > 8 && last < 16);
}

// Against the ratio's spread over many drawings of the prompts.
static void least_ratio(void **state) {
    (void)state;
    Random r = test_random(4);
    int below = 0;
    enum { N = 20, DRAWS = 4000 };
    for (int n = 0; n < DRAWS; n++) {
        double a[N], b[N];
        for (int i = 0; i < N; i++) {
            b[i] = 0.5 + random_uniform(&r);
            a[i] = 1.1 * b[i] * (1 + 0.2 * (random_uniform(&r) - 0.5));
        }
        below += race_least_ratio(a, b, N, 0.1) < 1.1;
    }
    printf("the truth is above the bound in %.1f%%, wanted about 90%%\n", 100.0 * below / DRAWS);
    assert_true(below > 0.87 * DRAWS && below < 0.93 * DRAWS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_stays), cmocka_unit_test(equals),      cmocka_unit_test(slow),
        cmocka_unit_test(looks),      cmocka_unit_test(least_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
