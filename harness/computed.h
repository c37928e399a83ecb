// What figures and reports show that is not stored, but computed from what is: fitted laws, and prices on
// another machine. One JSON object, which their queries join (plots/figures.h):
//
//   {"fits": [{"points_of": [ids of points], "fit": what `fit --json` prints, or null}, ...],
//    "prediction": what `simulate --json` prints}
#pragma once
#include "harness/predicted.h"

typedef struct ComputedWanted {
    bool fits;
    bool alone;                            // without rivals and other assumptions, which take longer
    const PredictionArguments *prediction; // NULL: none
} ComputedWanted;

// A run without a law to fit has no fits, and a set that cannot be fitted has null: neither is an error.
bool computed_json(Store *store, int64_t run, const ComputedWanted *wanted, Text *out, Error *e);
