#include "tests/support/check.h"

#include "engine/base/text.h"
#include "simulate/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const FitOptions PLAIN = {.resamples = 200, .level = 0.95};

// --- points made by the law ------------------------------------------------------------------------------

// A grid N x W = G, as a TSV without noise.
static void write_grid(Text *t, const Law *law, const int *Ns, int n_count, const int *Ws, int w_count) {
    text_puts(t, "N\tW\tG\tS\n");
    for (int n = 0; n < n_count; n++)
        for (int w = 0; w < w_count; w++) {
            Law here = *law;
            here.gamma = Ns[n] - 1, here.b = Ws[w], here.filling = Ns[n] - 2;
            text_printf(t, "%d\t%d\t%d\t%.17g\n", Ns[n], Ws[w], Ws[w], law_compression(&here));
        }
}

static void parse(const char *text, Points *p) {
    Error e = {0};
    if (!points_parse(text, strlen(text), "test", p, &e)) fail_msg("%s\n%s", text, e.text);
}

static void fit_text(const char *text, const FitOptions *o, Fit *fit) {
    Points p;
    Error e = {0};
    parse(text, &p);
    if (!fit_run(&p, o, fit, &e)) fail_msg("%s\n%s", text, e.text);
    points_release(&p);
}

static const int NS[] = {3, 4, 5, 7}, WS[] = {1, 5, 10, 15, 20};

static void assert_value(const char *what, double got, double wanted, double relative) {
    if (fabs(got / wanted - 1) > relative) fail_msg("%s: wanted %.12g, got %.12g", what, wanted, got);
}

static void papers_values_return(void **state) {
    (void)state;
    Text t = {0};
    Law law = {.alpha = 0.425, .f = 3.106};
    Fit fit;
    write_grid(&t, &law, NS, 4, WS, 5);
    text_puts(&t, "5\t15\t3\t1.4\n"); // W unlike G
    fit_text(text_get(&t), &PLAIN, &fit);
    assert_value("alpha", fit.best->alpha.value, 0.425, 1e-10);
    assert_value("f", fit.best->f.value, 3.106, 1e-10);
    assert_true(fit.best->alpha.low > 0.4249 && fit.best->alpha.high < 0.4251 && fit.best->rms < 1e-12);
    assert_true(fit.fitted == 20 && fit.count == 21 && !fit.predictions[20].fitted);
    law.gamma = 4, law.b = 3;
    assert_value("point not fitted", fit.predictions[20].predicted, law_compression(&law), 1e-9);
    for (int i = 0; i < fit.count; i++) {
        const FitPrediction *p = &fit.predictions[i];
        assert_true(p->low <= p->predicted && p->predicted <= p->high && p->high - p->low < 1e-6);
    }
    assert_true(fit.by_W.points[RIVAL_LAW] == 20 && fit.by_N.points[RIVAL_LAW] == 20);
    assert_true(fit.by_W.rms[RIVAL_LAW] < 1e-9 && fit.by_W.rms[RIVAL_LOG] > 0.01);
    fit_release(&fit);
    text_release(&t);
}

// Whatever (alpha, f), bonus and filling the points are made with, the same settings give them back.
static void any_values_return(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int n = 0; n < 60; n++) {
        Law law = {.alpha = 0.05 + 0.9 * random_uniform(&r), .f = 1 + 8 * random_uniform(&r)};
        FitOptions o = PLAIN;
        o.resamples = 2;
        if ((o.bonus_dropped = n & 1)) law.terms |= LAW_BONUS_DROPPED;
        if (n & 2) {
            o.output = law.output = 20 + 300 * random_uniform(&r);
            law.terms |= LAW_FILLING;
        }
        Text t = {0};
        Fit fit;
        write_grid(&t, &law, NS, 4, WS, 5);
        fit_text(text_get(&t), &o, &fit);
        assert_value("alpha", fit.best->alpha.value, law.alpha, 1e-6);
        assert_value("f", fit.best->f.value, law.f, 1e-6);
        fit_release(&fit);
        text_release(&t);
    }
}

// N = 5 alone with the bonus dropped: fitted as if it were kept the rms is tiny, and alpha and f are wrong.
// The right assumption stands beside it.
static void dropped_bonus_fits_wrongly(void **state) {
    (void)state;
    Text t = {0};
    Fit fit;
    Law law = {.alpha = 0.425, .f = 3.106, .terms = LAW_BONUS_DROPPED};
    write_grid(&t, &law, (int[]){5}, 1, WS, 5);
    fit_text(text_get(&t), &PLAIN, &fit);
    assert_true(fit.best->rms < 0.02 && fabs(fit.best->alpha.value - 0.425) > 0.02);
    assert_true(fit.other_count == 1 && fit.others[0].bonus_dropped && fit.others[0].rms < 1e-10);
    assert_value("alpha beside", fit.others[0].alpha, 0.425, 1e-9);
    assert_value("f beside", fit.others[0].f, 3.106, 1e-9);
    fit_release(&fit);
    text_release(&t);
}

// A fine grid over (alpha, phi) finds nothing better than least squares, on points with noise.
static void no_grid_point_is_better(void **state) {
    (void)state;
    Random r = test_random(2);
    int answers = 0;
    for (int n = 0; n < 8; n++) {
        Text t = {0};
        Points p;
        Sample s;
        LeastSquares fit;
        text_puts(&t, "N\tW\tG\tS\tse\n");
        for (int i = 0; i < 6; i++)
            text_printf(&t, "%d\t%d\t%d\t%.6f\t%.3f\n", 3 + i, 2 + 3 * i, 2 + 3 * i, 1.2 + random_uniform(&r),
                        0.01 + 0.05 * random_uniform(&r));
        parse(text_get(&t), &p);
        FitOptions o = PLAIN;
        if (n % 2) o.output = 100;
        assert_true(sample_open(&p, &o, &s, NULL));
        bool told = least_squares(&s, &fit, NULL); // S that falls where it should rise: alpha goes to 1
        answers += told;
        for (double alpha = 0.01; told && alpha < 1; alpha += 0.01)
            for (double phi = 0.01; phi <= 1; phi += 0.01) {
                double squares = 0;
                for (int i = 0; i < s.count; i++)
                    squares +=
                        pow((sample_predict(&s.points[i], alpha, phi) - s.points[i].S) / s.points[i].se, 2);
                if (squares < fit.squares * (1 - 1e-6))
                    fail_msg("(%g, %g) gives %g, but (%g, %g) %g", fit.alpha, fit.phi, fit.squares, alpha,
                             phi, squares);
            }
        sample_release(&s);
        points_release(&p);
        text_release(&t);
    }
    assert_true(answers >= 4);
}

// --- likelihood, refusals, warnings ----------------------------------------------------------------------

// One point with its accepted lengths, as many as the law expects: least squares refuses, the likelihood
// gives the values back, whatever the number of guesses differs by from step to step.
static void one_point_by_likelihood(void **state) {
    (void)state;
    Random r = test_random(3);
    for (int n = 0; n < 30; n++) {
        double share[20] = {0};
        Law law = {
            .alpha = 0.2 + 0.7 * random_uniform(&r), .f = 1 + 4 * random_uniform(&r), .gamma = 4, .b = 9};
        FitOptions o = PLAIN;
        if (n % 2) {
            o.law = FIT_CORRECTED;
            law.terms = LAW_CANDIDATES, law.share = share, law.share_count = 20;
            share[0] = 0.25, share[3] = 0.25, share[19] = 0.5;
        }
        Text t = {0};
        Fit fit;
        text_printf(&t, "N\tW\tG\tS\taccepted%s\n5\t9\t9\t%.17g\t", n % 2 ? "\tcandidates" : "",
                    law_compression(&law));
        for (int i = 0; i <= 4; i++)
            text_printf(&t, "%s%d:%.17g", i ? "," : "", i, 1e6 * (law_tail(&law, i) - law_tail(&law, i + 1)));
        text_puts(&t, n % 2 ? "\t0:1,3:1,19:2\n" : "\n");
        fit_text(text_get(&t), &o, &fit);
        assert_true(!fit.least_squares.given && strstr(fit.least_squares.refused.text, "1 point to fit"));
        assert_true(fit.best == &fit.likelihood && fit.best->drawn == DRAWN_STEPS);
        assert_value("alpha", fit.best->alpha.value, law.alpha, 1e-5);
        assert_value("f", fit.best->f.value, law.f, 1e-5);
        assert_true(fit.best->alpha.low < law.alpha && law.alpha < fit.best->alpha.high);
        assert_true(fit.best->alpha.high - fit.best->alpha.low < 0.05);
        fit_release(&fit);
        text_release(&t);
    }
}

static void refuses(void **state) {
    (void)state;
    static const struct {
        FitOptions o;
        const char *text, *said;
    } ROWS[] = {
        {{.resamples = 2, .level = 0.9}, "N\tW\tG\tS\n5\t9\t9\t1.5\n", "1 point to fit"},
        {{.resamples = 2, .level = 0.9}, "N\tW\tG\tS\n5\t9\t3\t1.5\n", "no point has W = G"},
        {{.resamples = 2, .level = 0.9}, "N\tW\tG\tS\n5\t9\t9\t1.5\n5\t3\t3\t1.5\n", "S is 1.5 at all 2"},
        {{.resamples = 2, .level = 0.9, .law = FIT_CORRECTED},
         "N\tW\tG\tS\n5\t9\t9\t1.5\n5\t3\t9\t1.6\n",
         "cannot be told apart"},
        {{.resamples = 2, .level = 0.9, .bonus_dropped = true},
         "N\tW\tG\tS\n2\t9\t9\t1.5\n3\t3\t3\t1.6\n",
         "N 2, W 9, G 9: S is 1.5, but a step emits 1 tokens at most"},
        {{.resamples = 2, .level = 0.9, .output = 10},
         "N\tW\tG\tS\n8\t9\t9\t1.8\n3\t3\t3\t1.6\n",
         "and filling steps one"},
        {{.resamples = 2, .level = 0.9, .output = 2},
         "N\tW\tG\tS\n8\t9\t9\t1.1\n3\t3\t3\t1.6\n",
         "are over before the 6 filling steps"},
        {{.resamples = 2, .level = 0.9}, "N\tW\tG\tS\taccepted\n5\t9\t9\t1\t0:10\n", "no step of a fitted"},
        {{.resamples = 2, .level = 0.9},
         "N\tW\tG\tS\taccepted\n2\t9\t9\t1.5\t0:5,1:5\n",
         "cannot tell alpha from f"},
        {{.resamples = 3,
          .seed = 3,
          .level = 0.9,
          .law = FIT_CORRECTED,
          .bonus_dropped = true,
          .output = 100},
         "N\tW\tG\tS\tse\n4\t5\t4\t1.5\t5\n4\t15\t15\t1.8\t90\n5\t51\t4\t1.6\t20\n",
         "only 1 of 3 resamples have an answer"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Points p;
        Fit fit;
        Error e = {0};
        parse(ROWS[i].text, &p);
        bool ok = fit_run(&p, &ROWS[i].o, &fit, &e);
        if (ok || e.kind != ERROR_INPUT || !strstr(e.text, ROWS[i].said))
            fail_msg("%s: wanted '%s', got '%s'", ROWS[i].text, ROWS[i].said, ok ? "a fit" : e.text);
        fit_release(&fit);
        points_release(&p);
    }
}

// Large N only, and few values of it: alpha and f move S alike, and the fit says so.
static void warns(void **state) {
    (void)state;
    Text t = {0};
    Fit fit;
    const char *warnings[FIT_MOST_WARNINGS];
    Law law = {.alpha = 0.1, .f = 2};
    write_grid(&t, &law, (int[]){6, 7}, 2, (int[]){1, 2}, 2);
    fit_text(text_get(&t), &PLAIN, &fit);
    assert_true(fit.best->condition > 15 && fit.best->correlation > 0.99);
    assert_int_equal(fit_warnings(fit.best, warnings), 2);
    fit_release(&fit);
    text_clear(&t);
    law.alpha = 0.425;
    write_grid(&t, &law, (int[]){3, 6}, 2, (int[]){2, 20}, 2);
    fit_text(text_get(&t), &PLAIN, &fit);
    assert_int_equal(fit_warnings(fit.best, warnings), 0);
    fit_release(&fit);
    text_release(&t);
}

// Points that the law made with normal errors: chi-square is as large as its degrees of freedom, on average,
// and twice their errors make it a quarter of that.
static void chi_square_of_noise(void **state) {
    (void)state;
    Random r = test_random(4);
    double sum = 0, chance = 0;
    FitOptions o = PLAIN;
    o.resamples = 2, o.alone = true;
    enum { DRAWS = 200 };
    for (int n = 0; n < DRAWS; n++) {
        Text t = {0};
        Fit fit;
        text_puts(&t, "N\tW\tG\tS\tse\n");
        for (int i = 0; i < 8; i++) {
            Law law = {.alpha = 0.5, .f = 2, .gamma = 3 + i % 4, .b = 3 + 4 * i};
            text_printf(&t, "%d\t%g\t%g\t%.9g\t0.01\n", law.gamma + 1, law.b, law.b,
                        law_compression(&law) + 0.01 * (double)random_normal(&r));
        }
        fit_text(text_get(&t), &o, &fit);
        assert_true(fit.chi_square_given && fit.freedom == 6);
        sum += fit.chi_square, chance += fit.chance;
        fit_release(&fit);
        text_release(&t);
    }
    if (fabs(sum / DRAWS - 6) > 6 * sqrt(12.0 / DRAWS)) fail_msg("mean chi-square %g, wanted 6", sum / DRAWS);
    assert_true(fabs(chance / DRAWS - 0.5) < 6 * sqrt(1.0 / 12 / DRAWS));
}

// Points that the law made with normal errors of 0.01: intervals hold the truth as often as they say, whether
// the errors are told or taken from the residuals.
static void errors_cover(void **state) {
    (void)state;
    Random r = test_random(5);
    enum { DRAWS = 120 };
    for (int told = 0; told < 2; told++) {
        int held = 0;
        for (int n = 0; n < DRAWS; n++) {
            Text t = {0};
            Fit fit;
            FitOptions o = {.resamples = 60, .level = 0.9, .seed = (uint64_t)n, .alone = true};
            text_puts(&t, told ? "N\tW\tG\tS\tse\n" : "N\tW\tG\tS\n");
            for (int i = 0; i < 12; i++) {
                Law law = {.alpha = 0.5, .f = 2, .gamma = 3 + i % 4, .b = 3 + 2 * i};
                text_printf(&t, "%d\t%g\t%g\t%.9g%s\n", law.gamma + 1, law.b, law.b,
                            law_compression(&law) + 0.01 * (double)random_normal(&r), told ? "\t0.01" : "");
            }
            fit_text(text_get(&t), &o, &fit);
            assert_true(fit.best->drawn == (told ? DRAWN_ERRORS : DRAWN_RESIDUALS));
            held += fit.best->alpha.low <= 0.5 && fit.best->alpha.high >= 0.5;
            fit_release(&fit);
            text_release(&t);
        }
        if (held < 0.8 * DRAWS || held > 0.97 * DRAWS)
            fail_msg("errors %s: 90%% intervals held the truth %d times in %d", told ? "told" : "not told",
                     held, DRAWS);
    }
}

// Prompts of their own phi: the rival that gives each its own predicts as well as the law, the one that gives
// positions their own rates is beaten. Points left out come back.
static void rivals(void **state) {
    (void)state;
    Points p;
    Sample s;
    LeaveOut by_N;
    Text t = {0};
    text_puts(&t, "N\tW\tG\tS\tprompt\tsteps\n");
    for (int prompt = 0; prompt < 3; prompt++)
        for (int i = 0; i < 12; i++) {
            Law law = {.alpha = 0.45, .f = 1.5 + prompt, .gamma = 2 + i % 3, .b = 2 + 5 * (i / 3)};
            text_printf(&t, "%d\t%g\t%g\t%.12g\tp%d\t%d\n", law.gamma + 1, law.b, law.b,
                        law_compression(&law), prompt, 100 + prompt);
        }
    parse(text_get(&t), &p);
    assert_true(sample_open(&p, &PLAIN, &s, NULL));
    leave_out(&s, &p, true, &by_N);
    assert_true(by_N.rms[RIVAL_LAW] < 1e-6 && by_N.rms[RIVAL_PROMPT] < 1e-3);
    for (int i = 0; i < RIVAL_COUNT; i++) assert_int_equal(by_N.points[i], 12);
    assert_true(by_N.rms[RIVAL_LOG] > 0.02 && by_N.rms[RIVAL_POSITION] > 0.02 && s.fitted == 12);
    for (int i = 0; i < s.count; i++) assert_true(s.points[i].fitted);
    sample_release(&s);
    points_release(&p);
    text_release(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(papers_values_return),
        cmocka_unit_test(any_values_return),
        cmocka_unit_test(dropped_bonus_fits_wrongly),
        cmocka_unit_test(no_grid_point_is_better),
        cmocka_unit_test(one_point_by_likelihood),
        cmocka_unit_test(refuses),
        cmocka_unit_test(warns),
        cmocka_unit_test(chi_square_of_noise),
        cmocka_unit_test(errors_cover),
        cmocka_unit_test(rivals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
