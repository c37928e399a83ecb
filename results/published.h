// The papers' published numbers. An item is a table or a figure: a file of results/published, embedded in the
// program. These files are the only place for such numbers; each names its source.
//
//      # key: value        title, source; any number of metric, chosen and note
//      row  model  ...     a line of names (those of PublishedRow), then one line per number, tab-separated
//
// `metric: NAME = MEASURE` names our measure (harness/papers/ours.h) of the paper's NAME; "-" if we
// have none. `chosen` is something the paper leaves open, and our reading of it. A value is a number, a range
// or a bound ("1.5-2.3", ">2"), or NA: published, but not legible in our copy. An empty cell is unknown.
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct PublishedItem {
    const char *name; // "lookahead-table-3"
    const char *bytes, *end;
} PublishedItem;

extern const PublishedItem published_items[];
extern const int published_count;
const PublishedItem *published_find(const char *name); // NULL: there is none

typedef struct PublishedRow {
    const char *row;     // the paper's name of the row
    const char *model;   // the paper's name
    const char *dataset; // the name in datasets/sources.tsv
    const char *task;    // of Spec-Bench; "mean": over all; "": all at once
    const char *prompts; // how many
    const char *method;  // as in a config; '*': the paper takes the fastest; "": no single setting
    const char *generation, *dtype, *device; // generation: key=value,...
    const char *metric, *value, *spread;     // spread: the paper's own
    const char *note;
} PublishedRow;

typedef struct PublishedMetric {
    const char *name, *measure;
} PublishedMetric;

enum { PUBLISHED_METRICS = 16, PUBLISHED_LINES = 16 };

typedef struct Published {
    const char *title, *source;
    const char *kind; // of run: "sweep", "surface", or "named surface", which must be called as the item is
    PublishedMetric metrics[PUBLISHED_METRICS];
    const char *chosen[PUBLISHED_LINES], *notes[PUBLISHED_LINES];
    int metric_count, chosen_count, note_count;
    PublishedRow *rows; // (row_count)
    size_t row_count, capacity;
    char *bytes; // the texts of all other fields
} Published;

void published_open(Published *out, const PublishedItem *item);
void published_release(Published *p); // also an empty one

const PublishedMetric *published_metric(const Published *p, const char *name); // NULL: there is none
