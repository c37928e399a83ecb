// What the imports share: the run that they make, its points and prompts, lines of JSON with their place.
#pragma once
#include "engine/base/file.h"
#include "results/transfer.h"

#include <jansson.h>

// A point's baselines by their numbers: those may come after it.
typedef struct ImportBaseline {
    int64_t point;
    int baseline, same_path; // 0: none
} ImportBaseline;

typedef struct Import {
    Store *store;
    const StoreImport *from;
    int64_t run, attempt; // attempt: of this import; 0: nothing needed it yet
    int64_t *starts;      // (start_count): those of the run that was exported, if the file has it
    int start_count, lines;
    int64_t promised;          // samples that the export had; below 0: it does not say
    ImportBaseline *baselines; // (baseline_count): of points with numbers
    size_t baseline_count, baseline_capacity;
    bool numbered, plain; // points have numbers of their own; have none
    StoreImported *out;
} Import;

// A method on a model and a dataset, as the file names them. What is 0 or NULL is not told.
typedef struct ImportPoint {
    const char *model, *dataset, *method, *label; // label NULL: the method
    int layers;
    double temperature;
    const StoreParam *params; // (param_count)
    int param_count;
    int number, baseline, same_path;
    const char *hash, *decoder, *skipped, *model_hash, *dataset_hash;
} ImportPoint;

// Makes the run; false where these bytes (the second may be NULL) are in the store already.
bool import_begin(Import *m, Store *s, const StoreImport *from, const StoreImport *second, StoreImported *out,
                  Error *e);

// Tells points which of them is their autoregressive baseline. `ok` is the caller's own; releases what the
// import holds.
bool import_end(Import *m, bool ok, Error *e);

// The start that an object names by its place among the run's, or this import's own.
bool import_start(Import *m, const json_t *object, int64_t *attempt, const char *place, Error *e);

bool import_point(Import *m, const ImportPoint *p, int64_t *point, int64_t *dataset, Error *e);
// The same, of an object that describes it as docs/steps.md says.
bool import_described(Import *m, const json_t *object, int64_t *point, int64_t *dataset, const char *place,
                      Error *e);

// The run as it was exported, with all that it has besides samples. Before any sample.
bool import_run(Import *m, const json_t *run, const char *place, Error *e);

bool import_sample(Import *m, StoreSample *x, Error *e);

// Calls `take` with every line's object that is not blank; errors get the file and the line.
bool import_lines(const StoreImport *from,
                  bool (*take)(void *state, const json_t *line, const char *place, Error *e), void *state,
                  Error *e);
