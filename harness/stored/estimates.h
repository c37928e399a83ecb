// The statistics of a run's points, from its samples: made once when a run ends, kept in the store, and read
// from there.
#pragma once
#include "harness/stored/tally.h"
#include "results/store.h"

// Whether a point of the run has samples and lacks estimates: its run was killed, its samples were imported,
// or an older program estimated less.
bool estimates_missing(Store *store, int64_t run, bool *missing, Error *e);

// Of all points of the run, in place of older ones.
bool estimates_make(Store *store, int64_t run, Error *e);

// Opens the store for reading, with the run's estimates made where they can be: of a run that was killed
// nobody has, and a store that cannot be written has none. *store is open before and after; where that fails
// it is NULL.
bool estimates_ensure(Store **store, int64_t run, Error *e);

// Which samples of a point count.
typedef struct SampleChoice {
    const char *subtask; // of Spec-Bench, as the view `subtask` has them; NULL: all
    int parity;          // 0: even prompts, 1: odd ones; below 0: all
    bool plain;          // values alone, which take no resampling
} SampleChoice;

// What the samples chosen say; prompts and passes that the baseline has, too, if there is one. Nothing is
// stored.
bool estimates_tally(Store *store, int64_t point, bool sampled, const SampleChoice *choice, Tally *out,
                     Error *e);
