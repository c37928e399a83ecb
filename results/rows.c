// A query in SQLite's hands. A failing step is kept (`failed`) until rows_end, so that callers loop without
// checks; after it, and after the last row, rows_next always returns false.
#include "results/rows.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "engine/base/text.h"
#include "results/sql.h"

#include <assert.h>
#include <sqlite3.h>
#include <string.h>

struct Rows {
    Store *store;
    sqlite3_stmt *statement;
    bool ended;
    Error failed; // of rows_next
};

// Wrong SQL is the user's error; the rest is the store's.
static bool wrong(Store *s, int code, Error *e) {
    if ((code & 0xff) == SQLITE_ERROR)
        return error_input(e, "store '%s': wrong query: %s", s->path, sqlite3_errmsg(s->db));
    return sql_error(s, code, e);
}

static bool check_query(Store *s, sqlite3_stmt *statement, const char *rest, Error *e) {
    if (!statement) return error_input(e, "store '%s': the query is empty", s->path);
    if (rest[strspn(rest, " \t\r\n;")])
        return error_input(e, "store '%s': one query at a time; '%s' follows the first", s->path, rest);
    if (!sqlite3_stmt_readonly(statement))
        return error_input(e, "store '%s': the query would write, and may only read", s->path);
    if (!sqlite3_column_count(statement)) // ATTACH, BEGIN
        return error_input(
            e,
            "store '%s': the query gives no rows: only a question to this one store is answered, as SELECT",
            s->path);
    return true;
}

Rows *rows_open(Store *s, const char *sql, Error *e) {
    sqlite3_stmt *statement = NULL;
    const char *rest;
    int code = sqlite3_prepare_v2(s->db, sql, -1, &statement, &rest);
    if (!(code == SQLITE_OK ? check_query(s, statement, rest, e) : wrong(s, code, e))) {
        sqlite3_finalize(statement);
        return NULL;
    }
    Rows *r = mem_new(1, sizeof *r);
    *r = (Rows){.store = s, .statement = statement};
    return r;
}

Rows *rows_ask(Store *s, const char *sql, int64_t first, Error *e) {
    Rows *r = rows_open(s, sql, e);
    if (r && rows_parameters(r) > 0) rows_bind_int(r, 1, first);
    return r;
}

Rows *rows_named(Store *s, const char *file, const char *name, int64_t first, Error *e) {
    LOCAL_MEMORY char *sql = sql_named(file, name);
    return rows_ask(s, sql, first, e);
}

static void bind(Rows *r, int at, Value value) {
    if (r) sql_bind(r->statement, at, value);
}

void rows_bind_int(Rows *r, int at, int64_t value) { bind(r, at, of_int(value)); }
void rows_bind_real(Rows *r, int at, double value) { bind(r, at, of_real(value)); }
void rows_bind_text(Rows *r, int at, const char *value) { bind(r, at, of_text(value)); }
int rows_parameters(const Rows *r) { return r ? sqlite3_bind_parameter_count(r->statement) : 0; }

bool rows_next(Rows *r) {
    if (!r) return false;
    assert(r->statement && (r->ended || r->failed.kind == ERROR_NONE));
    if (r->ended) return false;
    int code = sqlite3_step(r->statement);
    if (code == SQLITE_ROW) return true;
    r->ended = true;
    return code == SQLITE_DONE ? false : wrong(r->store, code, &r->failed);
}

bool rows_again(Rows *r, bool ok, Error *e) {
    if (!r) return false;
    // A text that could not be converted was given as an empty one.
    if (ok && sqlite3_errcode(r->store->db) == SQLITE_NOMEM) wrong(r->store, SQLITE_NOMEM, &r->failed);
    bool read = r->failed.kind == ERROR_NONE && store_unchanged(r->store, &r->failed);
    if (ok && !read && e) *e = r->failed;
    sqlite3_reset(r->statement);
    r->ended = false;
    r->failed = (Error){0};
    return ok && read;
}

bool rows_end(Rows *r, bool ok, Error *e) {
    if (!r) return false;
    ok = rows_again(r, ok, e);
    sqlite3_finalize(r->statement);
    mem_free(r);
    return ok;
}

int rows_columns(const Rows *r) { return sqlite3_column_count(r->statement); }

const char *rows_name(const Rows *r, int column) {
    const char *name = sqlite3_column_name(r->statement, column);
    return name ? name : "";
}

ValueType rows_type(const Rows *r, int column) {
    switch (sqlite3_column_type(r->statement, column)) {
    case SQLITE_INTEGER: return VALUE_INT;
    case SQLITE_FLOAT: return VALUE_REAL;
    case SQLITE_TEXT: return VALUE_TEXT;
    case SQLITE_BLOB: return VALUE_BLOB;
    default: return VALUE_NULL;
    }
}

int64_t rows_int(const Rows *r, int column) { return sqlite3_column_int64(r->statement, column); }

double rows_real(const Rows *r, int column) {
    return rows_type(r, column) == VALUE_NULL ? (double)NAN : sqlite3_column_double(r->statement, column);
}

const char *rows_text(const Rows *r, int column) {
    const unsigned char *text = sqlite3_column_text(r->statement, column);
    return text ? (const char *)text : "";
}

const void *rows_blob(const Rows *r, int column, size_t *size) {
    const void *bytes = sqlite3_column_blob(r->statement, column);
    *size = (size_t)sqlite3_column_bytes(r->statement, column);
    return bytes;
}

static bool one_int(Rows *r, int64_t *out, Error *e) {
    bool there = rows_next(r);
    if (there) *out = rows_int(r, 0);
    return rows_end(r, true, e) && there;
}

bool rows_one_int(Store *s, const char *sql, int64_t parameter, int64_t *out, Error *e) {
    return one_int(rows_ask(s, sql, parameter, e), out, e);
}

bool rows_named_int(Store *s, const char *file, const char *name, int64_t first, int64_t *out, Error *e) {
    return one_int(rows_named(s, file, name, first, e), out, e);
}

EMBED(results_narrow, "results/narrow.sql")

// --- a part of the store ---------------------------------------------------------------------------------

static void put_ids(Text *script, const char *table, const int64_t *ids, size_t count) {
    text_printf(script, "CREATE TEMP TABLE %s (id INTEGER PRIMARY KEY);", table);
    for (size_t i = 0; i < count; i++)
        text_printf(script, "INSERT OR IGNORE INTO temp.%s VALUES (%lld);", table, (long long)ids[i]);
}

// SQLite looks for a name without a database among the temporary ones first; a view in the file sees only the
// file. If open.c made the views in memory, they exist already and are built on these.
bool rows_narrow(Store *s, const int64_t *points, size_t point_count, const int64_t *models,
                 size_t model_count, Error *e) {
    LOCAL_TEXT script = {0};
    text_puts(&script, "PRAGMA query_only = OFF;");
    put_ids(&script, "chosen", points, point_count);
    put_ids(&script, "chosen_model", models, model_count);
    text_puts(&script, results_narrow);
    text_printf(&script, "PRAGMA query_only = %s;", s->writable ? "OFF" : "ON");
    return sql_script(s, text_get(&script), e);
}
