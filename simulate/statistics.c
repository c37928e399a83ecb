// Order statistics, intervals and the bootstrap. Its percentile intervals need no model of the error and
// carry over to any function of the parameters.
#include "simulate/statistics.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *values, size_t count) {
    assert(count > 0);
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double median_deviation(double *values, size_t count) {
    double middle = median(values, count);
    for (size_t i = 0; i < count; i++) values[i] = fabs(values[i] - middle);
    return median(values, count);
}

// The k-th value from one end excludes the median with the probability of fewer than k heads in `count`
// throws.
void median_interval(double *values, size_t count, double *low, double *high) {
    size_t k = 0;
    qsort(values, count, sizeof *values, by_value);
    while (gsl_cdf_binomial_P((unsigned)k, 0.5, (unsigned)count) <= 0.025) k++;
    if (k) k--;
    *low = count > 1 ? values[k] : NAN;
    *high = count > 1 ? values[count - 1 - k] : NAN;
}

Reach ratio_reach(Reach a, Reach b) {
    Reach out = {.value = a.value / b.value};
    out.low = out.value * exp(-hypot(log(a.value / a.low), log(b.high / b.value)));
    out.high = out.value * exp(hypot(log(a.high / a.value), log(b.value / b.low)));
    return out;
}

double quantile(double *values, size_t count, double p) {
    assert(count > 0 && p >= 0 && p <= 1);
    qsort(values, count, sizeof *values, by_value);
    return gsl_stats_quantile_from_sorted_data(values, 1, count, p);
}

void mean_reach(double mean, double deviation, size_t count, double level, double *low, double *high) {
    double n = (double)count, reach = gsl_cdf_tdist_Pinv((1 + level) / 2, n - 1) * deviation / sqrt(n);
    *low = mean - reach;
    *high = mean + reach;
}

void mean_interval(const double *values, size_t count, double level, double *low, double *high) {
    double mean = gsl_stats_mean(values, 1, count);
    mean_reach(mean, gsl_stats_sd_m(values, 1, count, mean), count, level, low, high);
}

double joint_widening(size_t units, int count) {
    return gsl_cdf_tdist_Qinv(0.025 / count, (double)units - 1) / gsl_cdf_ugaussian_Qinv(0.025);
}

double resampled_level(double level, size_t units) {
    double n = (double)units, t = gsl_cdf_tdist_Pinv((1 + level) / 2, n - 1) * sqrt(n / (n - 1));
    return fmin(1 - 2 * gsl_cdf_ugaussian_Q(t), 1 - 1e-12);
}

// --- bootstrap ------------------------------------------------------------------------------------------

// A random number below n, from a 32-bit generator, without the two divisions of gsl_rng_uniform_int, which
// take as long as the generator. Probabilities differ by at most n in 2^32.
static size_t below(gsl_rng *random, size_t n) { return (size_t)((uint64_t)gsl_rng_get(random) * n >> 32); }

void draw_units(gsl_rng *random, UNUSED const void *plan, double *draws, size_t count) {
    memset(draws, 0, count * sizeof *draws);
    for (size_t i = 0; i < count; i++) draws[below(random, count)]++;
}

void draw_normal(gsl_rng *random, UNUSED const void *plan, double *draws, size_t count) {
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

// Answers are stored output by output, so that each can be sorted in place. *good: resamples with an answer.
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

bool bootstrap(const Bootstrap *b, Interval *intervals, int *defined, Error *e) {
    assert(b->resamples >= 2 && b->level > 0 && b->level < 1 && b->outputs > 0 && b->draws > 0);
    size_t outputs = (size_t)b->outputs, resamples = (size_t)b->resamples;
    int good = 0;
    gsl_error_handler_t *before = gsl_set_error_handler_off(); // it would abort
    // taus2 is one of the quicker good generators of GSL: random numbers are a third of the cost of an
    // interval.
    gsl_rng *random = gsl_rng_alloc(gsl_rng_taus2);
    gsl_set_error_handler(before);
    if (!random) mem_exhausted(SIZE_MAX);
    gsl_rng_set(random, (unsigned long)b->seed);
    LOCAL_MEMORY double *draws = mem_new(b->draws + outputs, sizeof *draws);
    LOCAL_MEMORY double *answers = mem_new(outputs * resamples, sizeof *answers);
    LOCAL_MEMORY int *counts = mem_new(outputs, sizeof *counts);
    bool ok = run_all(b, random, draws, draws + b->draws, answers, counts, &good) ||
              error_input(e, "bootstrap: only %d of %d resamples have an answer", good, b->resamples);
    for (size_t o = 0; ok && o < outputs; o++) {
        double *own = answers + o * resamples;
        size_t count = (size_t)counts[o];
        intervals[o] = (Interval){NAN, NAN, NAN};
        if (!is_enough(b, counts[o])) continue;
        double low = quantile(own, count, (1 - b->level) / 2),
               high = quantile(own, count, (1 + b->level) / 2);
        intervals[o] = (Interval){low, high, gsl_stats_sd(own, 1, count)};
    }
    if (ok && defined) memcpy(defined, counts, outputs * sizeof *counts);
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

// --- uniformity -----------------------------------------------------------------------------------------

enum { BINS_MOST = 50, IN_A_BIN = 10 };

Uniformity uniformity(const double *u, size_t count) {
    size_t bins = count / IN_A_BIN < BINS_MOST ? count / IN_A_BIN : BINS_MOST, seen[BINS_MOST] = {0};
    Uniformity out = {.p = 1};
    if (bins < 2) return out;
    for (size_t i = 0; i < count; i++) {
        double at = u[i] * (double)bins;
        seen[at < 0 ? 0 : at < (double)bins ? (size_t)at : bins - 1]++;
    }
    double expected = (double)count / (double)bins;
    for (size_t i = 0; i < bins; i++) {
        double off = (double)seen[i] - expected;
        out.chi_square += off * off / expected;
    }
    out.degrees = (int)bins - 1;
    out.p = gsl_cdf_chisq_Q(out.chi_square, out.degrees);
    return out;
}
