// How this room speaks with SQLite: values to bind, statements prepared once, transactions that nest, and
// errors of one line. Of its files only connect.c, open.c, rows.c, functions.c and sql.c see sqlite3.h;
// nothing outside results/ includes this header.
#pragma once
#include "results/statements.h"
#include "results/store.h"

#include <math.h>
#include <sys/types.h>
#include <time.h>

struct sqlite3;
struct sqlite3_stmt;

// A file as it was when it was opened.
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
    const char *vfs; // while it is opened
    bool alone;      // opened for one that shares no memory
    bool fixed;      // opened as a file that nobody changes; it was as in `file` then
    StoreFile file;
    int claims;                   // descriptor of the file's locks on runs (claim.c); below 0: not open
    bool logged;                  // WAL
    bool light;                   // transactions are committed without a sync
    double wait_s, began, waited; // for a lock: at most; since when; how long the last time
    bool (*waits)(const char *store, double before, double now); // NULL: up to wait_s
    bool ended;                                                  // it said that the work is to end
    int depth;                                                   // of transactions: the outermost is SQLite's
    bool failed; // something in the open transaction did: it will be taken back
    bool writable;
    bool trial; // in memory
};

// --- values ----------------------------------------------------------------------------------------------

typedef struct Value {
    ValueType type;
    int64_t i;
    double r;
    const void *bytes; // of TEXT and BLOB, (i); they live until the statement has run
} Value;

static inline Value of_int(int64_t i) { return (Value){.type = VALUE_INT, .i = i}; }
static inline Value of_count(int64_t i) { return (Value){.type = i < 0 ? VALUE_NULL : VALUE_INT, .i = i}; }
static inline Value of_id(int64_t id) { return (Value){.type = id ? VALUE_INT : VALUE_NULL, .i = id}; }
static inline Value of_real(double r) {
    return (Value){.type = isfinite(r) ? VALUE_REAL : VALUE_NULL, .r = r};
}
// Below 0, or 0, is unknown.
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

// Runs one that gives no rows.
bool sql_run(Store *s, StatementId id, const Value *values, int count, Error *e);
// The first column of its first row, and whether there was one; *out is 0 where there was none.
bool sql_find(Store *s, StatementId id, const Value *values, int count, int64_t *out, bool *found, Error *e);
int64_t sql_last_id(const Store *s); // of the last row inserted
int sql_changes(const Store *s);     // rows that the last statement changed
bool sql_script(Store *s, const char *script, Error *e);

// --- transactions ----------------------------------------------------------------------------------------

// Every writing function: if (!sql_enter(s, e)) return false; ...; return sql_leave(s, ok, e);
bool sql_enter(Store *s, Error *e);
bool sql_leave(Store *s, bool ok, Error *e);

// Fills e by what SQLite said last. Returns false.
bool sql_error(const Store *s, int code, Error *e);

void sql_bind(struct sqlite3_stmt *statement, int at, Value value);

// --- what two files write --------------------------------------------------------------------------------

enum { STORE_ENVIRONMENT_VALUES = 27 };
extern const char *const store_environment_columns[STORE_ENVIRONMENT_VALUES];

// Finds the environment of these values, or adds it.
bool store_environment(Store *s, const Value values[STORE_ENVIRONMENT_VALUES], int64_t *id, Error *e);
