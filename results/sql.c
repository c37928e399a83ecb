// Prepared statements, nested transactions, and SQLite's errors in one line.
//
// A transaction has a depth: SQLite begins at 0 -> 1 and commits at 1 -> 0. A failure at any depth marks the
// whole (Store.failed): the outermost sql_leave then rolls it back.
#include "results/sql.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "results/row.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

EMBED(results_statements, "results/statements.sql")

Value of_text(const char *text) {
    return (Value){
        .type = text ? VALUE_TEXT : VALUE_NULL, .bytes = text, .i = text ? (int64_t)strlen(text) : 0};
}

// --- errors ----------------------------------------------------------------------------------------------

// The meaning of SQLite's error codes for a store, and the fix.
typedef struct {
    int code;
    ErrorKind kind;
    const char *what;
} Meaning;

static const Meaning MEANINGS[] = {
    {SQLITE_FULL, ERROR_SYSTEM,
     "the disk is full; what was stored before is safe: make room and run the same command again"},
    {SQLITE_READONLY, ERROR_INPUT, "it may not be written: is the file or its directory read-only?"},
    {SQLITE_PERM, ERROR_INPUT, "it may not be written: is the file or its directory read-only?"},
    {SQLITE_NOTADB, ERROR_INPUT, "it is not a store: no SQLite database"},
    {SQLITE_CORRUPT, ERROR_SYSTEM,
     "it is damaged; 'sqlite3 FILE .recover' saves what can be read, then restore a copy"},
    {SQLITE_CANTOPEN, ERROR_INPUT,
     "it cannot be opened: is there such a directory, and may it be read and written?"},
    {SQLITE_NOMEM, ERROR_SYSTEM, "out of memory"},
    {SQLITE_TOOBIG, ERROR_INPUT, "a value of the query is too long"},
    {SQLITE_INTERRUPT, ERROR_SYSTEM, "interrupted"},
};
enum { MEANING_COUNT = sizeof MEANINGS / sizeof *MEANINGS };

bool sql_error(const Store *s, int code, Error *e) {
    int primary = code & 0xff;
    bool locked = primary == SQLITE_BUSY || primary == SQLITE_LOCKED;
    char wait[400];
    snprintf(wait, sizeof wait, "waiting for store '%s', which another process keeps locked", s->path);
    if (locked && s->ended) return error_interrupted(e, wait);
    if (locked)
        return error_input(
            e, "store '%s': another process has kept it locked for %.0f s; try again when it is done",
            s->path, s->waited);
    long long most_bytes = sqlite3_hard_heap_limit64(-1); // asks; 0: there is none
    if (primary == SQLITE_NOMEM && most_bytes)
        return error_input(e, "store '%s': the query takes more than %lld MB of memory: ask for less",
                           s->path, most_bytes / 1000000);
    if (primary == SQLITE_CONSTRAINT)
        return error_input(e, "store '%s': what is to be stored does not fit: %s", s->path,
                           sqlite3_errmsg(s->db));
    for (int i = 0; i < MEANING_COUNT; i++)
        if (MEANINGS[i].code == primary)
            return MEANINGS[i].kind == ERROR_INPUT
                       ? error_input(e, "store '%s': %s", s->path, MEANINGS[i].what)
                       : error_system(e, "store '%s': %s", s->path, MEANINGS[i].what);
    return error_system(e, "store '%s': %s (SQLite code %d)", s->path, s->db ? sqlite3_errmsg(s->db) : "?",
                        code);
}

// --- values and statements ------------------------------------------------------------------------------

void sql_bind(sqlite3_stmt *statement, int at, Value v) {
    switch (v.type) {
    case VALUE_INT: sqlite3_bind_int64(statement, at, v.i); break;
    case VALUE_REAL: sqlite3_bind_double(statement, at, v.r); break;
    case VALUE_TEXT:
        sqlite3_bind_text64(statement, at, v.bytes, (sqlite3_uint64)v.i, SQLITE_STATIC, SQLITE_UTF8);
        break;
    case VALUE_BLOB:
        sqlite3_bind_blob64(statement, at, v.i ? v.bytes : "", (sqlite3_uint64)v.i, SQLITE_STATIC);
        break;
    case VALUE_NULL: sqlite3_bind_null(statement, at); break;
    }
}

char *sql_named(const char *file, const char *name) {
    LOCAL_MEMORY char *line = mem_printf("-- name: %s\n", name);
    const char *from = strstr(file ? file : results_statements, line);
    assert(from);
    from += strlen(line);
    const char *end = strstr(from, "\n-- name: ");
    LOCAL_MEMORY char *own = mem_text(from, end ? (size_t)(end - from) : strlen(from));
    Text sql = {0};
    row_expand(own, &sql);
    return sql.data;
}

static Statement *find(Store *s, const char *name) {
    for (size_t i = 0; i < s->statement_count; i++)
        if (strcmp(s->statements[i].name, name) == 0) return &s->statements[i];
    mem_grow(&s->statements, &s->statement_capacity, s->statement_count + 1, sizeof *s->statements);
    s->statements[s->statement_count] = (Statement){.name = name};
    return &s->statements[s->statement_count++];
}

// Returns the statement with its values bound; NULL with e filled. row: whose INSERT it is; NULL: it's a
// named one.
static sqlite3_stmt *prepare(Store *s, const char *name, const StoreRow *row, const Value *values, int count,
                             Error *e) {
    Statement *p = find(s, name);
    if (!p->prepared) {
        Text insert = {0};
        if (row) row_insert_text(row, &insert);
        LOCAL_MEMORY char *sql = row ? insert.data : sql_named(NULL, name);
        int code = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &p->prepared, NULL);
        if (code) return sql_error(s, code, e), NULL;
    }
    assert(sqlite3_bind_parameter_count(p->prepared) == count);
    for (int i = 0; i < count; i++) sql_bind(p->prepared, i + 1, values[i]);
    return p->prepared;
}

// Resets a statement that stepped to `code`. False with e filled if that is an error.
static bool finish(Store *s, sqlite3_stmt *statement, int code, Error *e) {
    bool ok = code == SQLITE_DONE || code == SQLITE_ROW || sql_error(s, code, e);
    sqlite3_reset(statement);
    return ok;
}

bool sql_run(Store *s, const char *name, const Value *values, int count, Error *e) {
    sqlite3_stmt *statement = prepare(s, name, NULL, values, count, e);
    return statement && finish(s, statement, sqlite3_step(statement), e);
}

bool sql_insert(Store *s, const StoreRow *row, const Value *values, int count, Error *e) {
    sqlite3_stmt *statement = prepare(s, row->name, row, values, count, e);
    return statement && finish(s, statement, sqlite3_step(statement), e);
}

bool sql_find(Store *s, const char *name, const Value *values, int count, int64_t *out, bool *found,
              Error *e) {
    sqlite3_stmt *statement = prepare(s, name, NULL, values, count, e);
    if (!statement) return false;
    int code = sqlite3_step(statement);
    *out = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    if (found) *found = code == SQLITE_ROW;
    return finish(s, statement, code, e);
}

int64_t sql_last_id(const Store *s) { return sqlite3_last_insert_rowid(s->db); }
int sql_changes(const Store *s) { return sqlite3_changes(s->db); }

bool sql_script(Store *s, const char *script, Error *e) {
    int code = sqlite3_exec(s->db, script, NULL, NULL, NULL);
    return code == SQLITE_OK || sql_error(s, code, e);
}

// --- transactions ----------------------------------------------------------------------------------------

static void check(const Store *s) {
    assert(s->db && s->depth >= 0);
    assert(s->depth > 0 || !s->failed); // a failure is forgotten with its transaction
    assert(!s->light || s->logged);     // only a log may leave out the sync
    assert(s->writable || s->depth == 0);
}

static bool enter(Store *s, bool light, Error *e) {
    check(s);
    if (!s->writable) return error_input(e, "store '%s': it was opened to be read only", s->path);
    if (s->depth == 0) {
        const char *sync = light ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL";
        s->failed = false;
        if (s->light != light && !sql_script(s, sync, e)) return false; // between transactions only
        s->light = light;
        if (!sql_script(s, "BEGIN IMMEDIATE", e)) return false;
    }
    s->depth++;
    check(s);
    return true;
}

bool sql_enter(Store *s, Error *e) { return enter(s, false, e); }

bool sql_leave(Store *s, bool ok, Error *e) {
    assert(s->depth > 0);
    if (!ok) s->failed = true;
    if (--s->depth > 0) return ok;
    if (s->failed && ok)
        error_system(e, "store '%s': a part of this could not be stored, so nothing of it was", s->path);
    ok = !s->failed && store_there(s, e) && sql_script(s, "COMMIT", e);
    // SQLite may already have rolled back, for instance on a full disk.
    if (!ok && !sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->failed = false;
    check(s);
    return ok;
}

bool store_begin(Store *s, Error *e) { return sql_enter(s, e); }
bool store_begin_lightly(Store *s, Error *e) { return enter(s, s->logged, e); }
bool store_commit(Store *s, Error *e) { return sql_leave(s, true, e); }

void store_rollback(Store *s) {
    if (s->depth == 0) return;
    s->depth = 1;
    sql_leave(s, false, NULL);
}
