// Every law of acceptance against the decoding loop: the oracle's S and the shares of its accepted lengths
// are the law's own, its scores have the spread that the interval claims, and a wrong alpha is seen.
#include "tests/support/check.h"

#include "tests/support/law_trial.h"

#include <math.h>
#include <string.h>

static LawTrial held(const char *law, int prompts, int tokens, uint64_t seed) {
    LawTrialSize size = {prompts, tokens, seed};
    LawTrial t;
    Error e = {0};
    if (!law_trial_run(law, &size, &t, &e)) fail_msg("%s: %s", law, e.text);
    return t;
}

static void check_share(const char *law, int i, double seen, double want, double n) {
    double se = sqrt(want * (1 - want) / n) + 1e-9;
    if (fabs(seen - want) > 4.5 * se)
        fail_msg("%s: a share of %g accepts %d, wanted %g +- %g", law, seen, i, want, se);
}

static void check_law(const char *law) {
    LawTrial t = held(law, 100, 256, 1);
    if (fabs(law_trial_score(&t)) > 3.3)
        fail_msg("%s: S %g in the loop, %g +- %g by the law", law, law_trial_seen(&t), t.S, t.se);
    if (t.drawn.se >= 0 && fabs(t.drawn.mean - t.S) > 4 * t.drawn.se)
        fail_msg("%s: S %g +- %g drawn, %g by the law", law, t.drawn.mean, t.drawn.se, t.S);
    for (int i = 1; i <= LAW_TRIAL_DEPTH; i++)
        check_share(law, i, t.seen.reached[i] / t.seen.settled, t.tail[i], t.seen.settled);
    double drafted = t.seen.drafted / t.seen.steps;
    if (t.drafts && fabs(drafted - t.at.drafted) > 4 * t.drafted_se)
        fail_msg("%s: %g drafted, wanted %g +- %g", law, drafted, t.at.drafted, t.drafted_se);
    if (t.drafts) assert_true(t.best.speedup >= t.at.speedup);
    law_trial_release(&t);
}

static void every_law_holds(void **state) {
    (void)state;
    static const char *const laws[] = {
        "sequence:alpha=0.8,gamma=5",
        "sequence:alpha=0.3,gamma=1",
        "sequence:alpha=0,gamma=3",
        "sequences:alpha=0.5,gamma=4,b=7",
        "sequences:alpha=0.9,gamma=10,b=2",
        "compression:alpha=0.6,gamma=4,b=5,f=3",
        "compression:alpha=0.7,gamma=3,b=2,bonus=drop",
        "compression:alpha=0.5,gamma=4,b=4,filling=20",
        "compression:alpha=0.6,gamma=3,shares=0.3:0:0.5:0.2",
        "compression:alpha=0.6,gamma=4,f=2,bonus=drop,filling=5,shares=0.1:0.2:0.3:0.4",
        "ctar:alpha=0.9:0.6:0.8:0.2,gamma=6",
        "ctar:alpha=0.9:0.8,gamma=3,bonus=drop",
        "drafting:gamma=6,eta=0.3",
        "drafting:gamma=3,eta=0",
        "drafting:levels=0:0.5:1,level_shares=0.1:0.3:0.6,alpha=0.1:0.5:0.95,gamma=8,eta=0.5",
    };
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) check_law(laws[i]);
}

// The squares of 50 scores: between the 0.01% and 99.99% quantiles of a chi-square.
static void intervals_are_as_wide_as_claimed(void **state) {
    (void)state;
    static const char *const laws[] = {"sequences:alpha=0.6,gamma=4,b=3", "compression:filling=8,f=2",
                                       "ctar:alpha=0.9:0.5", "drafting"};
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
        double squares = 0;
        for (uint64_t seed = 0; seed < 50; seed++) {
            LawTrial t = held(laws[i], 20, 48, 100 + seed);
            squares += law_trial_score(&t) * law_trial_score(&t);
            law_trial_release(&t);
        }
        if (squares < 20 || squares > 98) fail_msg("%s: 50 squared scores sum to %g", laws[i], squares);
    }
}

static void a_wrong_law_is_seen(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"sequence:alpha=0.7", "oracle:accept=0.65,draft=4"},
        {"sequences:alpha=0.7,b=3", "oracle:accept=0.7,draft=4,guesses=2"},
        {"compression:alpha=0.7,b=3", "oracle:accept=0.7,draft=4,guesses=3,bonus=drop"},
        {"compression:alpha=0.7,b=3,f=2", "oracle:accept=0.7,draft=4,guesses=3,f=2.3"},
        {"ctar:alpha=0.9:0.5", "oracle:accept=0.5:0.9,draft=4"},
        {"drafting:eta=0.3", "oracle:accept=0.3:0.6:0.9,levels=0.3:0.6:0.9,level_shares=0.2:0.3:0.5,draft=4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        LawTrialSize size = {100, 256, 1};
        LawTrial t = held(cases[i][0], 100, 256, 1);
        Error e = {0};
        if (!law_trial_loop(cases[i][1], &size, &t.seen, &e)) fail_msg("%s", e.text);
        if (fabs(law_trial_score(&t)) < 5)
            fail_msg("%s passes for %s: %g standard errors", cases[i][1], cases[i][0], law_trial_score(&t));
        law_trial_release(&t);
    }
}

static void refusals(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"sequense", "did you mean 'sequence'?"},
        {"sequence:b=3", "law 'sequence': there is no parameter 'b'"},
        {"sequence:alpha=0.5:0.6", "'alpha' has 2 numbers, must be one"},
        {"compression:shares=0.5:0.2", "a parameter outside its domain"},
        {"sequences:b=500,gamma=100", "500 guesses of 100 tokens are too many"},
        {"drafting:alpha=0.5", "3 'levels', 3 'level_shares' and 1 numbers in 'alpha'"},
        {"drafting:level_shares=0.5:0.2:0.1", "shares sum to 0.8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        LawTrialSize size = {2, 8, 1};
        LawTrial t;
        Error e = {0};
        if (law_trial_run(cases[i][0], &size, &t, &e) || !strstr(e.text, cases[i][1]))
            fail_msg("%s: wanted '%s', got '%s'", cases[i][0], cases[i][1], e.text);
        law_trial_release(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_law_holds),
        cmocka_unit_test(intervals_are_as_wide_as_claimed),
        cmocka_unit_test(a_wrong_law_is_seen),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
