// Values for figures and reports that are computed from the store rather than stored: fitted laws, papers'
// numbers next to ours, and prices on another machine. One JSON object, which their queries join
// (plots/plots.h):
//
//   {"run": its id,
//    "fits": [{"points_of": [ids of points], "fit": what `fit --json` prints, or null}, ...],
//    "tables": [what `table --format json` prints, ...] of the papers' items that the run is for,
//    "prediction": what `simulate --json` prints, "beside": the same of another target,
//    "surface": what priced_beside appends of the steps of a surface,
//    "against": {"run": another run, "all": {"says": "no difference", "of": "speedup", "ratio", "low",
//    "high", "prompts"}, "points": [the same of pairs, with "label", "dataset", "speedup_a", "S_a", ...]}}
#pragma once
#include "harness/price/prediction.h"

typedef struct ComputedWanted {
    bool fits;
    bool alone; // without rivals and other assumptions, which take longer
    bool tables;
    const PredictionArguments *prediction; // NULL: none
    int64_t surface;                       // a run whose steps are priced; 0: none
    const char *on;                        // by this machine; NULL: by one fitted to them
    int64_t against;                       // another run of the store; 0: none
} ComputedWanted;

// Estimates of the run must be there where tables are wanted (estimates_ensure). A run without a law to fit
// has no fits, and a set that cannot be fitted has null: neither is an error.
bool computed_json(Store *store, int64_t run, const ComputedWanted *wanted, Text *out, Error *e);
