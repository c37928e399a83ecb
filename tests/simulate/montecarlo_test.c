// Every closed form against the process drawn at random, each off by no more than its standard error allows:
// of hundreds of standardised differences, none is above five, and their squares average to one.
#include "tests/support/check.h"

#include "tests/support/montecarlo.h"

#include <math.h>

typedef struct {
    gsl_rng *random;
    double squares;
    int count;
} Held;

static int setup(void **state) {
    Held *h = calloc(1, sizeof *h);
    h->random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(h->random, (unsigned long)test_seed());
    *state = h;
    return 0;
}

static int teardown(void **state) {
    Held *h = *state;
    gsl_rng_free(h->random);
    free(h);
    return 0;
}

static void hold(Held *h, const char *what, const Law *law, double closed, Estimate drawn) {
    double off = closed - drawn.mean;
    if (drawn.se == 0 && fabs(off) < 1e-9) return;
    if (!(fabs(off) < 5 * drawn.se)) {
        if (law)
            print_message("input: alpha %g, f %g, gamma %d, b %g, terms %u\n", law->alpha, law->f, law->gamma,
                          law->b, law->terms);
        fail_msg("%s: closed form %.9g, drawn %.9g +- %.2g", what, closed, drawn.mean, drawn.se);
    }
    h->squares += off * off / drawn.se / drawn.se;
    h->count++;
}

// A standard error that is right makes the mean square one; a third off is six deviations at 600 draws.
static void assert_errors_right(const Held *h) {
    double mean = h->squares / h->count;
    if (fabs(mean - 1) > 6 * sqrt(2.0 / h->count)) fail_msg("mean square of %d is %g", h->count, mean);
}

static double between(gsl_rng *r, double low, double high) { return low + (high - low) * gsl_rng_uniform(r); }

static Law draw_law(gsl_rng *r, unsigned terms, double *share) {
    Law law = {.terms = terms, .f = between(r, 1, 4), .alpha = between(r, 0.1, 0.85)};
    law.gamma = 1 + (int)gsl_rng_uniform_int(r, 8);
    law.b = (double)gsl_rng_uniform_int(r, 9);
    law.filling = (int)gsl_rng_uniform_int(r, 4);
    law.share = share, law.share_count = 6;
    double sum = 0;
    for (int i = 0; i < 6; i++) sum += share[i] = gsl_rng_uniform(r);
    for (int i = 0; i < 6; i++) share[i] /= sum;
    return law;
}

static void tokens_and_tails(void **state) {
    Held *h = *state;
    double share[6];
    for (unsigned n = 0; n < 480; n++) {
        Law law = draw_law(h->random, n % 16 & ~(unsigned)LAW_FILLING, share);
        hold(h, "tokens", &law, law_tokens(&law), montecarlo_tokens(&law, 2000, h->random));
        int i = 1 + (int)gsl_rng_uniform_int(h->random, 3);
        Estimate tail = montecarlo_tail(&law, i, 2000, h->random);
        // A rare event's own error is not normal: it is held where it was seen some dozens of times.
        if (tail.mean * 2000 > 30) hold(h, "tail", &law, law_tail(&law, i), tail);
    }
    assert_errors_right(h);
}

static void compression_with_filling(void **state) {
    Held *h = *state;
    double share[6];
    for (unsigned n = 0; n < 200; n++) {
        Law law = draw_law(h->random, n % 16 | LAW_FILLING, share);
        int stop = 5 + (int)gsl_rng_uniform_int(h->random, 40);
        Estimate drawn = montecarlo_compression(&law, 400, stop, &law.output, h->random);
        hold(h, "S", &law, law_compression(&law), drawn);
    }
    assert_errors_right(h);
}

static void drafting(void **state) {
    Held *h = *state;
    for (int n = 0; n < 200; n++) {
        ConfidenceBin bins[4];
        Draft d = {bins, 4, {0.1, 1, 0}};
        for (int i = 0; i < 4; i++) bins[i] = (ConfidenceBin){0.25 * i, 0.25, between(h->random, 0.05, 0.95)};
        int gamma = 1 + (int)gsl_rng_uniform_int(h->random, 8);
        double eta = n % 4 ? gsl_rng_uniform(h->random) * 0.7 : 0;
        DraftChoice c = draft_at(&d, gamma, eta);
        DraftEstimate drawn = montecarlo_draft(&d, gamma, eta, 2000, h->random);
        hold(h, "tokens of a draft", NULL, c.tokens, drawn.tokens);
        hold(h, "drafted", NULL, c.drafted, drawn.drafted);
    }
    assert_errors_right(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tokens_and_tails, setup, teardown),
        cmocka_unit_test_setup_teardown(compression_with_filling, setup, teardown),
        cmocka_unit_test_setup_teardown(drafting, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
