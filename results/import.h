// What both imports share: the run that they make, its points and prompts, lines of JSON with their place.
#pragma once
#include "engine/base/sha256.h"
#include "results/transfer.h"

#include <jansson.h>

typedef struct Import {
    Store *store;
    const StoreImport *from;
    int64_t run, attempt;
    StoreImported *out;
} Import;

// A method on a model and a dataset, as the file names them.
typedef struct ImportPoint {
    const char *model, *dataset, *method, *label; // label NULL: the method
    int layers;
    double temperature;
    const StoreParam *params; // (param_count)
    int param_count;
} ImportPoint;

// Makes the run and its attempt; false where these bytes (the second may be NULL) are in the store already.
bool import_begin(Import *m, Store *s, const StoreImport *from, const StoreImport *second, StoreImported *out,
                  Error *e);

// Tells points which of them is their autoregressive baseline.
bool import_end(Import *m, Error *e);

bool import_point(Import *m, const ImportPoint *p, int64_t *point, int64_t *dataset, Error *e);
bool import_sample(Import *m, StoreSample *x, Error *e);

// Calls `take` with every line's object that is not blank; errors get the file and the line.
bool import_lines(const StoreImport *from,
                  bool (*take)(void *state, const json_t *line, const char *place, Error *e), void *state,
                  Error *e);
