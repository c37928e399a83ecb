#include "tests/support/check.h"

#include "tests/support/drafting.h"
#include "simulate/laws.h"

#include <math.h>
#include <string.h>

enum { MOST_BINS = 8 };

static Draft draw_draft(Random *r, ConfidenceBin *bins) {
    Draft d = {.bins = bins, .count = (size_t)test_between(r, 1, MOST_BINS)};
    double sum = 0;
    for (size_t i = 0; i < d.count; i++) {
        bins[i] = (ConfidenceBin){random_uniform(r), random_uniform(r) + 0.01, random_uniform(r)};
        sum += bins[i].share;
    }
    for (size_t i = 0; i < d.count; i++) bins[i].share /= sum;
    d.cost = (DraftCost){random_uniform(r) * 0.3, 0.5 + random_uniform(r), random_uniform(r) * 0.05};
    return d;
}

// Compression from the measured CTARs is the mean of the tokens that the same steps emitted.
static void compression_is_the_sum_of_ctar(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int n = 0; n < 300; n++) {
        int accepted[40], gamma = test_between(&r, 1, 8), steps = test_between(&r, 1, 40);
        double ctar[8], kept = 0, dropped = 0;
        for (int i = 0; i < steps; i++) {
            accepted[i] = test_between(&r, 0, gamma);
            kept += accepted[i] + 1;
            dropped += accepted[i] < gamma ? accepted[i] + 1 : gamma;
        }
        for (int w = 1; w <= gamma; w++) ctar[w - 1] = ctar_measured(accepted, (size_t)steps, w);
        for (int w = 1; w < gamma; w++) assert_true(ctar[w] <= ctar[w - 1]);
        assert_true(ctar_measured(accepted, (size_t)steps, 0) == 1);
        assert_true(fabs(compression_from_ctar(ctar, gamma, false) - kept / steps) < 1e-12);
        assert_true(fabs(compression_from_ctar(ctar, gamma, true) - dropped / steps) < 1e-12);
    }
}

// The law's tail is its CTAR.
static void law_has_ctar(void **state) {
    (void)state;
    Law law = {.alpha = 0.6, .f = 2, .gamma = 5, .b = 3};
    double ctar[5];
    for (int w = 1; w <= 5; w++) ctar[w - 1] = law_tail(&law, w);
    assert_true(fabs(compression_from_ctar(ctar, 5, false) - law_tokens(&law)) < 1e-12);
    law.terms = LAW_BONUS_DROPPED;
    assert_true(fabs(compression_from_ctar(ctar, 5, true) - law_tokens(&law)) < 1e-12);
}

// Without stopping, tokens a step are Eq. 4 of the mean acceptance, and gamma tokens are drafted.
static void no_stopping_is_speculative_decoding(void **state) {
    (void)state;
    Random r = test_random(2);
    for (int n = 0; n < 500; n++) {
        ConfidenceBin bins[MOST_BINS];
        Draft d = draw_draft(&r, bins);
        double alpha = 0;
        for (size_t i = 0; i < d.count; i++) alpha += bins[i].share * bins[i].right;
        if (n % 2) bins[0].level = 0; // a level of 0 does not stop a fixed draft
        int gamma = test_between(&r, 0, 12);
        DraftChoice c = draft_at(&d, gamma, 0);
        double tokens = law_compression(&(Law){.alpha = alpha, .f = 1, .gamma = gamma, .b = 1});
        assert_true(fabs(c.tokens - tokens) < 1e-9 && fabs(c.drafted - gamma) < 1e-9);
        DraftChoice none = draft_at(&d, 0, 0.5);
        assert_true(none.tokens == 1 && none.drafted == 0 && none.speedup == 1 / d.cost.verify);
    }
}

// Stopping sooner never drafts more or emits more; a longer draft never emits less.
static void monotone(void **state) {
    (void)state;
    Random r = test_random(3);
    for (int n = 0; n < 2000; n++) {
        ConfidenceBin bins[MOST_BINS];
        Draft d = draw_draft(&r, bins);
        int gamma = test_between(&r, 0, 12);
        double eta = random_uniform(&r), more = eta + (1 - eta) * random_uniform(&r);
        DraftChoice a = draft_at(&d, gamma, eta), b = draft_at(&d, gamma, more),
                    longer = draft_at(&d, gamma + 1, eta);
        assert_true(b.tokens <= a.tokens + 1e-12 && b.drafted <= a.drafted + 1e-12);
        assert_true(longer.tokens >= a.tokens - 1e-12);
        assert_true(a.tokens >= 1 && a.tokens <= a.drafted + 1 + 1e-12 && isfinite(a.speedup));
    }
}

// The best is as fast as any choice on a fine grid; free drafting takes all, costly drafting none.
static void best(void **state) {
    (void)state;
    Random r = test_random(4);
    for (int n = 0; n < 200; n++) {
        ConfidenceBin bins[MOST_BINS];
        Draft d = draw_draft(&r, bins);
        DraftChoice top = draft_best(&d, 10);
        for (int gamma = 0; gamma <= 10; gamma++)
            for (double eta = 0; eta <= 1; eta += 0.01) {
                DraftChoice c = draft_at(&d, gamma, eta);
                if (c.speedup > top.speedup + 1e-12)
                    fail_msg("best is %g at (%d, %g), but (%d, %g) gives %g", top.speedup, top.gamma, top.eta,
                             gamma, eta, c.speedup);
            }
        d.cost = (DraftCost){0, 1, 0};
        for (size_t i = 0; i < d.count; i++) bins[i].right = 0.5;
        top = draft_best(&d, 10);
        assert_true(top.gamma == 10 && top.eta == 0);
        d.cost.draft = 2;
        assert_int_equal(draft_best(&d, 10).gamma, 0);
    }
}

static void domains(void **state) {
    (void)state;
    ConfidenceBin bins[2] = {{0.2, 0.5, 0.5}, {0.9, 0.5, 1}};
    Draft d = {bins, 2, {0.1, 1, 0}};
    Error e = {0};
    assert_true(draft_check(&d, &e));
    bins[1].share = 0.4;
    assert_false(draft_check(&d, &e));
    assert_non_null(strstr(e.text, "sum to 0.9"));
    bins[1].share = NAN;
    assert_false(draft_check(&d, &e));
    bins[1].share = 0.5;
    d.cost.verify = 0;
    assert_false(draft_check(&d, &e));
    d.cost.verify = INFINITY;
    assert_false(draft_check(&d, &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(compression_is_the_sum_of_ctar),
                                       cmocka_unit_test(law_has_ctar),
                                       cmocka_unit_test(no_stopping_is_speculative_decoding),
                                       cmocka_unit_test(monotone),
                                       cmocka_unit_test(best),
                                       cmocka_unit_test(domains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
