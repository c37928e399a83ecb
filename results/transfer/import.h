// Shared by all imports: the run that they make, its points, lines of JSON with their place. An import is
// one transaction: import_begin, points and samples, import_end.
#pragma once
#include "engine/base/file.h"
#include "results/transfer/transfer.h"

#include <jansson.h>

// A point's baselines, by number: their lines may come later.
typedef struct ImportBaseline {
    int64_t point;
    int baseline, same_path; // 0: none
} ImportBaseline;

typedef struct Import {
    Store *store;
    const StoreImport *from;
    int64_t run, attempt; // attempt: this import's own; 0: not needed yet
    int64_t *starts;      // (start_count) of the exported run, if the file has it
    int start_count, lines;
    int64_t promised;          // samples of the exported run; below 0: unknown
    ImportBaseline *baselines; // (baseline_count) of points that have numbers
    size_t baseline_count, baseline_capacity;
    bool numbered, plain; // the points so far have numbers; have none
    StoreImported *out;
} Import;

// A method on a model and a dataset, as the file names them. 0 and NULL are unknown.
typedef struct ImportPoint {
    const char *model, *dataset, *method, *label; // label NULL: the method
    int layers;
    double temperature;
    const StoreParam *params; // (param_count)
    int param_count;
    int number, baseline, same_path;
    const char *hash, *decoder, *skipped, *model_hash, *dataset_hash;
} ImportPoint;

// Makes the run. False with e filled if these bytes (`second` may be NULL) are already in the store.
bool import_begin(Import *m, Store *s, const StoreImport *from, const StoreImport *second, StoreImported *out,
                  Error *e);

// Sets the baselines of all points and releases the import. Returns false if `ok`, the caller's, is.
bool import_end(Import *m, bool ok, Error *e);

// The start that an object names by its place among the run's starts, or this import's own.
bool import_start(Import *m, const json_t *object, int64_t *attempt, const char *place, Error *e);

bool import_point(Import *m, const ImportPoint *p, int64_t *point, int64_t *dataset, Error *e);
bool import_sample(Import *m, StoreSample *x, Error *e);

// Calls `take` with the object of every line that isn't blank. `place` is "FILE:LINE".
bool import_lines(const StoreImport *from,
                  bool (*take)(void *state, const json_t *line, const char *place, Error *e), void *state,
                  Error *e);
