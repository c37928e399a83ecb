// The statistics of a run's points, from its samples: made once when a run ends, kept in the store, and read
// from there.
#pragma once
#include "harness/tally.h"
#include "results/store.h"

// Whether a point of the run has samples, and no estimates: its run was killed, or the samples came
// otherwise.
bool estimates_missing(Store *store, int64_t run, bool *missing, Error *e);

// Of all points of the run, in place of older ones.
bool estimates_make(Store *store, int64_t run, Error *e);
