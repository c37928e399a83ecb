// Points that `outpace fit RUN` reads from a store: samples drawn by the law itself come back as drawn, in
// the right sets, and their fit recovers the law.
#include "tests/support/check.h"

#include "harness/analysis/stored.h"
#include "results/sql.h"
#include "simulate/fit.h"
#include "tests/support/montecarlo.h"
#include "tests/support/folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PROMPTS = 6, STEPS = 400, GRID = 3 };

static const struct {
    const char *N, *W;
    int n, w;
} AT[GRID] = {{"3", "4", 3, 4}, {"5", "4", 5, 4}, {"5", "8", 5, 8}};

typedef struct Filled {
    Store *store;
    int64_t run, attempt, model, dataset, prompts[PROMPTS];
    int accepted[GRID][8]; // steps past filling by what they accepted, over all prompts
    int tokens[GRID], steps[GRID], number;
    bool unknown; // what guesses steps had
    gsl_rng *random;
} Filled;

static int64_t add_point(Filled *f, int at, const char *max_tokens, const char *preset) {
    int64_t id;
    char hash[32];
    snprintf(hash, sizeof hash, "%d", ++f->number);
    StoreParam params[] = {
        {"method", "N", AT[at].N},
        {"method", "W", AT[at].W},
        {"method", "G", AT[at].W},
        {"method", "preset", preset},
        {"method", "mode", "paper"},
        {"method", "bonus", "keep"},
        {"generation", "max_tokens", max_tokens},
        {"hardware", "threads", hash}, // changes no token
    };
    StorePoint p = {.number = f->number,
                    .hash = hash,
                    .model = f->model,
                    .dataset = f->dataset,
                    .method = "lookahead",
                    .decoder = "lookahead",
                    .label = "lookahead",
                    .params = params,
                    .param_count = sizeof params / sizeof *params};
    assert_true(store_point(f->store, f->run, &p, &id, NULL));
    return id;
}

// N - 2 steps of one token, then steps of the law.
static void add_sample(Filled *f, int64_t point, int at, int pass, int prompt, bool counted) {
    StoreStep steps[STEPS];
    Law law = {.alpha = 0.425, .f = 2, .gamma = AT[at].n - 1, .b = AT[at].w};
    int tokens = 0, filling = AT[at].n - 2;
    for (int i = 0; i < STEPS; i++) {
        int accepted = i < filling ? 0 : montecarlo_accepted(&law, f->random);
        steps[i] = (StoreStep){.kind = i < filling ? STORE_FILLING : STORE_STEADY,
                               .context = 10 + tokens,
                               .rows = 1,
                               .accepted = accepted,
                               .emitted = accepted + 1,
                               .pool = f->unknown ? -1 : 9,
                               .pool_hits = AT[at].w,
                               .device_s = -1};
        tokens += accepted + 1;
        if (counted && i >= filling) f->accepted[at][accepted]++;
    }
    StoreSample x = {.point = point,
                     .prompt = f->prompts[prompt],
                     .attempt = f->attempt,
                     .pass = pass,
                     .tokens = tokens,
                     .steps = steps,
                     .step_count = STEPS};
    assert_true(store_samples(f->store, &x, 1, NULL));
    if (counted) f->tokens[at] += tokens, f->steps[at] += STEPS;
}

static void fill(Filled *f, const char *folder) {
    char *argv[] = {"test"};
    StoreRun run = {.hash = "run", .kind = "sweep", .name = "law", .version = "1"};
    StoreEnvironment on = {.version = "1"};
    StoreModel model = {.name = "m", .hash = "1", .layers = 1};
    StoreDataset dataset = {.name = "d", .hash = "1"};
    f->random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(f->random, 5);
    f->store = store_open(folder_path(folder, "a.db"), STORE_WRITE, NULL, NULL);
    assert_true(f->store && store_begin(f->store, NULL) && store_run(f->store, &run, &f->run, NULL, NULL) &&
                store_attempt(f->store, f->run, 1, argv, &on, &f->attempt, NULL) &&
                store_model(f->store, &model, &f->model, NULL) &&
                store_dataset(f->store, &dataset, &f->dataset, NULL));
    for (int i = 0; i < PROMPTS; i++) {
        StorePrompt p = {.dataset = f->dataset, .number = i};
        assert_true(store_prompt(f->store, &p, &f->prompts[i], NULL));
    }
    // The last prompt is not measured everywhere; the first one twice, by a point that differs in threads.
    for (int at = 0; at < GRID; at++) {
        int64_t point = add_point(f, at, "64", "none");
        for (int i = 0; i < PROMPTS - (at == 1); i++) add_sample(f, point, at, 0, i, i < PROMPTS - 1);
        add_sample(f, point, at, 1, 0, true);
        add_sample(f, add_point(f, at, "64", "none"), at, 0, 0, true);
    }
    add_sample(f, add_point(f, 0, "32", "none"), 0, 0, 0, false);
    add_sample(f, add_point(f, 0, "64", "paper-7b"), 0, 0, 0, false);
    assert_true(store_commit(f->store, NULL));
}

static void check_rows(const Filled *f, const Points *p) {
    assert_int_equal(p->count, GRID);
    assert_int_equal(p->prompts, PROMPTS - 1);
    for (int at = 0; at < GRID; at++) {
        double steps = 0, tokens = 0, guesses = 0, accepted[8] = {0};
        assert_true(p->points[at].N == AT[at].n && p->points[at].W == AT[at].w &&
                    p->points[at].G == AT[at].w);
        for (int i = 0; i < p->prompts; i++) {
            const PointRow *row = &p->rows[at * p->prompts + i];
            steps += row->steps, tokens += row->S * row->steps;
            guesses += row->candidates.count[AT[at].w];
            for (int a = 0; a < AT[at].n; a++) accepted[a] += row->accepted.count[a];
        }
        assert_true(steps == f->steps[at] && fabs(tokens - f->tokens[at]) < 1e-6);
        for (int a = 0; a < AT[at].n; a++) assert_true(accepted[a] == f->accepted[at][a]);
        assert_true(guesses == steps - (AT[at].n - 2) * (PROMPTS + 1.0));
    }
}

static void drawn_comes_back(void **state) {
    Filled f = {0};
    StoredSets sets;
    Text tsv = {0};
    Points points;
    Fit fit;
    double output;
    fill(&f, *state);
    assert_true(stored_sets(f.store, f.run, &sets, NULL));
    assert_int_equal(sets.count, 2);
    assert_non_null(strstr(sets.sets[0].title, "m, d; "));
    assert_non_null(strstr(sets.sets[0].title, "max_tokens=64"));
    assert_false(sets.sets[0].bonus_dropped);
    assert_true(stored_points(f.store, &sets.sets[0], &tsv, &output, NULL));
    assert_true(fabs(output - (f.tokens[0] + f.tokens[1] + f.tokens[2]) / (GRID * (PROMPTS + 1.0))) < 1e-9);
    assert_true(points_parse(text_get(&tsv), tsv.length, "tsv", &points, NULL));
    check_rows(&f, &points);
    FitOptions o = {.law = FIT_CORRECTED, .output = output, .resamples = 100, .level = 0.95, .alone = true};
    assert_true(fit_run(&points, &o, &fit, NULL));
    const FitEstimate *x = &fit.likelihood;
    if (!x->given || fabs(x->alpha.value - 0.425) > 0.04 || fabs(x->f.value - 2) > 0.2)
        fail_msg("wanted (0.425, 2), got (%g, %g)", x->alpha.value, x->f.value);
    assert_true(fit.least_squares.given && fit.least_squares.rms < 0.02);
    fit_release(&fit);
    points_release(&points);
    text_release(&tsv);
    stored_sets_release(&sets);
    store_close(f.store);
    gsl_rng_free(f.random);
}

// An imported run that knows of no presets, and whose steps do not say what guesses they had: the column is
// left out, and the law takes b = G.
static void without_guesses(void **state) {
    static const char FORGET[] = "DELETE FROM point_param WHERE name = 'preset' AND value = 'none'";
    Filled f = {.unknown = true};
    StoredSets sets;
    Text tsv = {0};
    Points points;
    Fit fit;
    double output;
    fill(&f, *state);
    assert_true(sql_script(f.store, FORGET, NULL));
    assert_true(stored_sets(f.store, f.run, &sets, NULL));
    assert_true(stored_points(f.store, &sets.sets[0], &tsv, &output, NULL));
    assert_int_equal(sets.count, 2);
    assert_null(strstr(text_get(&tsv), "candidates"));
    assert_true(points_parse(text_get(&tsv), tsv.length, "tsv", &points, NULL));
    FitOptions o = {.law = FIT_CORRECTED, .output = output, .resamples = 100, .level = 0.95, .alone = true};
    assert_true(fit_run(&points, &o, &fit, NULL));
    assert_false(fit.candidates);
    assert_true(fabs(fit.likelihood.alpha.value - 0.425) < 0.04); // W = G here, and all were tried
    fit_release(&fit);
    points_release(&points);
    text_release(&tsv);
    stored_sets_release(&sets);
    store_close(f.store);
    gsl_rng_free(f.random);
}

static void nothing_to_read(void **state) {
    Store *s = store_open(folder_path(*state, "a.db"), STORE_WRITE, NULL, NULL);
    StoreRun run = {.hash = "run", .kind = "sweep", .name = "none", .version = "1"};
    StoredSets sets;
    Error e = {0};
    int64_t id;
    assert_true(store_run(s, &run, &id, NULL, NULL));
    assert_false(stored_sets(s, id, &sets, &e));
    assert_non_null(strstr(e.text, "has no point whose law is known"));
    stored_sets_release(&sets);
    store_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(drawn_comes_back, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(without_guesses, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(nothing_to_read, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
