// Tuning on the draft of the reference family, by a clock that counts passes and rows, for machines on which
// rows are nearly free, and on which they cost as much as on a small processor: its choice against every
// point of the space, measured, on two datasets.
#include "tests/support/check.h"

#include "tests/support/folder.h"
#include "tests/support/tuned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double dear_rows(void *state) {
    const Session *s = state;
    return 1e-3 * s->passes + 100e-6 * s->rows;
}

static double cheap_rows(void *state) {
    const Session *s = state;
    return 1e-3 * s->passes + 8e-6 * s->rows;
}

static Clock dear(const Session *target) { return (Clock){dear_rows, (void *)(uintptr_t)target}; }
static Clock cheap(const Session *target) { return (Clock){cheap_rows, (void *)(uintptr_t)target}; }

static bool never(void) { return false; }

typedef struct Case {
    const char *method, *dataset;
    Clock (*clock)(const Session *target);
    const char *axes[3];
} Case;

static void tune(Tuned *t, const Case *c, const char *db, bool exhaustive) {
    TuneAsk ask = {.method = c->method,
                   .target = "models/draft",
                   .dataset = c->dataset,
                   .limit = 24,
                   .engine = {.device = "cpu", .threads = 1},
                   .max_tokens = 24,
                   .ignore_eos = true};
    for (int i = 0; i < 3 && c->axes[i]; i++) ask.axes.items[ask.axes.count++] = c->axes[i];
    TuneOptions o = {.budget_s = 1e5,
                     .share = 0.085,
                     .racers = 5,
                     .laps = 3,
                     .margin = 0.02,
                     .exhaustive = exhaustive,
                     .quiet = true};
    TuneSeams seams = {never, c->clock};
    tuned_open(t, &ask, &o, &seams, db);
}

// Within 3% of the sweep's best, at a tenth of its time at most.
static void finds(void **state) {
    static const Case CASES[] = {
        {"ngrammys", "code", dear, {"k=1..8", "w=1..8"}},
        {"lookahead", "summarisation", dear, {"W=1..5", "N=2..4", "G=1..4"}},
        {"ngrammys", "summarisation", cheap, {"k=1..8", "w=1..8"}},
        {"lookahead", "code", cheap, {"W=1..6,8", "N=2..5", "G=1..4"}},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Tuned *one = calloc(1, sizeof *one), *every = calloc(1, sizeof *every);
        const char *db = folder_path(*state, "tune.db");
        tune(one, &CASES[i], db, false);
        tune(every, &CASES[i], db, true);
        const TuneResult *r = &one->result, *truth = &every->result;
        double best = tune_speedup(truth, truth->choice, 0), chosen = tune_speedup(truth, r->choice, 0);
        printf("%s on %s: %d points, best %.3f, chosen %.3f (%.1f%% less); %.1f s of %.1f s\n",
               CASES[i].method, CASES[i].dataset, r->points, best, chosen, 100 * (1 - chosen / best),
               tuned_took(r), tuned_took(truth));
        fflush(stdout);
        if (chosen < 0.97 * best) fail_msg("more than 3%% from the best");
        if (tuned_took(r) > 0.1 * tuned_took(truth)) fail_msg("more than a tenth of the sweep's time");
        assert_true(r->diverged == 0 && truth->diverged == 0);
        tuned_release(one), tuned_release(every);
        free(one), free(every);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds)};
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
