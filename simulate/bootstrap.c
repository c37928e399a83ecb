// Percentile intervals: they need no model of the error and carry over to any function of the parameters.
#include "simulate/bootstrap.h"

#include "engine/base/memory.h"
#include "simulate/statistics.h"

#include <assert.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

// A number below n, of a generator of 32 bits: two divisions, as in gsl_rng_uniform_int, take as long as the
// generator itself. Numbers differ in how likely they are by n in 2^32.
static size_t below(gsl_rng *random, size_t n) { return (size_t)((uint64_t)gsl_rng_get(random) * n >> 32); }

void draw_units(gsl_rng *random, const void *plan, double *draws, size_t count) {
    (void)plan;
    memset(draws, 0, count * sizeof *draws);
    for (size_t i = 0; i < count; i++) draws[below(random, count)]++;
}

void draw_normal(gsl_rng *random, const void *plan, double *draws, size_t count) {
    (void)plan;
    for (size_t i = 0; i < count; i++) draws[i] = gsl_ran_ugaussian(random);
}

void draw_nested(gsl_rng *random, const void *plan, double *draws, size_t count) {
    const NestedPlan *p = plan;
    memset(draws, 0, count * sizeof *draws);
    for (size_t i = 0; i < p->groups; i++) {
        size_t group = below(random, p->groups);
        size_t first = p->starts[group], size = p->starts[group + 1] - first;
        for (size_t u = 0; u < size; u++) draws[first + below(random, size)]++;
    }
}

static bool is_enough(const Bootstrap *b, int defined) { return 2 * defined >= b->resamples && defined >= 2; }

// Answers lie output by output, so that each can be sorted where it is. *good: resamples that had any.
static bool run_all(const Bootstrap *b, gsl_rng *random, double *draws, double *once, double *answers,
                    int *defined, int *good) {
    *good = 0;
    for (int r = 0; r < b->resamples; r++) {
        b->draw(random, b->plan, draws, b->draws);
        if (!b->statistic(b->context, draws, once)) continue;
        for (int o = 0; o < b->outputs; o++) {
            assert(!isinf(once[o]));
            if (!isnan(once[o])) answers[(size_t)o * (size_t)b->resamples + (size_t)defined[o]++] = once[o];
        }
        ++*good;
    }
    return is_enough(b, *good);
}

static Interval summarise(const Bootstrap *b, double *answers, int defined) {
    if (!is_enough(b, defined)) return (Interval){NAN, NAN, NAN};
    size_t count = (size_t)defined;
    double low = quantile(answers, count, (1 - b->level) / 2);
    return (Interval){low, quantile(answers, count, (1 + b->level) / 2), gsl_stats_sd(answers, 1, count)};
}

// GSL's handler of errors ends the program; out of memory it shall return NULL instead. Of GSL's generators
// that are good enough this is a quick one: numbers are a third of what an interval costs.
static gsl_rng *open_random(uint64_t seed) {
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    gsl_rng *random = gsl_rng_alloc(gsl_rng_taus2);
    gsl_set_error_handler(before);
    if (random) gsl_rng_set(random, (unsigned long)seed);
    return random;
}

bool bootstrap(const Bootstrap *b, Interval *intervals, int *defined, Error *e) {
    assert(b->resamples >= 2 && b->level > 0 && b->level < 1 && b->outputs > 0 && b->draws > 0);
    size_t outputs = (size_t)b->outputs, resamples = (size_t)b->resamples;
    int good = 0;
    gsl_rng *random = open_random(b->seed);
    double *draws = mem_alloc(b->draws + outputs, sizeof *draws);
    double *answers = mem_alloc(outputs * resamples, sizeof *answers);
    int *counts = mem_alloc(outputs, sizeof *counts);
    bool ok = random && draws && answers && counts;
    if (!ok) error_system(e, "bootstrap: out of memory");
    else if (!run_all(b, random, draws, draws + b->draws, answers, counts, &good))
        ok = error_input(e, "bootstrap: only %d of %d resamples have an answer", good, b->resamples);
    for (size_t o = 0; ok && o < outputs; o++)
        intervals[o] = summarise(b, answers + o * resamples, counts[o]);
    if (ok && defined) memcpy(defined, counts, outputs * sizeof *counts);
    mem_free(counts);
    mem_free(answers);
    mem_free(draws);
    gsl_rng_free(random);
    return ok;
}

typedef struct {
    const double *a, *b;
    size_t n;
} Pairs;

static bool ratio_of_sums(void *context, const double *draws, double *out) {
    const Pairs *p = context;
    double a = 0, b = 0;
    for (size_t i = 0; i < p->n; i++) {
        a += draws[i] * p->a[i];
        b += draws[i] * p->b[i];
    }
    *out = a / b;
    return isfinite(*out);
}

bool bootstrap_ratio(const double *a, const double *b, size_t n, int resamples, double level, uint64_t seed,
                     Interval *out, Error *e) {
    Pairs pairs = {a, b, n};
    Bootstrap plan = {.draws = n,
                      .draw = draw_units,
                      .statistic = ratio_of_sums,
                      .context = &pairs,
                      .outputs = 1,
                      .resamples = resamples,
                      .level = level,
                      .seed = seed};
    return bootstrap(&plan, out, NULL, e);
}
