// A table or figure of a paper beside a stored run: one row per published number, with ours, its interval,
// and the difference where both measured the same thing; below them what we measured and the paper has not.
#pragma once
#include "harness/table/rows.h"

// Estimates of the run must be there (estimates_ensure). False with e filled, and out empty.
bool table_make(Store *store, int64_t run, const PublishedItem *item, Table *out, Error *e);
