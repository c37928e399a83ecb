// The store: every run, point, prompt and step in one SQLite file, with what it was measured on (schema.sql).
//
// Writing. Each function below that writes is one transaction: when it returns true, what it wrote is on
// disk, whatever happens next; when it returns false, the store is as before. store_begin and store_commit
// put many small ones (the points of a sweep) into one transaction; between them nothing slow may happen, for
// all other writers wait. A failure in between takes the whole back, and store_commit then returns false.
//
// Syncing the disk takes as long as tens of steps of a small model. A transaction begun by
// store_begin_lightly is committed without a sync: it survives whatever ends the process, but a loss of power
// only once a transaction of the other kind has been written after it. It is for prompts, which can be
// decoded again. A store without a log (WAL) could lose more than the last commit that way, so there every
// commit is synced.
//
// Resuming. A run is found by its hash; store_done says which samples are there. A pass of a method that
// keeps state over prompts is stored whole (store_samples), so it is there whole or not at all.
//
// A store serves one thread. Several processes may use one file: a writer waits for others as
// StoreOptions say. Ids hold for as long as the file does.
//
// Errors name the file. ERROR_INPUT: not a store, of a newer program, read-only, locked, missing.
// ERROR_SYSTEM: disk full or broken, damaged content, no memory.
#pragma once
#include "engine/base/error.h"
#include "results/record.h"

#include <stddef.h>

#define STORE_DEFAULT "results/outpace.db" // where commands look without --db

typedef struct Store Store;

typedef enum {
    STORE_WRITE, // made where it is missing, with its directory; brought to this version
    STORE_READ,  // must be there; nothing is changed, not even by an UPDATE in a query
    STORE_TRIAL, // a new one without a file, forgotten when it is closed; messages name it by the path
} StoreMode;

typedef struct StoreOptions {
    double wait_s; // for a lock; 0: 10 s
    // Asked several times a second while another process keeps the store locked, with the seconds that it had
    // when it was last asked and has now. False: the work is to end, by ERROR_INTERRUPTED. NULL: wait_s
    // decides.
    bool (*waits)(const char *store, double before, double now);
    const char *vfs; // NULL: SQLite's own; tests put one that fails
} StoreOptions;

// options may be NULL. NULL with e filled.
Store *store_open(const char *path, StoreMode mode, const StoreOptions *options, Error *e);
void store_close(Store *s); // takes NULL; takes back what was not committed
const char *store_path(const Store *s);
const char *results_library(void); // SQLite's version, "3.40.1"

bool store_begin(Store *s, Error *e);
bool store_begin_lightly(Store *s, Error *e);
bool store_commit(Store *s, Error *e);
void store_rollback(Store *s); // nothing is open: does nothing

// --- what is measured, and on what -----------------------------------------------------------------------

// Finds the newest run of this hash, or makes one. *found (may be NULL) says which.
bool store_run(Store *s, const StoreRun *run, int64_t *id, bool *found, Error *e);
bool store_run_new(Store *s, const StoreRun *run, int64_t *id, Error *e); // though there may be one

// Only one process measures a run at a time: false with ERROR_INPUT while another has it. The claim holds
// until the store is closed or the process ends, however it ends; where a file system has no such locks, all
// get it. A process that asks has this file open once.
bool store_claim(Store *s, int64_t run, Error *e);
bool store_claimed(Store *s, int64_t run); // by another store that is open, here or elsewhere

// A start of a run. argv: (argc).
bool store_attempt(Store *s, int64_t run, int argc, char *const *argv, const StoreEnvironment *on,
                   int64_t *id, Error *e);
bool store_attempt_end(Store *s, int64_t attempt, const char *result, Error *e);
bool store_reading(Store *s, int64_t attempt, const StoreReading *reading, Error *e);

// Each finds what is there (a model or dataset by name and hash, a prompt by number and turn, a point by run
// and hash) or adds it. An older point gets the new baseline, same_path and skipped; nothing else changes.
bool store_model(Store *s, const StoreModel *model, int64_t *id, Error *e);
bool store_dataset(Store *s, const StoreDataset *dataset, int64_t *id, Error *e);
bool store_prompt(Store *s, const StorePrompt *prompt, int64_t *id, Error *e);
bool store_point(Store *s, int64_t run, const StorePoint *point, int64_t *id, Error *e);

// --- what came out ---------------------------------------------------------------------------------------

// All of these samples with their steps, or none: one prompt's, or a whole pass. A sample that is there
// already (another process runs the same run) is ERROR_INPUT. Step k is steps[k].
bool store_samples(Store *s, const StoreSample *samples, int count, Error *e);

// Whether (point, pass, prompt) is there.
bool store_done(Store *s, int64_t point, int pass, int64_t prompt, bool *done, Error *e);

// Its ids, for mem_free; NULL and a count of -1 where there is no such sample or its output is not kept.
bool store_output(Store *s, int64_t point, int pass, int64_t prompt, int **ids, int *count, Error *e);

// Quality of a sample's output; replaces an older value.
bool store_score(Store *s, int64_t point, int pass, int64_t prompt, const char *metric, double value,
                 Error *e);
bool store_one_off(Store *s, int64_t point, const char *name, double seconds, int64_t bytes, Error *e);
bool store_estimate(Store *s, int64_t point, const StoreEstimate *estimate,
                    Error *e); // replaces an older one
bool store_surface(Store *s, const StoreSurface *rows, int count, Error *e);

// What failed and why, for the table; point, prompt 0: none. pass below 0: none.
bool store_failure(Store *s, int64_t attempt, int64_t point, int64_t prompt, int pass, const char *message,
                   Error *e);

// Flags found later (an outlier among repeats) are added to those there.
bool store_flag(Store *s, int64_t point, int pass, int64_t prompt, int flags, Error *e);

// --- care ------------------------------------------------------------------------------------------------

typedef struct StoreGarbage {
    int64_t outputs, prompts, datasets, models, environments; // that nothing refers to
    int64_t bytes_before, bytes_after;                        // of the file
} StoreGarbage;

// Deletes runs (ids, may be none), what then nothing refers to, and gives the space back.
bool store_gc(Store *s, const int64_t *runs, int count, StoreGarbage *out, Error *e);
bool store_check(Store *s, Error *e); // reads all of it: false, and what is damaged
