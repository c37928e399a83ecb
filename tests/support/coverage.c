#include "tests/support/coverage.h"

#include "tests/support/check.h"

#include "engine/base/text.h"
#include "simulate/fit.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

enum { STEPS = 60 }; // of each prompt at each point

static const double ALPHA = 0.5, PHI = 0.4; // PHI: mean over prompts

static const int POINTS[][2] = {{3, 3}, {4, 8}, {6, 5}, {6, 15}}; // N, W
enum { POINT_COUNT = sizeof POINTS / sizeof *POINTS };

// A row: the lengths that one prompt's steps accepted at one point, and their S.
static void draw_row(gsl_rng *random, int N, int W, double phi, int prompt, Text *out) {
    double share[8], tokens = 0;
    unsigned count[8];
    Law law = {.alpha = ALPHA, .f = 1 / fmax(phi, 1e-9), .gamma = N - 1, .b = W};
    for (int i = 0; i < N; i++) share[i] = law_tail(&law, i) - law_tail(&law, i + 1);
    gsl_ran_multinomial(random, (size_t)N, STEPS, share, count);
    for (int i = 0; i < N; i++) tokens += (i + 1) * (double)count[i];
    text_printf(out, "%d\t%d\t%d\t%.17g\tp%d\t%d\t", N, W, W, tokens / STEPS, prompt, STEPS);
    for (int i = 0; i < N; i++) text_printf(out, "%s%d:%u", i ? "," : "", i, count[i]);
    text_puts(out, "\n");
}

static void draw_points(gsl_rng *random, int prompts, Points *out) {
    Text t = {0};
    text_puts(&t, "N\tW\tG\tS\tprompt\tsteps\taccepted\n");
    for (int p = 0; p < prompts; p++) {
        double phi = gsl_ran_beta(random, 6 * PHI, 6 * (1 - PHI));
        for (int i = 0; i < POINT_COUNT; i++) draw_row(random, POINTS[i][0], POINTS[i][1], phi, p, &t);
    }
    assert_true(points_parse(text_get(&t), t.length, "drawn", out, NULL));
    text_release(&t);
}

typedef struct {
    int alpha, f;
} Held;

static void count_held(const FitEstimate *x, Held *held) {
    assert_true(x->given && x->drawn == DRAWN_PROMPTS);
    held->alpha += x->alpha.low <= ALPHA && x->alpha.high >= ALPHA;
    held->f += x->f.low <= 1 / PHI && x->f.high >= 1 / PHI;
}

static void assert_covers(const char *what, int held, int draws) {
    print_message("%s: held %d times in %d\n", what, held, draws);
    double off = 3 * sqrt(0.95 * 0.05 / draws); // and percentile intervals are known to be a little narrow
    if (held < (0.93 - off) * draws || held > (0.96 + off) * draws)
        fail_msg("%s: 95%% intervals held the truth %d times in %d", what, held, draws);
}

void coverage_run(int prompts, int draws, int resamples) {
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    Held squares = {0}, lengths = {0};
    gsl_rng_set(random, (unsigned long)test_seed());
    for (int n = 0; n < draws; n++) {
        FitOptions o = {.resamples = resamples, .level = 0.95, .seed = (uint64_t)n, .alone = true};
        Points p;
        Fit fit;
        Error e = {0};
        draw_points(random, prompts, &p);
        if (!fit_run(&p, &o, &fit, &e)) fail_msg("%s", e.text);
        count_held(&fit.least_squares, &squares);
        count_held(&fit.likelihood, &lengths);
        fit_release(&fit);
        points_release(&p);
    }
    gsl_rng_free(random);
    assert_covers("alpha by least squares", squares.alpha, draws);
    assert_covers("f by least squares", squares.f, draws);
    assert_covers("alpha by likelihood", lengths.alpha, draws);
    assert_covers("f by likelihood", lengths.f, draws);
}
