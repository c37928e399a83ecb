// The store: every run, point, prompt and step in one SQLite file, with the machine it was measured on
// (schema.sql).
//
// Writing. Each writing function below is one transaction: when it returns true, its rows are on disk,
// whatever happens next; when it returns false, the store is unchanged. store_begin and store_commit put many
// small ones (the points of a sweep) into one transaction; nothing slow may happen in between, since all
// other writers wait. After a failure in between, store_commit rolls everything back and returns false.
//
// A disk sync takes as long as tens of steps of a small model. A transaction begun by store_begin_lightly is
// committed without a sync: it survives any end of the process, but a power loss only once a synced
// transaction follows it. It is for prompts, which can be decoded again. Without a log (WAL) a store could
// lose more than the last commit that way, so every commit is synced then.
//
// Resuming. A run is found by its hash; store_done checks for a sample. A pass of a method that keeps state
// over prompts is stored whole (store_samples), so it is there whole or not at all.
//
// A store serves one thread. Several processes may use one file: a writer waits for others as StoreOptions
// define. On a network file system (NFS, Lustre, GPFS, ...) one process writes at a time, while others read.
// Ids are valid as long as the file exists.
//
// Errors name the file. ERROR_INPUT: not a store, of another version, read-only, locked, missing.
// ERROR_SYSTEM: disk full or broken, damaged content.
#pragma once
#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "results/record.h"

#include <stddef.h>

#define STORE_DEFAULT "results/outpace.db" // where commands look without --db

typedef struct Store Store;

typedef enum {
    STORE_WRITE, // created if missing, with its directory
    STORE_READ,  // must exist; never changed, not even by an UPDATE in a query
    STORE_TRIAL, // a new one in memory, gone when closed; messages use the path
} StoreMode;

typedef struct StoreOptions {
    double wait_s; // for a lock; 0: 10 s
    // Called several times a second while another process keeps the store locked, with the seconds waited at
    // the last call and now. False ends the work with ERROR_INTERRUPTED. NULL: wait_s decides.
    bool (*waits)(const char *store, double before, double now);
    void (*makes)(const char *directory); // called for the store's directory if it was missing; NULL: nobody
    int64_t most_bytes;   // of memory for queries, in this process; of one value, a 16th; 0: no limit
    const char *vfs;      // NULL: SQLite's own; tests use one that fails
    uint32_t file_system; // tests: the kind that statfs would find; 0: as it is
} StoreOptions;

// options may be NULL. NULL with e filled.
Store *store_open(const char *path, StoreMode mode, const StoreOptions *options, Error *e);
void store_close(Store *s); // also NULL; rolls back an open transaction

// A store of a block, which is closed when the block ends: LOCAL_STORE *store = store_open(...);
#define LOCAL_STORE LOCAL(store_close_local) Store
void store_close_local(Store **s);

const char *store_path(const Store *s);
const char *results_library(void); // SQLite's version, "3.40.1"

bool store_begin(Store *s, Error *e);
bool store_begin_lightly(Store *s, Error *e);
bool store_commit(Store *s, Error *e);
void store_rollback(Store *s); // does nothing without an open transaction

// --- runs, machines, points ------------------------------------------------------------------------------

// Finds the newest run with this hash, or adds one. *found (may be NULL): whether there was one.
bool store_run(Store *s, const StoreRun *run, int64_t *id, bool *found, Error *e);
bool store_run_new(Store *s, const StoreRun *run, int64_t *id, Error *e); // even if there is one

// Takes the run lock: only one process measures a run at a time, so false with ERROR_INPUT if another one has
// it. The lock lasts until the store is closed or the process ends, however it ends. On a file system without
// such locks everyone gets it. The process must have this file open once.
bool store_claim(Store *s, int64_t run, Error *e);
bool store_claimed(Store *s, int64_t run); // whether another open store has the run lock

// Adds a start of a run. argv: (argc).
bool store_attempt(Store *s, int64_t run, int argc, char *const *argv, const StoreEnvironment *on,
                   int64_t *id, Error *e);
bool store_attempt_end(Store *s, int64_t attempt, const char *result, Error *e);
bool store_reading(Store *s, int64_t attempt, const StoreReading *reading, Error *e);

// Each finds a row (model and dataset by name and hash, prompt by number and turn, point by run and hash) or
// adds it. An existing point gets the new baseline, same_path and skipped; nothing else changes.
bool store_model(Store *s, const StoreModel *model, int64_t *id, Error *e);
bool store_dataset(Store *s, const StoreDataset *dataset, int64_t *id, Error *e);
bool store_prompt(Store *s, const StorePrompt *prompt, int64_t *id, Error *e);
bool store_point(Store *s, int64_t run, const StorePoint *point, int64_t *id, Error *e);

// --- samples ---------------------------------------------------------------------------------------------

// Adds all of these samples with their steps, or none: those of one prompt, or of a whole pass. A sample that
// exists already (another process measures the same run) is ERROR_INPUT. Step k is steps[k].
bool store_samples(Store *s, const StoreSample *samples, int count, Error *e);

// *done: whether the sample (point, pass, prompt) exists.
bool store_done(Store *s, int64_t point, int pass, int64_t prompt, bool *done, Error *e);

// Quality of a sample's output; replaces an older value.
bool store_score(Store *s, int64_t point, int pass, int64_t prompt, const char *metric, double value,
                 Error *e);
bool store_one_off(Store *s, int64_t point, const char *name, double seconds, int64_t bytes, Error *e);
bool store_estimate(Store *s, int64_t point, const StoreEstimate *estimate,
                    Error *e); // replaces an older one
bool store_surface(Store *s, const StoreSurface *rows, int count, Error *e);

// Adds a failure and its reason. point or prompt 0, pass below 0: none.
bool store_failure(Store *s, int64_t attempt, int64_t point, int64_t prompt, int pass, const char *message,
                   Error *e);

// Adds flags that were found later (an outlier among repeats).
bool store_flag(Store *s, int64_t point, int pass, int64_t prompt, int flags, Error *e);

// --- maintenance -----------------------------------------------------------------------------------------

typedef struct StoreGarbage {
    int64_t outputs, prompts, datasets, models, environments; // unreferenced rows, deleted
    int64_t bytes_before, bytes_after;                        // of the file
} StoreGarbage;

// Deletes these runs (maybe none) and all unreferenced rows, and returns the space to the file system.
bool store_gc(Store *s, const int64_t *runs, int count, StoreGarbage *out, Error *e);

// False with e filled if a sample's sums are not those of its steps: somebody altered the store.
bool store_check_sums(Store *s, Error *e);
bool store_check(Store *s, Error *e); // reads the whole file: the same, and whether it is damaged
