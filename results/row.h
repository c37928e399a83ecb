// Maps the columns of the store's tables to the structs that fill them (record.h). Statements, exports,
// imports and merge.sql take their lists of columns from here: "{step}" in a .sql file of this folder is
// "context, rows, ...", and "{step|sum(@) AS @}" is "sum(context) AS context, sum(rows) AS rows, ...".
#pragma once
#include "engine/base/text.h"
#include "results/fit.h"
#include "results/sql.h"

#include <jansson.h>

// The type of a field, and which of its values are unknown: NULL in the store.
typedef enum {
    COLUMN_TEXT,       // const char *
    COLUMN_FLAG,       // bool
    COLUMN_INT,        // int
    COLUMN_COUNT,      // int; below 0: unknown
    COLUMN_SOME,       // int; 0: unknown
    COLUMN_LONG,       // int64_t
    COLUMN_LONG_COUNT, // int64_t; below 0: unknown
    COLUMN_ID,         // int64_t; 0: unknown
    COLUMN_REAL,       // double; NAN: unknown
    COLUMN_MEASURE,    // double; below 0: unknown
    COLUMN_KNOWN,      // double; 0 and below: unknown
    COLUMN_TIME,       // double, s; below 0: unknown; whole ns in the store
    COLUMN_NS,         // the same, real ns
} ColumnKind;

typedef struct StoreColumn {
    const char *name;
    ColumnKind kind;
    size_t at; // of the field in its struct
} StoreColumn;

typedef enum {
    ROW_CONTENT,
    ROW_RUN,
    ROW_ENVIRONMENT,
    ROW_READING,
    ROW_MODEL,
    ROW_DATASET,
    ROW_PROMPT,
    ROW_POINT,
    ROW_SAMPLE, // StoreSample
    ROW_SUMS,   // of the sample's steps, made by SQL: in no struct
    ROW_STEP,
    ROW_BATCH,
    ROW_PASS,
    ROW_SOURCE,
    ROW_GUESS,
    ROW_DIVERGENCE,
    ROW_SURFACE,
    ROW_ESTIMATE,
    ROW_FIT,
    ROW_FIT_ESTIMATE,
    ROW_KINDS
} RowId;

typedef struct StoreRow {
    const char *name, *table; // name: in braces
    const char
        *keys;       // "a, b": columns that aren't in the struct, in the order in which row_insert takes them
    const char *end; // of the INSERT; may be NULL
    bool replaces;   // INSERT OR REPLACE
    const StoreColumn *columns; // (count)
    int count;
} StoreRow;

extern const StoreRow store_rows[ROW_KINDS];

enum { ROW_MOST = 40 }; // values of a statement

// Sets every field that can be unknown to that, and the others to 0.
void row_unknown(RowId id, void *row);

// Appends the row's values behind *count others, at most ROW_MOST.
void row_values(RowId id, const void *row, Value *values, int *count);

bool row_insert(Store *s, RowId id, const Value *keys, int key_count, const void *row, Error *e);

// Takes the columns that the object has; in JSON a time's key ends in _s. Fields without a key stay as they
// are.
bool row_from_json(RowId id, const json_t *object, void *row, const char *place, Error *e);

// Appends the SQL with lists of columns in place of braces; the text of the row's INSERT.
void row_expand(const char *sql, Text *out);
void row_insert_text(const StoreRow *row, Text *out);
