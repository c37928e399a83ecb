// The folder's internal page, how it uses SQLite: values to bind, statements prepared once, transactions that
// nest, one-line errors. Only open.c, rows.c and sql.c include sqlite3.h.
#pragma once
#include "results/store.h"

#include <math.h>
#include <sys/types.h>
#include <time.h>

struct sqlite3;
struct sqlite3_stmt;
struct StoreRow;

// The state of a file when it was opened.
typedef struct StoreFile {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec changed;
} StoreFile;

// A statement, prepared when it is first used.
typedef struct Statement {
    const char *name;
    struct sqlite3_stmt *prepared;
} Statement;

struct Store {
    struct sqlite3 *db;
    Statement *statements; // (statement_count)
    size_t statement_count, statement_capacity;
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

// The text under the line "-- name: NAME" of a file of statements (NULL: statements.sql), with lists of
// columns in place of braces (row.h). For mem_free.
char *sql_named(const char *file, const char *name);

// Runs a statement of statements.sql, a literal's name, that returns no rows.
bool sql_run(Store *s, const char *name, const Value *values, int count, Error *e);
// Runs the INSERT of a row (row.h): values of its keys, then of its columns.
bool sql_insert(Store *s, const struct StoreRow *row, const Value *values, int count, Error *e);
// *out: the first column of the first row; 0 without a row. *found (may be NULL): whether there was one.
bool sql_find(Store *s, const char *name, const Value *values, int count, int64_t *out, bool *found,
              Error *e);
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

// Finds the environment of these values, those of row.c's table, or adds it.
bool store_environment(Store *s, const Value *values, int count, int64_t *id, Error *e);
