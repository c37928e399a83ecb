// What the papers published: an item is a table or a figure, a file of results/published, carried in the
// program. The one place where their numbers stand; each file names its source.
//
//      # key: value        title, source; any number of metric, chosen and note
//      row  model  ...     a line of names (those of PublishedRow), then a line a number, between tabs
//
// `metric: NAME = MEASURE` says by which of our measures (harness/papers/quantities.h) the paper computes what
// it calls NAME; "-" by none. `chosen` is what the paper leaves open, and how we read it. A value is a
// number, a range or a bound ("1.5-2.3", ">2"), or NA: published, and not legible in what we have. An empty
// cell is unknown.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

typedef struct PublishedItem {
    const char *name; // "lookahead-table-3"
    const char *bytes, *end;
} PublishedItem;

extern const PublishedItem published_items[];
extern const int published_count;
const PublishedItem *published_find(const char *name); // NULL: there is none

typedef struct PublishedRow {
    const char *row;     // what the paper calls it
    const char *model;   // as it names it
    const char *dataset; // as datasets/sources.tsv does
    const char *task;    // of Spec-Bench; "mean": over all; "": all at once
    const char *prompts; // how many
    const char *method;  // as a config writes it; '*': the paper takes the fastest; "": of no one setting
    const char *generation, *dtype, *device; // generation: key=value,...
    const char *metric, *value, *spread;     // spread: the paper's own, beside the value
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
    char *bytes; // that all of it points into
} Published;

// False with e filled, and out empty. `name` is for messages.
bool published_parse(Published *out, const char *name, const char *bytes, size_t n, Error *e);
bool published_open(Published *out, const PublishedItem *item, Error *e);
void published_release(Published *p); // takes an empty one

const PublishedMetric *published_metric(const Published *p, const char *name); // NULL: there is none
