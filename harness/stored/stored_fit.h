// Fits of Lookahead's law that `outpace fit RUN` made, as the store keeps them (results/schema_5.sql).
#pragma once
#include "engine/base/file.h"
#include "harness/stored/stored_points.h"
#include "results/fit.h"
#include "simulate/fit.h"

typedef struct StoredFit {
    StoreFit fit; // points into this and into the set that it is of: do not copy it
    char hash[SHA256_TEXT], points[SHA256_TEXT];
} StoredFit;

// tsv: what was fitted, of stored_points. The set must outlive *out.
bool stored_fit_make(StoredFit *out, const StoredSet *set, const char *tsv, const FitOptions *o,
                     const Fit *fit, Error *e);

// All that are new, or none. The store is opened to be written.
bool stored_fits_keep(const char *db, int64_t run, const StoredFit *fits, size_t count, Error *e);

// A line for each fit of a run, newest first of each set; nothing where there is none.
bool stored_fits_text(Store *store, int64_t run, Text *out, Error *e);
