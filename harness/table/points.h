// A run's points in the form in which tables compare them with papers: points that differ only in their seed
// are one group.
#pragma once
#include "engine/base/error.h"
#include "results/store.h"

typedef struct TableSeed {
    int64_t point, baseline; // baseline 0: the point is one, or has none
    const char *doubt;       // reasons to doubt its times (the view point_doubt); "" nothing
} TableSeed;

typedef struct TableGroup {
    const char *model, *stand_in; // stand_in: "" is what its name says
    const char *dtype, *device;   // it computed in and on; "" where that was not told
    const char *dataset, *method, *decoder, *label;
    const char *settings; // "max_tokens=64,temperature=0,...": all but the seed
    const char *subtasks; // "qa=80,rag=80": prompts of each of Spec-Bench's
    int64_t fit;          // that the point is one of (the view fitted); 0: none
    const char *fitted;   // how; "" not
    double temperature;
    int number, prompts; // number: of the first point
    size_t first, count; // of the seeds
    bool used;           // stands beside a published row
} TableGroup;

typedef struct TablePoints {
    TableGroup *groups; // (group_count), by number
    TableSeed *seeds;   // (seed_count), group by group
    size_t group_count, seed_count, group_capacity, seed_capacity;
    char **texts; // that groups point to
    size_t text_count, text_capacity;
} TablePoints;

// Of all points that have samples. False with e filled, and an empty list.
bool table_points_read(Store *store, int64_t run, TablePoints *out, Error *e);
void table_points_release(TablePoints *p); // takes an empty one

// The value of a key of TableGroup.settings or subtasks, cut to `size`; false where there is none.
bool table_setting(const char *settings, const char *key, char *out, size_t size);
