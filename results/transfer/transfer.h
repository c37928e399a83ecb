// Transfers between stores, and between a store and foreign formats.
//
//      merge            everything in another store; rows in both are kept once
//      export           result lines, samples or steps as CSV or JSON lines; answers as Spec-Bench reads them
//                       (transfer.c)
//      import           steps of other engines (docs/other-engines.md: import_steps.c), Spec-Bench's answers
//                       and records of other programs (import_records.c)
#pragma once
#include "results/store.h"

#include <stdio.h>

typedef struct StoreMerged {
    int64_t runs, samples; // new to this store
    // Samples of both with other numbers than here, which stay as they are here. `altered` of them are of the
    // same attempt: somebody changed one of the stores. Else they were measured twice.
    int64_t differ, altered;
} StoreMerged;

// One transaction. The store at `path` is only read.
bool store_merge(Store *s, const char *path, StoreMerged *out, Error *e);

// Writes every row of a query, with `run` as its ?1 if it has one: as CSV with a line of names (RFC 4180), or
// as one JSON object per line. NULL becomes an empty field, or null.
bool store_export_csv(Store *s, const char *sql, int64_t run, FILE *out, Error *e);
bool store_export_jsonl(Store *s, const char *sql, int64_t run, FILE *out, Error *e);

// Writes one line per sample with its steps (docs/other-engines.md), and the rest of the run on the
// first: after store_import_steps every view gives the same rows.
bool store_export_steps(Store *s, int64_t run, FILE *out, Error *e);

// Writes one line per conversation of one pass of a point, as Spec-Bench's answer files; *lines: their
// number.
bool store_export_specbench(Store *s, int64_t point, int pass, FILE *out, int *lines, Error *e);

typedef struct StoreImport {
    const char *path;  // of the file, for messages
    const char *bytes; // (size)
    size_t size;
    const char *name; // of the run; NULL: the exported name, else the file's
    int argc;         // the command line
    char *const *argv;
    const char *model, *dataset, *method; // of records that don't have theirs
} StoreImport;

typedef struct StoreImported {
    int64_t run;
    int samples, steps;
    int64_t promised; // samples of the exported run; below 0: unknown
    int64_t alone;    // points whose baseline is not in the file: they have none
} StoreImported;

// Adds a run of kind 'import', or of the exported kind; the same bytes again are refused. One transaction.
bool store_import_steps(Store *s, const StoreImport *from, StoreImported *out, Error *e);
// vLLM's records are AIPerf's and those of `vllm bench serve`, too. baseline: without speculation, or NULL.
typedef enum { RECORDS_VLLM, RECORDS_SPECDEC, RECORDS_SPECFORGE, RECORDS_SPECBENCH } RecordKind;
bool store_import_records(Store *s, RecordKind kind, const StoreImport *from, const StoreImport *baseline,
                          StoreImported *out, Error *e);
