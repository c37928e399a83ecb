// A table for people (text, Markdown, LaTeX) and for programs (CSV, JSON). Foreign text is escaped.
#pragma once
#include "engine/base/text.h"
#include "harness/papers/table.h"

typedef enum { TABLE_TEXT, TABLE_MD, TABLE_CSV, TABLE_LATEX, TABLE_JSON, TABLE_FORMATS } TableFormat;
extern const char *const table_format_names[TABLE_FORMATS]; // "text", ...

// width: of a terminal, that text is fitted to; 0: of any.
bool table_print(const Table *t, TableFormat format, int width, Text *out);

bool table_fields_json(const Table *t, Text *out); // one object; unknown values are null
