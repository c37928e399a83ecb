// Intervals by drawing again (Efron): a statistic is computed on many samples drawn from the one there is,
// and its quantiles over them are its interval.
//
// A resample is a list of numbers, from which the statistic rebuilds the data: how often each unit (a prompt)
// was drawn. What is paired is paired by itself, as all series are weighed by the same list. Nested units
// (runs within prompts) are drawn in two stages. Where no units are known, the numbers are standard normal,
// and the statistic moves its values by them, each times its own error.
#pragma once
#include "engine/base/error.h"

#include <gsl/gsl_rng.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Interval {
    double low, high;
    double se; // standard deviation over the resamples
} Interval;

typedef void (*BootstrapDraw)(gsl_rng *random, const void *plan, double *draws, size_t count);
typedef bool (*BootstrapStatistic)(void *context, const double *draws, double *out);

typedef struct Bootstrap {
    size_t draws;       // numbers of a resample
    BootstrapDraw draw; // fills them; one of those below, or the caller's own
    const void *plan;   // for draw
    // Fills out with `outputs` numbers, NAN where this resample has none; false where it has no answer at
    // all. What has none is left out.
    BootstrapStatistic statistic;
    void *context;
    int outputs;
    int resamples; // at least 2
    double level;  // of the intervals, in (0, 1): 0.95
    uint64_t seed;
} Bootstrap;

// Fills (outputs) intervals and, where it is not NULL, (outputs) numbers of the resamples that had that
// output: of one that fewer than half of them had, the interval is NAN. Fails where fewer than half of them
// have an answer, or memory runs out.
bool bootstrap(const Bootstrap *b, Interval *intervals, int *defined, Error *e);

// How often each of `count` units is drawn, of `count` draws with replacement. plan: none.
void draw_units(gsl_rng *random, const void *plan, double *draws, size_t count);

// Standard normal numbers. plan: none.
void draw_normal(gsl_rng *random, const void *plan, double *draws, size_t count);

// Groups are drawn with replacement, and within each drawing of a group its units. Units stand group by
// group.
typedef struct NestedPlan {
    const size_t *starts; // (groups + 1): each group's first unit, and the number of units
    size_t groups;
} NestedPlan;
void draw_nested(gsl_rng *random, const void *plan, double *draws, size_t count);

// The interval of sum(a) / sum(b) over n pairs, which are drawn together: a speedup of summed times.
bool bootstrap_ratio(const double *a, const double *b, size_t n, int resamples, double level, uint64_t seed,
                     Interval *out, Error *e);
