// Tables of records. A command states its columns once and gives every row once: people get a grid that is
// fitted to their terminal, programs JSON or CSV, and docs/json.md has the same columns.
//
//      static const Column COLUMNS[] = {
//          {"dataset sha256", .help = "the texts"},
//          {"S S_low S_high", "S", AS_MEASURED, .help = "tokens a step"},
//          {.head = "[95%]", .kind = AS_REACH, .drop = 1},
//      };
//      static const TableForm FORM = {"show", TABLE_COLUMNS(COLUMNS)};
//
//      RecordTable t = {.form = &FORM, .as = &o.records};
//      TABLE_ROW(&t, CELL(name), CELL(sha256), cell_measured(S, low, high));
//      return table_end(&t, true, e);
#pragma once
#include "harness/cli/records.h"
#include "harness/cli/terminal.h"

// How people see a value. Numbers are right-aligned; one that isn't finite is an empty cell for people, and
// null for programs.
typedef enum {
    AS_TEXT,
    AS_COUNT,    // also a text, right-aligned
    AS_FIXED,    // with `digits` decimals
    AS_SHORT,    // with `digits` significant digits
    AS_SHARE,    // as a percentage with `digits` decimals
    AS_MEASURED, // with the digits that its interval supports, three without one; - if it isn't known
    AS_INTERVAL, // the same, and the interval
    AS_REACH,    // the interval of the cell before: it has no cell of its own in a row
    AS_CHANGE,   // of cell_change, as 1.95 -> 1.94
    AS_REST      // people see it only if there is a text, in place of all further cells
} ColumnKind;

typedef struct Column {
    const char *keys; // separated by blanks: of the cell's values, or, where `head` is NULL, of a cell each
    const char *head; // what people see above it; NULL: programs only
    ColumnKind kind;
    int digits, least, drop; // least, drop: as GridColumn has them
    double scale;            // people see the value times this; 0: as it is
    const char *help;        // what the keys mean, a row of docs/json.md
    bool optional;           // marked as such: not every command line gives it
} Column;

typedef struct TableForm {
    const char *name; // of its section in docs/json.md; NULL: that of the form before it
    const Column *columns;
    int count;
    const char *within; // the key of the array that its rows are in; NULL: they are the whole output
    const char *about;  // a sentence under the section's name; NULL: none
} TableForm;

#define TABLES(...)          ((const TableForm *const[]){__VA_ARGS__, NULL}) // of a Command
#define TABLE_COLUMNS(c)     .columns = (c), .count = TABLE_COUNT(c)
#define TABLE_COUNT(columns) ((int)(sizeof(columns) / sizeof *(columns)))

// A value. Texts are borrowed for the call.
typedef struct Cell {
    enum { CELL_NONE, CELL_TEXT, CELL_COUNT, CELL_REAL, CELL_BOOL } kind; // NONE: left out
    union {
        const char *text; // NULL is null
        int64_t count;
        double real[3]; // value, low, high (NAN: there's no interval); of a change: a, b
    };
} Cell;

#define NO_CELL ((Cell){.kind = CELL_NONE})
Cell cell_text(const char *text);
Cell cell_int(int x);
Cell cell_long(int64_t x);
Cell cell_size(size_t x);
Cell cell_real(double x);
Cell cell_bool(bool x);
Cell cell_measured(double value, double low, double high);
Cell cell_change(double a, double b);

#define CELL(x) \
    _Generic((x),                \
        char *: cell_text,       \
        const char *: cell_text, \
        int: cell_int,           \
        int64_t: cell_long,      \
        size_t: cell_size,       \
        double: cell_real,       \
        bool: cell_bool)(x)

typedef struct RecordTable {
    const TableForm *form;
    const Records *as; // NULL: for people
    Grid grid;
    GridColumn columns[GRID_MOST_COLUMNS];
    bool headed; // the columns' heads are in the grid
    json_t *list;
} RecordTable;

// Cells in the order of the columns; those that are missing at the end are left out.
#define TABLE_ROW(t, ...) \
    table_row(t, (const Cell[]){__VA_ARGS__}, TABLE_COUNT(((const Cell[]){__VA_ARGS__})))
enum { TABLE_MOST_CELLS = 64 };
void table_row(RecordTable *t, const Cell *cells, int count);

// A row of a query: columns with keys have its columns of these names, the others the cells `made`, in order
// (NULL: none).
typedef struct Rows Rows; // results/rows.h
void table_query_row(RecordTable *t, const Rows *r, const Cell *made);
int query_column(const Rows *r, const char *name); // which must be there
Cell query_cell(const Rows *r, int column);

bool query_sentences(Rows *r, Error *e); // prints the first column, a line a row, and ends the query

// For people: a line of any width after `skip` empty cells; an empty line, a title (NULL: none), and heads of
// the rows that follow.
void table_line(RecordTable *t, int skip, const char *text);
void table_group(RecordTable *t, const char *title);

// Prints the table if ok, and releases it. Returns ok, or false with e filled.
bool table_end(RecordTable *t, bool ok, Error *e);

// The rows of a table for programs, for an object around them; the table is released.
json_t *table_list(RecordTable *t);
json_t *table_object(RecordTable *t); // of its one row

// The section of docs/json.md.
void table_document(const TableForm *form, Text *out);
