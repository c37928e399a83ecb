// A method's space on a made-up machine: its sample's predictions for the whole space, and whether the best
// is among those that would race.
#include "tests/support/check.h"

#include "simulate/design.h"
#include "simulate/laws.h"
#include "simulate/tuning.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 400, CURVE = 12 };

typedef struct World {
    TuningPoint space[MOST];
    double S[MOST], rows[MOST], step_s[MOST], speedup[MOST]; // the truth
    double curve_rows[CURVE], curve_s[CURVE], token_s;
    int count;
} World;

static double step_time(double rows) { return 1e-3 * (1 + 0.03 * rows + 0.002 * fmax(0, rows - 40) * 4); }

// S follows the law and a slope that the law does not know; of the planned rows some are not run; the host
// takes a little for each guess.
static void make_world(World *w, double alpha, double f, double slope) {
    *w = (World){.token_s = step_time(1)};
    for (int i = 0; i < CURVE; i++) {
        w->curve_rows[i] = i ? 1 << i : 1;
        w->curve_s[i] = step_time(w->curve_rows[i]);
    }
    for (int W = 1; W <= 16; W *= 2)
        for (int N = 2; N <= 7; N++)
            for (int G = 1; G <= 16; G *= 2) {
                int i = w->count++, b = W < G ? W : G;
                TuningPoint *p = &w->space[i];
                *p = (TuningPoint){.N = N, .b = b, .rows = 1 + (N - 1.0) * (W + G)};
                p->place[0] = log2(W) / 4, p->place[1] = (N - 2) / 5.0, p->place[2] = log2(G) / 4;
                Law law = {.alpha = alpha, .f = f, .gamma = N - 1, .b = b};
                w->S[i] = 1 + (law_compression(&law) - 1) * exp(slope * p->place[0]);
                w->rows[i] = p->rows * (0.7 + 0.2 * p->place[1]);
                w->step_s[i] = step_time(w->rows[i]) + 1e-5 * G;
                w->speedup[i] = w->S[i] * w->token_s / w->step_s[i];
            }
}

// Measures a designed sample with errors, predicts all; gives how many points would race.
static int tune(const World *w, double noise, Random *r, TuningPrediction *out, TuningLaw *law, int *racers) {
    double places[MOST * 3];
    int chosen[9];
    TuningMeasured measured[9];
    for (int i = 0; i < w->count; i++) memcpy(places + 3 * i, w->space[i].place, 3 * sizeof *places);
    int n = design_points(places, NULL, w->count, 3, 9, chosen);
    for (int i = 0; i < n; i++) {
        int at = chosen[i];
        double S = fmax(1, w->S[at] * exp(noise * (double)random_normal(r)));
        measured[i] =
            (TuningMeasured){at, 100 * S, 100, 100 * w->rows[at], 100 * w->step_s[at], noise, noise};
        measured[i].seconds *= exp(noise * (double)random_normal(r));
    }
    double seconds[CURVE];
    memcpy(seconds, w->curve_s, sizeof seconds);
    TuningProblem p = {.space = w->space,
                       .count = w->count,
                       .axes = 3,
                       .measured = measured,
                       .measured_count = n,
                       .curve = {w->curve_rows, seconds, CURVE},
                       .token_s = w->token_s};
    assert_true(tuning_predict(&p, out, law, NULL));
    return tuning_choose(out, w->count, -1, 5, racers);
}

static int best_of(const World *w) {
    int best = 0;
    for (int i = 1; i < w->count; i++)
        if (w->speedup[i] > w->speedup[best]) best = i;
    return best;
}

// Whatever the world, one of five racers is within 3% of the best of 150 points, from nine measured ones.
static void finds(void **state) {
    (void)state;
    Random r = test_random(1);
    World *w = malloc(sizeof *w);
    double worst = 1;
    int near = 0, worlds = 60;
    for (int n = 0; n < worlds; n++) {
        TuningPrediction out[MOST];
        TuningLaw law;
        int racers[5];
        make_world(w, 0.2 + 0.6 * random_uniform(&r), 1 + 3 * random_uniform(&r), 0.3 * random_uniform(&r));
        int count = tune(w, 0.02, &r, out, &law, racers);
        double found = 0, best = w->speedup[best_of(w)];
        assert_true(count >= 1 && count <= 5);
        for (int i = 0; i < w->count; i++)
            if (!(isfinite(out[i].speedup) && out[i].S >= 1 && out[i].error >= 0))
                fail_msg("point %d: speedup %g, S %g, error %g", i, out[i].speedup, out[i].S, out[i].error);
        for (int i = 0; i < count; i++) found = fmax(found, w->speedup[racers[i]]);
        near += found >= 0.97 * best;
        worst = fmin(worst, found / best);
    }
    printf("within 3%% in %d of %d worlds, worst %.3f of the best\n", near, worlds, worst);
    assert_true(near >= 0.9 * worlds);
    assert_true(worst > 0.9);
    free(w);
}

// Without errors, and where the law is the truth, its parameters come back, and so does every point.
static void exact(void **state) {
    (void)state;
    Random r = test_random(2);
    World *w = malloc(sizeof *w);
    TuningPrediction out[MOST];
    TuningLaw law;
    int racers[5];
    make_world(w, 0.5, 2, 0);
    tune(w, 1e-4, &r, out, &law, racers);
    assert_true(law.given && fabs(law.alpha - 0.5) < 0.01 && fabs(law.f - 2) < 0.05);
    assert_int_equal(racers[0], best_of(w));
    for (int i = 0; i < w->count; i++)
        if (fabs(out[i].speedup / w->speedup[i] - 1) > 0.05)
            fail_msg("point %d: wanted %g, got %g", i, w->speedup[i], out[i].speedup);
    free(w);
}

// One measured point, or none, is no law: its S stands for all.
static void little(void **state) {
    (void)state;
    World *w = malloc(sizeof *w);
    TuningPrediction out[MOST];
    TuningLaw law;
    make_world(w, 0.5, 2, 0);
    TuningMeasured one = {.point = 7, .tokens = 150, .steps = 100, .rows = 500, .seconds = 1};
    TuningProblem p = {.space = w->space,
                       .count = w->count,
                       .axes = 3,
                       .measured = &one,
                       .curve = {w->curve_rows, w->curve_s, CURVE},
                       .token_s = w->token_s};
    for (; p.measured_count < 2; p.measured_count++) {
        assert_true(tuning_predict(&p, out, &law, NULL));
        assert_false(law.given);
        for (int i = 0; i < w->count; i++) assert_true(isfinite(out[i].speedup) && isfinite(out[i].error));
        assert_true(fabs(out[7].S - (p.measured_count ? 1.5 : 1)) < 1e-6);
    }
    free(w);
}

// The best goes first, the sure one second, then the most uncertain and the next best in turn; who cannot
// beat the first stays away.
static void choice(void **state) {
    static const TuningPrediction ALL[] = {
        {.speedup = 1.0, .error = 0.01}, {.speedup = 1.5, .error = 0.02}, {.speedup = 1.2, .error = 0.5},
        {.speedup = 1.4, .error = 0.1},  {.speedup = 1.45, .error = 0.1},
    };
    int chosen[5];
    (void)state;
    assert_int_equal(tuning_choose(ALL, 5, -1, 5, chosen), 4);
    assert_true(chosen[0] == 1 && chosen[1] == 2 && chosen[2] == 4 && chosen[3] == 3);
    assert_int_equal(tuning_choose(ALL, 5, 0, 5, chosen), 5);
    assert_true(chosen[0] == 1 && chosen[1] == 0 && chosen[2] == 4 && chosen[3] == 2 && chosen[4] == 3);
    assert_int_equal(tuning_choose(ALL, 5, 1, 2, chosen), 2);
    assert_true(chosen[0] == 1 && chosen[1] == 2);
    assert_int_equal(tuning_choose(ALL, 5, 0, 1, chosen), 1);
}

static void closing_in(void **state) {
    static const TuningPrediction ALL[] = {
        {.speedup = 1.0, .error = 0.01}, {.speedup = 1.5, .error = 0.02}, {.speedup = 1.2, .error = 0.5},
        {.speedup = 1.4, .error = 0.1},  {.speedup = 1.45, .error = 0.1},
    };
    int chosen[5];
    (void)state;
    assert_int_equal(tuning_close_in(ALL, (bool[]){true, true, false, false, false}, 5, 2, chosen), 2);
    assert_true(chosen[0] == 4 && chosen[1] == 2);
    assert_int_equal(tuning_close_in(ALL, (bool[]){true, true, false, false, false}, 5, 5, chosen), 3);
    assert_int_equal(tuning_close_in(ALL, (bool[]){false, true, true, true, true}, 5, 2, chosen), 0);
    assert_int_equal(tuning_close_in(ALL, (bool[]){true, false, true, true, true}, 5, 2, chosen), 1);
    assert_int_equal(chosen[0], 1);
}

// Rising stays as it is; what is out of order is pooled, and its product with it.
static void curve(void **state) {
    (void)state;
    double rows[6] = {1, 2, 4, 8, 16, 32}, seconds[6] = {1, 2, 8, 4, 2, 16};
    TuningCurve c = {rows, seconds, 6};
    tuning_curve_rise(&c);
    static const double WANTED[6] = {1, 2, 4, 4, 4, 16};
    for (int i = 0; i < 6; i++)
        if (fabs(seconds[i] - WANTED[i]) > 1e-12)
            fail_msg("row %d: wanted %g, got %g", i, WANTED[i], seconds[i]);
    assert_true(fabs(tuning_curve_at(&c, 3) - 3) < 1e-12);
    assert_true(fabs(tuning_curve_at(&c, 0.5) - 1) < 1e-12);
    assert_true(fabs(tuning_curve_at(&c, 24) - 10) < 1e-12);
    assert_true(fabs(tuning_curve_at(&c, 64) - 32) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds),  cmocka_unit_test(exact),      cmocka_unit_test(little),
        cmocka_unit_test(choice), cmocka_unit_test(closing_in), cmocka_unit_test(curve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
