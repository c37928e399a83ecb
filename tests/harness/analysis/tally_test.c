// Metrics against sums written out; intervals against the truth over many experiments.
#include "tests/support/check.h"

#include "harness/analysis/estimates.h"

#include <math.h>

enum { PROMPTS = 20, PASSES = 3, PAIRS = PROMPTS * PASSES };

// The point is 1.5 times as fast on average, prompts differ, and passes a little.
static int draw(Random *r, TallyPair *pairs) {
    int n = 0;
    for (int prompt = 0; prompt < PROMPTS; prompt++) {
        double length = 50 + 100 * random_uniform(r), gain = 1.5 * exp(0.2 * (double)random_normal(r));
        for (int pass = 0; pass < PASSES; pass++) {
            TallyPair *p = &pairs[n++];
            *p = (TallyPair){.prompt = prompt, .pass = pass, .tokens = length, .base_tokens = length};
            p->base_decode_s = 0.01 * length * (1 + 0.01 * (double)random_normal(r));
            p->decode_s = p->base_decode_s / gain * (1 + 0.01 * (double)random_normal(r));
            p->steps = length / gain;
            p->accepted = length - p->steps;
            p->drafted = 4 * p->steps;
            p->prefill_s = p->base_prefill_s = 0.2;
        }
    }
    return n;
}

static void close_to(double want, double got) {
    if (!(fabs(want - got) <= 1e-12 * fabs(want))) fail_msg("wanted %.15g, got %.15g", want, got);
}

static void sums(void **state) {
    (void)state;
    TallyPair pairs[] = {
        {.prompt = 1,
         .tokens = 10,
         .steps = 4,
         .decode_s = 2,
         .prefill_s = 1,
         .base_tokens = 10,
         .base_decode_s = 6,
         .base_prefill_s = 1.5,
         .prefill_tokens = 1,
         .prefill_steps = 1,
         .accepted = 6,
         .drafted = 12},
        {.prompt = 0,
         .tokens = 30,
         .steps = 10,
         .decode_s = 3,
         .prefill_s = 1,
         .base_tokens = 20,
         .base_decode_s = 8,
         .base_prefill_s = 0.5,
         .prefill_tokens = 1,
         .prefill_steps = 1,
         .accepted = 20,
         .drafted = 30},
    };
    Tally t;
    tally(pairs, 2, false, &t);
    assert_int_equal(t.prompts, 2);
    close_to(40.0 / 14, t.value[TALLY_S]);
    close_to(26.0 / 42, t.value[TALLY_ACCEPTANCE]);
    close_to((14.0 / 30) / (5.0 / 40), t.value[TALLY_SPEEDUP]); // of a token: texts differ in length
    close_to((16.0 / 30) / (7.0 / 40), t.value[TALLY_SPEEDUP_E2E]);
    close_to((10.0 / 3 + 30.0 / 4) / (10.0 / 7.5 + 20.0 / 8.5), t.value[TALLY_SPECBENCH]);
    close_to(40.0 / 5, t.value[TALLY_RATE]);
    close_to(42.0 / 16, t.value[TALLY_S_REFERENCE]);
    close_to((14.0 / 30) / (5.0 / 40) / (40.0 / 14), t.value[TALLY_OVER_S]);
    close_to(40.0 / 7, t.value[TALLY_RATE_E2E]);
    pairs[0].pass = 7; // each prompt in a pass of its own: the mean of two ratios
    tally(pairs, 2, false, &t);
    close_to(((10.0 / 3) / (10.0 / 7.5) + (30.0 / 4) / (20.0 / 8.5)) / 2, t.value[TALLY_SPECBENCH]);
    assert_true(t.has_interval);
    tally(pairs, 2, true, &t);
    assert_false(t.has_interval);
    close_to(((10.0 / 3) / (10.0 / 7.5) + (30.0 / 4) / (20.0 / 8.5)) / 2, t.value[TALLY_SPECBENCH]);
}

static void empty_and_single(void **state) {
    (void)state;
    TallyPair one = {.tokens = 5, .steps = 5};
    Tally t;
    tally(&one, 0, false, &t);
    assert_true(isnan(t.value[TALLY_S]));
    tally(&one, 1, false, &t);
    assert_false(t.has_interval);
    close_to(1, t.value[TALLY_S]);
    assert_true(isnan(t.value[TALLY_SPEEDUP])); // no time was seen
    TallyPair two[] = {{.prompt = 0, .tokens = 5, .steps = 5}, {.prompt = 1, .tokens = 5, .steps = 4}};
    tally(two, 2, false, &t);
    assert_true(t.has_interval && t.interval[TALLY_S].low > 0);
    assert_true(isnan(t.interval[TALLY_SPEEDUP].low) && isnan(t.interval[TALLY_SPEEDUP].high));
    // A resample of only the empty answer has no S: it isn't 0.
    two[1] = (TallyPair){.prompt = 1};
    tally(two, 2, false, &t);
    assert_true(t.interval[TALLY_S].low == 1 && t.interval[TALLY_S].high == 1);
    assert_true(t.resamples[TALLY_S] > 0.7 * TALLY_RESAMPLES && t.resamples[TALLY_S] < 0.8 * TALLY_RESAMPLES);
    assert_int_equal(t.resamples[TALLY_SPEEDUP], 0);
}

// Without a baseline there is no speedup; the rest is unchanged.
static void alone(void **state) {
    (void)state;
    Random r = test_random(2);
    TallyPair pairs[PAIRS];
    Tally with, without;
    draw(&r, pairs);
    tally(pairs, PAIRS, false, &with);
    for (int i = 0; i < PAIRS; i++)
        pairs[i].base_tokens = pairs[i].base_decode_s = pairs[i].base_prefill_s = NAN;
    tally(pairs, PAIRS, false, &without);
    for (int m = 0; m < TALLY_METRICS; m++) {
        bool speedup =
            m == TALLY_SPEEDUP || m == TALLY_SPEEDUP_E2E || m == TALLY_SPECBENCH || m == TALLY_OVER_S;
        if (speedup) assert_true(isnan(without.value[m]) && isnan(without.interval[m].low));
        else assert_memory_equal(&without.interval[m], &with.interval[m], sizeof(Interval));
        assert_int_equal(without.resamples[m], speedup ? 0 : TALLY_RESAMPLES);
    }
}

// Of 95% intervals about 95 in 100 hold the truth: fewer than 85 of 100 would come once in 10^4, more
// prompts in place of passes would make them far too narrow.
static void coverage(void **state) {
    (void)state;
    enum { RUNS = 100 };
    Random r = test_random(1);
    int held = 0;
    const double truth = 1.5 / exp(0.5 * 0.04); // harmonic: E[1/gain] = exp(s^2/2) / 1.5
    for (int run = 0; run < RUNS; run++) {
        TallyPair pairs[PAIRS];
        Tally t;
        tally(pairs, draw(&r, pairs), false, &t);
        const Interval *i = &t.interval[TALLY_SPEEDUP];
        assert_true(i->low <= t.value[TALLY_SPEEDUP] && t.value[TALLY_SPEEDUP] <= i->high);
        held += i->low <= truth && truth <= i->high;
    }
    if (held < 85) fail_msg("%d of %d intervals hold the truth", held, RUNS);
}

static TallyPair turn(int prompt, int pass, double x) {
    return (TallyPair){prompt, pass,  x,     2 * x, 3 * x,  4 * x, 5 * x,
                       6 * x,  7 * x, 8 * x, 9 * x, 10 * x, 11 * x};
}

static void same_pair(TallyPair want, const TallyPair *got) {
    assert_memory_equal(got, &want, sizeof want); // sums of small whole numbers, and no padding
}

// A prompt's turns in a pass become one pair, whatever their order; other passes stay apart.
static void turns(void **state) {
    (void)state;
    TallyPair pairs[5];
    pairs[0] = turn(2, 0, 5);
    pairs[1] = turn(1, 1, 7);
    pairs[2] = turn(1, 0, 1);
    pairs[3] = turn(2, 0, 6);
    pairs[4] = turn(1, 0, 10);
    assert_int_equal(tally_sum_turns(pairs, 5), 3);
    same_pair(turn(1, 0, 11), &pairs[0]);
    same_pair(turn(1, 1, 7), &pairs[1]);
    same_pair(turn(2, 0, 11), &pairs[2]);
    assert_int_equal(tally_sum_turns(pairs, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(alone), cmocka_unit_test(sums),
                                       cmocka_unit_test(turns), cmocka_unit_test(empty_and_single),
                                       cmocka_unit_test(coverage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
