// A point's name in tables, and its parameters one by one.
#pragma once
#include "harness/config/sweep.h"
#include "results/record.h"

typedef struct PointName {
    const char *method;
    Text label;         // the config's label, or the method; with the parameters that the config gives it
    StoreParam *params; // (param_count), with room for one more: of the method, hardware, generation
    int param_count;
    char *texts; // that params point to
} PointName;

void point_name(const Experiment *x, const Point *p, PointName *out);
void point_name_release(PointName *n); // takes an empty one
