// A file's rows: JSON Lines, one JSON array of objects, or lines of text.
#pragma once
#include "datasets/pattern.h"

typedef enum { ROWS_JSON, ROWS_TEXT } RowsKind;

// The row is good until it returns.
typedef bool TakeRow(void *state, Row *row, Error *e);

// Each row in its order, until one is refused. A file whose first byte (but for space) is '[' is an array.
// Empty lines are none; a line of text becomes {"prompt": LINE}.
bool rows_each(const char *bytes, size_t n, const char *file, RowsKind kind, TakeRow *take, void *state,
               Error *e);
