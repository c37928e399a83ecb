// Stored runs, as commands name them.
#pragma once
#include "engine/base/error.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "harness/cli/table.h"
#include "results/fit.h"
#include "results/store.h"
#include "simulate/fit.h"

#include <glob.h>
#include <stdint.h>

// "12" is run 12, another text the newest run of that name, NULL the newest sweep, or the newest run of a
// store that has no sweep. False with e filled where there is none.
bool stored_run(Store *store, const char *which, int64_t *id, Error *e);

// The newest run of this hash; 0: there is none.
bool stored_by_hash(Store *store, const char *hash, int64_t *id, Error *e);

// The stores that a pattern names ('results/mine/*.db'), for globfree in either case. False with e filled if
// there is none.
bool stored_match(const char *pattern, glob_t *out, Error *e);

// A table of all its points: S, CTAR, speedups with their intervals, whether text was left as it is. Give it
// to table_end, also after a failure.
bool stored_table(Store *store, int64_t run, const Records *as, RecordTable *out, Error *e);
extern const TableForm stored_points_form;

// A table by category of the run's data, and by method: S, acceptance, speedup. False with e filled if no
// dataset has several tasks.
bool stored_task_table(Store *store, int64_t run, RecordTable *out, Error *e);
extern const char stored_tasks[]; // SQL: its numbers of run ?1

// Prints the run's texts of a prompt (its name or number; NULL: each method's median, best and worst) token
// by token. False with e filled if there are none.
bool stored_tokens(Store *store, int64_t run, const char *prompt, const Records *as, Error *e);
extern const TableForm stored_tokens_form;

// A line on imported points that have no baseline, of 0 none: why they have no speedup, and the fix.
void stored_alone(int64_t points, Text *out);

// --- points of S for a fit

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

// --- fits that are kept

typedef struct StoredFit {
    StoreFit fit; // points into this and into the set that it is of: do not copy it
    char hash[SHA256_TEXT], points[SHA256_TEXT];
} StoredFit;

// tsv: the fitted points, from stored_points. The set must outlive *out.
bool stored_fit_make(StoredFit *out, const StoredSet *set, const char *tsv, const FitOptions *o,
                     const Fit *fit, Error *e);

// All that are new, or none. The store is opened to be written.
bool stored_fits_keep(const char *db, int64_t run, const StoredFit *fits, size_t count, Error *e);

// A line for each fit of a run, newest first of each set; nothing where there is none.
bool stored_fits_text(Store *store, int64_t run, Text *out, Error *e);

// --- fits -----------------------------------------------------------------------------------------------

// Fits, printed for people and as JSON.

// title: of the fitted set; NULL: it needs no name.
void fit_report(const char *title, const FitOptions *o, const Fit *fit);

// One object, on one line without its end. Fails without memory.
bool fit_report_json(const char *title, const FitOptions *o, const Fit *fit, Text *out);
