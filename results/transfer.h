// Between stores, and between a store and the formats of others.
//
//      merge            all of another store: what both have stands once
//      export           result lines, samples or steps as CSV or JSON lines; answers as Spec-Bench reads them
//      import           steps of other engines (docs/steps.md), answers that Spec-Bench published
#pragma once
#include "results/store.h"

#include <stdio.h>

typedef struct StoreMerged {
    int64_t runs, samples; // that were not there
} StoreMerged;

// One transaction; `path` is only read.
bool store_merge(Store *s, const char *path, StoreMerged *out, Error *e);

// Writes every row that the query gives, with `run` as its ?1 where it has one: as CSV with a line of names
// (RFC 4180), or an object a line. NULL is an empty field, or null.
bool store_export_csv(Store *s, const char *sql, int64_t run, FILE *out, Error *e);
bool store_export_jsonl(Store *s, const char *sql, int64_t run, FILE *out, Error *e);

// One line per sample with its steps, as docs/steps.md says, and all else that the run holds: what
// store_import_steps makes of it says the same in every view.
bool store_export_steps(Store *s, int64_t run, FILE *out, Error *e);

// One line per conversation of one pass of a point, as Spec-Bench's answer files have them; *lines counts
// them.
bool store_export_specbench(Store *s, int64_t point, int pass, FILE *out, int *lines, Error *e);

typedef struct StoreImport {
    const char *path;  // of the file, for messages
    const char *bytes; // (size)
    size_t size;
    const char *name; // of the run; NULL: as it was exported, else the file's
    int argc;         // the command line
    char *const *argv;
    const char *model, *dataset, *method; // Spec-Bench: what the file is of
} StoreImport;

typedef struct StoreImported {
    int64_t run;
    int samples, steps;
    int64_t promised; // samples that the file had when it was exported; below 0: it does not say
    int64_t alone;    // points of methods whose baseline is not among what came: they stand as their own
} StoreImported;

// A run of kind 'import', or of the kind that was exported; the same bytes again are refused. One
// transaction.
bool store_import_steps(Store *s, const StoreImport *from, StoreImported *out, Error *e);
// `baseline`: the answers of the autoregressive model; NULL: there are none.
bool store_import_specbench(Store *s, const StoreImport *from, const StoreImport *baseline,
                            StoreImported *out, Error *e);
