// The folder's internal page, how it uses SQLite: values to bind, statements prepared once, transactions that
// nest, one-line errors. Only open.c, rows.c and sql.c include sqlite3.h.
#pragma once
#include "results/store.h"

#include <math.h>
#include <sys/types.h>
#include <time.h>

struct sqlite3;
struct sqlite3_stmt;

// The statements, prepared once; sql.c has their text.
// clang-format off
typedef enum {
    STATEMENT_VIEWS_SAME, STATEMENT_VIEWS_SET, STATEMENT_RUN_FIND, STATEMENT_RUN_ADD, STATEMENT_CONTENT_ADD,
    STATEMENT_ENVIRONMENT_FIND, STATEMENT_ENVIRONMENT_ADD, STATEMENT_ATTEMPT_ADD, STATEMENT_ATTEMPT_END,
    STATEMENT_READING_ADD, STATEMENT_MODEL_FIND, STATEMENT_MODEL_ADD, STATEMENT_DATASET_FIND,
    STATEMENT_DATASET_ADD, STATEMENT_PROMPT_FIND, STATEMENT_PROMPT_ADD, STATEMENT_POINT_FIND,
    STATEMENT_POINT_ADD, STATEMENT_POINT_RENEW, STATEMENT_PARAM_ADD, STATEMENT_LAYERS_OF,
    STATEMENT_SAMPLE_FIND, STATEMENT_SAMPLE_ADD, STATEMENT_STEP_ADD, STATEMENT_PASS_ADD, STATEMENT_BATCH_ADD,
    STATEMENT_SOURCE_FIND, STATEMENT_SOURCE_ADD, STATEMENT_STEP_SOURCE_ADD, STATEMENT_SUM_ACCEPT,
    STATEMENT_SUM_SOURCE, STATEMENT_SUM_RANK, STATEMENT_DIVERGENCE_ADD, STATEMENT_OUTPUT_FIND,
    STATEMENT_OUTPUT_ADD, STATEMENT_OUTPUT_OF, STATEMENT_ESTIMATES_DROP, STATEMENT_ESTIMATE_SET,
    STATEMENT_FIT_ADD, STATEMENT_FIT_POINTS, STATEMENT_FIT_ESTIMATE, STATEMENT_SCORE_SET,
    STATEMENT_ONE_OFF_SET, STATEMENT_SURFACE_ADD, STATEMENT_FAILURE_ADD, STATEMENT_FLAG_ADD,
    STATEMENT_RUN_DELETE, STATEMENT_OUTPUT_SWEEP, STATEMENT_PROMPT_SWEEP, STATEMENT_DATASET_SWEEP,
    STATEMENT_MODEL_SWEEP, STATEMENT_ENVIRONMENT_SWEEP, STATEMENT_IMPORT_RUN, STATEMENT_IMPORT_MODEL,
    STATEMENT_IMPORT_DATASET, STATEMENT_IMPORT_START, STATEMENT_IMPORT_FAILURE, STATEMENT_IMPORT_NUMBER,
    STATEMENT_IMPORT_BASELINE, STATEMENT_IMPORT_BASELINES, STATEMENT_IMPORT_PART, STATEMENT_ATTACH,
    STATEMENT_DETACH,
    STATEMENTS
} StatementId;
// clang-format on

// The state of a file when it was opened.
typedef struct StoreFile {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec changed;
} StoreFile;

struct Store {
    struct sqlite3 *db;
    struct sqlite3_stmt *prepared[STATEMENTS]; // NULL until first used
    char *path;
    const char *vfs;      // used while opening
    uint32_t file_system; // by statfs; 0: asked when needed
    bool alone;           // opened without shared memory, by this process only
    bool fixed;           // opened "immutable"; the file was as in `file` then
    StoreFile file;
    int locks;                    // descriptor of the run locks (open.c); below 0: not open
    bool logged;                  // WAL
    bool light;                   // transactions are committed without a sync
    double wait_s, began, waited; // for a lock: limit; start; length of the last wait
    bool (*waits)(const char *store, double before, double now); // NULL: up to wait_s
    bool ended;                                                  // `waits` returned false
    int depth;   // of nested transactions: only the outermost is SQLite's
    bool failed; // something in the open transaction failed: it will be rolled back
    bool writable;
    bool trial; // in memory
};

// --- values ----------------------------------------------------------------------------------------------

typedef struct Value {
    ValueType type;
    int64_t i;
    double r;
    const void *bytes; // (i) of TEXT and BLOB, valid until the statement has run
} Value;

static inline Value of_int(int64_t i) { return (Value){.type = VALUE_INT, .i = i}; }
static inline Value of_count(int64_t i) { return (Value){.type = i < 0 ? VALUE_NULL : VALUE_INT, .i = i}; }
static inline Value of_id(int64_t id) { return (Value){.type = id ? VALUE_INT : VALUE_NULL, .i = id}; }
static inline Value of_real(double r) {
    return (Value){.type = isfinite(r) ? VALUE_REAL : VALUE_NULL, .r = r};
}
// Unknown: of_measure below 0, of_known 0 and below.
static inline Value of_measure(double r) { return of_real(r < 0 ? (double)NAN : r); }
static inline Value of_known(double r) { return of_real(r > 0 ? r : (double)NAN); }
static inline Value of_ns(double s) {
    return s >= 0 && s < 9e9 ? of_int((int64_t)(s * 1e9 + 0.5)) : (Value){.type = VALUE_NULL};
}
static inline Value of_blob(const void *p, size_t n) {
    return (Value){.type = p ? VALUE_BLOB : VALUE_NULL, .bytes = p, .i = (int64_t)n};
}
Value of_text(const char *text);

// --- statements ------------------------------------------------------------------------------------------

#define VALUES(...) (const Value[]){__VA_ARGS__}, (int)(sizeof((const Value[]){__VA_ARGS__}) / sizeof(Value))

// Runs a statement that returns no rows.
bool sql_run(Store *s, StatementId id, const Value *values, int count, Error *e);
// *out: the first column of the first row; 0 without a row. *found (may be NULL): whether there was one.
bool sql_find(Store *s, StatementId id, const Value *values, int count, int64_t *out, bool *found, Error *e);
int64_t sql_last_id(const Store *s); // of the last row inserted
int sql_changes(const Store *s);     // rows that the last statement changed
bool sql_script(Store *s, const char *script, Error *e);

// --- transactions ----------------------------------------------------------------------------------------

// Every writing function: if (!sql_enter(s, e)) return false; ...; return sql_leave(s, ok, e);
bool sql_enter(Store *s, Error *e);
bool sql_leave(Store *s, bool ok, Error *e);

bool sql_error(const Store *s, int code, Error *e); // fills e from SQLite's last error; returns false
void sql_bind(struct sqlite3_stmt *statement, int at, Value value);

// --- the file -------------------------------------------------------------------------------------------

// False with e filled: tables, indexes and triggers aren't exactly those of this script (schema.c).
bool store_check_schema(Store *s, const char *schema, Error *e);

// *same: whether the views are those of this script. If they should be (`current`), other names are refused.
bool store_check_views(Store *s, const char *views, bool current, bool *same, Error *e);

// Attaches another open store's file as `other`, in the way that store was opened.
bool store_attach(Store *s, const Store *other, Error *e);

// False with e filled: the file is gone from its path or replaced, so anything written would be lost.
bool store_there(const Store *s, Error *e);

// False with e filled: the store was opened "immutable", and another process changed it.
bool store_unchanged(const Store *s, Error *e);

// The functions that queries have besides SQLite's own. NULL gives NULL. Returns SQLite's code.
//
//   bits(row, at, n)   bits [at, at + n) of a blob as a number: bit i is bit i % 8 of byte i / 8, bits past
//                      the blob's end are 0, n is at most 63
//   ones(number)       the number of 1 bits
//   sqrt(number)       the square root (SQLite may be built without its mathematics)
//   measured(value, low, high)   '1.95 [1.91, 2.00]', with the digits that the interval supports; low and
//                      high may be NULL
int sql_functions(struct sqlite3 *db);

// --- environments ---------------------------------------------------------------------------------------

enum { STORE_ENVIRONMENT_VALUES = 27 };
extern const char *const store_environment_columns[STORE_ENVIRONMENT_VALUES];

// Finds the environment of these values, or adds it.
bool store_environment(Store *s, const Value values[STORE_ENVIRONMENT_VALUES], int64_t *id, Error *e);
