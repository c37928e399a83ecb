#include "results/connect.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

Value of_text(const char *text) {
    return (Value){
        .type = text ? VALUE_TEXT : VALUE_NULL, .bytes = text, .i = text ? (int64_t)strlen(text) : 0};
}

// --- errors ----------------------------------------------------------------------------------------------

// What each of SQLite's error codes means for a store, and the mend.
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

// --- statements ------------------------------------------------------------------------------------------

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

// The statement with its values bound; NULL with e filled.
static sqlite3_stmt *prepare(Store *s, StatementId id, const Value *values, int count, Error *e) {
    sqlite3_stmt **p = &s->prepared[id];
    int code =
        *p ? SQLITE_OK : sqlite3_prepare_v3(s->db, statement_sql[id], -1, SQLITE_PREPARE_PERSISTENT, p, NULL);
    if (code) {
        sql_error(s, code, e);
        return NULL;
    }
    assert(sqlite3_bind_parameter_count(*p) == count);
    for (int i = 0; i < count; i++) sql_bind(*p, i + 1, values[i]);
    return *p;
}

// Ends a statement that stepped to `code`; e is filled where that is an error.
static bool finish(Store *s, sqlite3_stmt *statement, int code, Error *e) {
    bool ok = code == SQLITE_DONE || code == SQLITE_ROW || sql_error(s, code, e);
    sqlite3_reset(statement);
    return ok;
}

bool sql_run(Store *s, StatementId id, const Value *values, int count, Error *e) {
    sqlite3_stmt *statement = prepare(s, id, values, count, e);
    return statement && finish(s, statement, sqlite3_step(statement), e);
}

bool sql_find(Store *s, StatementId id, const Value *values, int count, int64_t *out, bool *found, Error *e) {
    sqlite3_stmt *statement = prepare(s, id, values, count, e);
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

// SQLite takes the level of syncs between transactions only.
static bool set_light(Store *s, bool light, Error *e) {
    if (s->light == light) return true;
    s->light = light;
    return sql_script(s, light ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL", e);
}

static bool enter(Store *s, bool light, Error *e) {
    if (!s->writable) return error_input(e, "store '%s': it was opened to be read only", s->path);
    if (s->depth == 0) {
        s->failed = false;
        if (!set_light(s, light, e) || !sql_script(s, "BEGIN IMMEDIATE", e)) return false;
    }
    s->depth++;
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
    // SQLite may have taken it back by itself, on a full disk say.
    if (!ok && !sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->failed = false;
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
