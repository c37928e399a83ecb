// A table for programs: every field by its name, numbers as numbers.
#pragma once
#include "engine/base/text.h"
#include "harness/table/rows.h"

void table_fields_csv(const Table *t, Text *out);  // RFC 4180, a line of names first
bool table_fields_json(const Table *t, Text *out); // one object; what is unknown is null
