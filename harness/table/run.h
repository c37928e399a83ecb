// Which stored run a table is about: the newest whose config names it, and what that config chose.
#pragma once
#include "harness/table/rows.h"

// *run 0: there is none. `kind` as Published has it: a surface has no config, and so is found by its name,
// or, where any will do, is the newest.
bool table_run_find(Store *store, const char *name, const char *kind, int64_t *run, Error *e);

// Adds the config's `chosen` to t->chosen; a run without a config has none.
bool table_run_chosen(Store *store, int64_t run, Table *t, Error *e);

// Whether the run is named after that item, or its config names it.
bool table_run_names(Store *store, int64_t run, const char *item, bool *names, Error *e);
