// Fits of Lookahead's law to points of a run, as the store keeps them (the view fitted).
#pragma once
#include "results/store.h"

// One estimator's result.
typedef struct StoreFitEstimate {
    const char *estimator;
    double alpha, alpha_low, alpha_high, f, f_low, f_high; // low, high: NAN where there is no interval
    double rms, condition, correlation;
    const char *drawn; // NULL: no interval
} StoreFitEstimate;

enum { STORE_FIT_ESTIMATES = 2 };

// A fit of the law to points of a run.
typedef struct StoreFit {
    const char *hash;      // of `points` and every assumption
    const char *points;    // hash of the fitted points
    const char *point_ids; // a JSON array
    const char *title, *law, *bonus;
    double output;         // tokens of an output, if its first steps fill a window; 0: they don't
    const char *estimator; // the preferred one
    int fitted, prompts, resamples;
    int64_t seed;
    const char *version;
    StoreFitEstimate estimates[STORE_FIT_ESTIMATES]; // (estimate_count)
    int estimate_count;
} StoreFit;

// *added: false if the run has this fit already.
bool store_fit(Store *s, int64_t run, const StoreFit *fit, bool *added, Error *e);
