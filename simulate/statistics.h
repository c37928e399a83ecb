// Statistics of measurements: robust values, their intervals, and a test of uniformity.
#pragma once
#include "engine/base/error.h"

#include <gsl/gsl_rng.h>
#include <stddef.h>
#include <stdint.h>

// The middle value; the mean of the two middle ones where the count is even. Sorts `values`. count >= 1.
double median(double *values, size_t count);

// Median absolute deviation from the median, unscaled. Sorts and overwrites `values`.
double median_deviation(double *values, size_t count);

// The median of the values' distribution, whatever it is, is in [*low, *high] with at least 95% confidence;
// both are order statistics. Below six values: the range, with 94% (five) or 75% (three); for one value NAN.
// Sorts `values`.
void median_interval(double *values, size_t count, double *low, double *high);

typedef struct Reach {
    double value, low, high; // NAN: unknown
} Reach;

// a / b of independent a and b above 0: relative errors add as their squares.
Reach ratio_reach(Reach a, Reach b);

// The p-quantile, p in [0, 1], interpolated between two values. Sorts `values`. count >= 1.
double quantile(double *values, size_t count, double p);

// The mean of independent values is in [*low, *high] with this confidence (Student's t). count >= 2.
void mean_interval(const double *values, size_t count, double level, double *low, double *high);
// The same from mean, standard deviation and number of the values.
void mean_reach(double mean, double deviation, size_t count, double level, double *low, double *high);

// The factor that widens a 95% interval over resamples of `units` so that `count` such intervals hold
// together in 95 cases of 100 (Bonferroni, and Student's t for few units). units >= 2, count >= 1.
double joint_widening(size_t units, int count);

// The level at which quantiles over resamples of few `units` hold the truth at `level`: resamples vary by
// (units - 1) / units of the samples' variance, and few units call for Student's t. units >= 2.
double resampled_level(double level, size_t units);

// --- bootstrap ------------------------------------------------------------------------------------------

// Intervals by resampling (Efron): a statistic is computed on many samples drawn from the given one, and its
// quantiles over them are its interval.
//
// A resample is a list of numbers from which the statistic rebuilds the data: how often each unit (a prompt)
// was drawn. Paired series stay paired, because the same list weighs all of them. Nested units (runs within
// prompts) are drawn in two stages. Without known units the numbers are standard normal, and the statistic
// shifts each of its values by that many of its errors.
typedef struct Interval {
    double low, high;
    double se; // standard deviation over the resamples
} Interval;

typedef void (*BootstrapDraw)(gsl_rng *random, const void *plan, double *draws, size_t count);
typedef bool (*BootstrapStatistic)(void *context, const double *draws, double *out);

typedef struct Bootstrap {
    size_t draws;       // numbers in a resample
    BootstrapDraw draw; // fills them: one of the functions below, or the caller's
    const void *plan;   // for draw
    // Fills out with `outputs` numbers, NAN for a missing one; false if the resample has no answer. Missing
    // answers are skipped.
    BootstrapStatistic statistic;
    void *context;
    int outputs;
    int resamples; // at least 2
    double level;  // of the intervals, in (0, 1): 0.95
    uint64_t seed;
} Bootstrap;

// Fills (outputs) intervals and, if `defined` is not NULL, for each output the number of resamples that had
// it; if fewer than half had it, its interval is NAN. Fails if fewer than half of the resamples have an
// answer.
bool bootstrap(const Bootstrap *b, Interval *intervals, int *defined, Error *e);

// `count` draws with replacement from `count` units: how often each was drawn. plan: NULL.
void draw_units(gsl_rng *random, const void *plan, double *draws, size_t count);

// Standard normal numbers. plan: NULL.
void draw_normal(gsl_rng *random, const void *plan, double *draws, size_t count);

// Groups are drawn with replacement, then units within each drawn group. Units are ordered by group.
typedef struct NestedPlan {
    const size_t *starts; // (groups + 1): the first unit of each group, then the number of units
    size_t groups;
} NestedPlan;
void draw_nested(gsl_rng *random, const void *plan, double *draws, size_t count);

// The interval of sum(a) / sum(b) over n pairs, each drawn as a pair: a speedup of summed times.
bool bootstrap_ratio(const double *a, const double *b, size_t n, int resamples, double level, uint64_t seed,
                     Interval *out, Error *e);

// --- uniformity -----------------------------------------------------------------------------------------

// Are these numbers uniform on [0, 1)? Numbers made from a correct sampler's tokens are: each token becomes
// the summed probability of all tokens before it (harness/run/certify.h).
typedef struct Uniformity {
    double chi_square;
    int degrees;
    double p; // the probability of a chi-square as large from uniform numbers
} Uniformity;

// Counts in equal bins, at least 10 numbers in each; p is 1 if there are too few for two bins.
Uniformity uniformity(const double *u, size_t count);
