#include "results/rows.h"

#include "engine/base/memory.h"
#include "results/connect.h"

#include <assert.h>
#include <sqlite3.h>
#include <string.h>

struct Rows {
    Store *store;
    sqlite3_stmt *statement;
    bool ended;
    Error failed; // of rows_next
};

static bool only_blanks(const char *s) { return s[strspn(s, " \t\r\n;")] == 0; }

// Wrong SQL is the user's affair; the rest is the store's.
static bool wrong(Store *s, int code, Error *e) {
    if ((code & 0xff) == SQLITE_ERROR)
        return error_input(e, "store '%s': wrong query: %s", s->path, sqlite3_errmsg(s->db));
    return sql_error(s, code, e);
}

static bool check(Store *s, sqlite3_stmt *statement, const char *rest, Error *e) {
    if (!statement) return error_input(e, "store '%s': the query is empty", s->path);
    if (!only_blanks(rest))
        return error_input(e, "store '%s': one query at a time; after the first stands '%s'", s->path, rest);
    if (!sqlite3_stmt_readonly(statement))
        return error_input(e, "store '%s': the query would write, and may only read", s->path);
    return true;
}

Rows *rows_open(Store *s, const char *sql, Error *e) {
    sqlite3_stmt *statement = NULL;
    const char *rest;
    int code = sqlite3_prepare_v2(s->db, sql, -1, &statement, &rest);
    Rows *r = NULL;
    bool ok = code == SQLITE_OK ? check(s, statement, rest, e) : wrong(s, code, e);
    if (ok && !(r = mem_alloc(1, sizeof *r))) error_system(e, "out of memory");
    if (!r) {
        sqlite3_finalize(statement);
        return NULL;
    }
    *r = (Rows){.store = s, .statement = statement};
    return r;
}

void rows_bind_int(Rows *r, int at, int64_t value) { sql_bind(r->statement, at, of_int(value)); }
void rows_bind_real(Rows *r, int at, double value) { sql_bind(r->statement, at, of_real(value)); }
void rows_bind_text(Rows *r, int at, const char *value) { sql_bind(r->statement, at, of_text(value)); }
int rows_parameters(const Rows *r) { return sqlite3_bind_parameter_count(r->statement); }

bool rows_next(Rows *r) {
    if (r->ended) return false;
    int code = sqlite3_step(r->statement);
    if (code == SQLITE_ROW) return true;
    r->ended = true;
    return code == SQLITE_DONE ? false : wrong(r->store, code, &r->failed);
}

bool rows_end(Rows *r, bool ok, Error *e) {
    if (!r) return false;
    bool read = r->failed.kind == ERROR_NONE && store_unchanged(r->store, &r->failed);
    if (ok && !read && e) *e = r->failed;
    sqlite3_finalize(r->statement);
    mem_free(r);
    return ok && read;
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

bool rows_one_int(Store *s, const char *sql, int64_t parameter, int64_t *out, Error *e) {
    Rows *r = rows_open(s, sql, e);
    if (!r) return false;
    if (rows_parameters(r) > 0) rows_bind_int(r, 1, parameter);
    bool there = rows_next(r);
    if (there) *out = rows_int(r, 0);
    return rows_end(r, true, e) && there;
}
