// Finds the points of a run to compare with a published row, and how they differ from it.
//
// A point fits a row by its method (below), its temperature, its dataset and its model.
// If the run doesn't have the very model or dataset, a similar one is used in its place, and `why` gives the
// reason; where the method's parameters are others, the nearest is taken only if the paper has one setting of
// that method.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "results/store.h"
#include "results/published.h"

// --- the points of a run, in groups

typedef struct TableSeed {
    int64_t point, baseline; // baseline 0: the point is one, or has none
    const char *doubt;       // reasons to doubt its times (the view point_doubt); "" nothing
} TableSeed;

typedef struct TableGroup {
    const char *model, *stand_in; // stand_in: "" means it is the model it's named after
    const char *dtype, *device;   // it computed in and on; "" where that was not told
    const char *dataset, *method, *decoder, *label;
    const char *settings; // "max_tokens=64,temperature=0,...": all but the seed
    const char *subtasks; // "qa=80,rag=80": prompts of each of Spec-Bench's
    int64_t fit;          // that the point is one of (the view fitted); 0: none
    const char *fitted;   // how; "" not
    double temperature;
    int number, prompts; // number: of the first point
    size_t first, count; // of the seeds
    bool used;           // is shown next to a published row
} TableGroup;

typedef struct TablePoints {
    TableGroup *groups; // (group_count), by number
    TableSeed *seeds;   // (seed_count), group by group
    size_t group_count, seed_count, group_capacity, seed_capacity;
} TablePoints;

// Copies of texts, which live as long as a table.
typedef struct TableTexts {
    char **list; // (count)
    size_t count, capacity;
} TableTexts;
const char *table_keep(TableTexts *t, const char *text);

// Of all points that have samples, whose texts are kept in `texts`. False with e filled, and an empty list.
bool table_points_read(Store *store, int64_t run, TableTexts *texts, TablePoints *out, Error *e);
void table_points_release(TablePoints *p); // takes an empty one

// The value of a key of TableGroup.settings or subtasks, cut to `size`; false where there is none.
bool table_setting(const char *settings, const char *key, char *out, size_t size);

// --- points that a row means

enum { MATCH_PARTS = 8 };

typedef struct TableMatch {
    const TableGroup *groups[MATCH_PARTS]; // (count): several only for a mean over subtasks
    const char *subtasks[MATCH_PARTS];     // NULL: all of the dataset
    int count;                             // 0: nothing fits
    Text why;                              // what keeps the row from being compared; "": nothing
} TableMatch;

// Of several candidates for a method that the paper takes the fastest of, the fastest is taken, by `ask`
// (ours.h): on all prompts, or on the even ones. False with e filled.
struct TableAsk;
bool table_match(const Published *item, const PublishedRow *row, struct TableAsk *ask, bool even,
                 TableMatch *out, Error *e);
void table_match_release(TableMatch *m);

// Whether `ours` is the row's model: by name, in any case, or by results/published/names.tsv. Or whether it
// is meant for it: the file has it in its place, or it contains the name, as "reference for Vicuna-7B" does.
bool table_match_same_model(const PublishedRow *row, const char *ours);
bool table_match_like_model(const PublishedRow *row, const char *ours);

// --- a method as a published row writes it

// Adds all its parameters as "key=value,...", presets expanded, except texts (a file's name, a tree) that it
// doesn't mention. '*' becomes the value in `ran`, which is such a list; what follows from it is then as it
// ran. False with e filled: there is no such method or parameter.
bool method_text_expand(const char *text, const char *ran, Text *out, Error *e);

bool method_text_open(const char *text);                         // it has a '*'
bool method_text_same_method(const char *text, const char *ran); // whatever the parameters

// The number of parameters of `ran` that differ from `text`; each is added to `out` (may be NULL) as "W=5,
// not 15". A text that no method parses (of an imported run) differs in nothing.
int method_text_differences(const char *text, const char *ran, Text *out);
