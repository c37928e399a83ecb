// Points of S from stored runs, as `outpace fit` wants them.
//
// A set is what one law may explain: the points of one model, one dataset and one way to generate and verify,
// which differ in N, W and G alone. Equal points and passes are one; prompts that are not measured at every
// point are left out.
#pragma once
#include "engine/base/text.h"
#include "results/store.h"

typedef struct StoredSet {
    char *title;  // model, dataset, and what else tells it from the others
    char *points; // ids in the store, a JSON array
    bool bonus_dropped;
} StoredSet;

typedef struct StoredSets {
    StoredSet *sets; // (count)
    size_t count;
} StoredSets;

// Of a run. Fails where it has no measured points with N, W and G. Release also what failed.
bool stored_sets(Store *store, int64_t run, StoredSets *out, Error *e);
void stored_sets_release(StoredSets *s);

// The set's measurements as a file of points (simulate/points.h), one row per prompt and point; without a
// column for what steps accepted, or for their guesses, where the run does not know that of all. *output
// becomes the tokens of an output on average where its first steps filled a window, else 0.
bool stored_points(Store *store, const StoredSet *set, Text *tsv, double *output, Error *e);
