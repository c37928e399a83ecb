// Stored runs, as commands name them.
#pragma once
#include "engine/base/text.h"
#include "harness/cli/terminal.h"
#include "results/store.h"

// "12" is run 12, another text the newest run of that name, NULL the newest sweep, or the newest run of a
// store that has no sweep. False with e filled where there is none.
bool stored_run(Store *store, const char *which, int64_t *id, Error *e);

// The newest run of this hash; 0: there is none.
bool stored_by_hash(Store *store, const char *hash, int64_t *id, Error *e);

// A table of all its points: S, CTAR, speedups with their intervals, whether text was left as it is.
bool stored_table(Store *store, int64_t run, Grid *out, Error *e);

// The same as a JSON array of objects.
bool stored_json(Store *store, int64_t run, Text *out, Error *e);

// A line on imported points that have no baseline, of 0 none: why they have no speedup, and the mend.
void stored_alone(int64_t points, Text *out);
