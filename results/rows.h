// Queries of the store: one SQL statement, its parameters, its rows.
//
//      Rows *r = rows_ask(store, "SELECT method, S FROM point_summary WHERE run_id = ?1", run, &e);
//      while (rows_next(r)) printf("%s %.2f\n", rows_text(r, 0), rows_real(r, 1));
//      return rows_end(r, true, &e);
//
// A statement that would write is refused. views.sql has the views that tables and figures query.
#pragma once
#include "engine/base/error.h"
#include "results/store.h"

typedef struct Rows Rows;

// NULL with e filled: wrong SQL (ERROR_INPUT, with SQLite's own words), several statements, one that writes.
Rows *rows_open(Store *s, const char *sql, Error *e);

// The same with ?1, if there is one, bound; and with the text under the line "-- name: NAME" of a file of
// queries; NULL: statements.sql.
Rows *rows_ask(Store *s, const char *sql, int64_t first, Error *e);
Rows *rows_named(Store *s, const char *file, const char *name, int64_t first, Error *e);

// Parameters from 1; before the first rows_next. A text must live until rows_end. NULL, of a query that
// failed, is ignored.
void rows_bind_int(Rows *r, int at, int64_t value);
void rows_bind_real(Rows *r, int at, double value);
void rows_bind_text(Rows *r, int at, const char *value); // NULL binds NULL
int rows_parameters(const Rows *r);

// False at the end, after a failure, from then on, and for NULL; rows_end reports the failure.
bool rows_next(Rows *r);

// Closes the query. True if `ok`, the caller's own result, is true and every requested row could be read.
// False with e filled; if ok is false, the caller has filled it. NULL (rows_open failed) gives false.
bool rows_end(Rows *r, bool ok, Error *e);

// Ends as rows_end does, but keeps the query, to be asked again with other parameters.
bool rows_again(Rows *r, bool ok, Error *e);

// Columns from 0. A value of another type is converted as SQLite does; NULL is 0, NAN, "".
int rows_columns(const Rows *r);
const char *rows_name(const Rows *r, int column);
ValueType rows_type(const Rows *r, int column);
int64_t rows_int(const Rows *r, int column);
double rows_real(const Rows *r, int column);
const char *rows_text(const Rows *r, int column); // valid until the next rows_ call on it, or the next row
const void *rows_blob(const Rows *r, int column, size_t *size);

// The first value of the first row, for queries that have one. False also without a row.
bool rows_one_int(Store *s, const char *sql, int64_t parameter, int64_t *out, Error *e);
bool rows_named_int(Store *s, const char *file, const char *name, int64_t first, int64_t *out, Error *e);

// Narrows the store to a subset of a run: from now on `point` and `result` hold only these points, `surface`
// and `heat` only these models (ids), except in queries of main.point. The other views see everything, so the
// baseline of a speedup is still found.
bool rows_narrow(Store *s, const int64_t *points, size_t point_count, const int64_t *models,
                 size_t model_count, Error *e);
