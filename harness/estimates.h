// The statistics of a run's points, from its samples: made once when a run ends, kept in the store, and read
// from there.
#pragma once
#include "harness/tally.h"
#include "results/store.h"

// Of all points of the run; those that have no estimates yet, or old ones, get them.
bool estimates_make(Store *store, int64_t run, Error *e);
