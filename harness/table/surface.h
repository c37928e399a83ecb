// Tables of steps of given shapes: their rows are of stored surfaces, not of points.
#pragma once
#include "harness/table/rows.h"

bool table_surface_fill(Store *store, int64_t run, Table *t, Error *e);
