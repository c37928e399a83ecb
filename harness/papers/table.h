// A table's rows and the texts they point to.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "harness/papers/ours.h"
#include "results/published.h"

typedef struct TableRow {
    const char *row, *model, *dataset, *task;         // as published
    const char *metric, *published, *spread;          // published: "" is a row of ours alone
    const char *our_model, *our_dataset, *our_method; // shown next to it; "": nothing
    Quantity ours;                                    // computed as the paper does, by `measure`
    const char *measure;
    QuantityPasses passes; // of ours
    const char *own_name;  // "" or our own measure of the same quantity, and its value
    Quantity own;
    Quantity difference;  // ours less the published; NAN: not comparable
    const char *why_not;  // "": it is filled
    Quantity above;       // of a quality: above that of autoregressive decoding
    const char *stand_in; // of our model; "" it isn't one
    bool other_model;     // ours isn't named by the paper
    TableText text;
    const char *doubt; // of a measure of time: reasons to doubt ours; "" nothing
    int point;         // number of the first; 0: none
    int seeds;
    const char *note;
} TableRow;

typedef struct Table {
    const char *name;
    Published item;
    const char *run, *machine, *date, *command; // lines about the run
    const char *unlike; // trainings of its adapters and heads, where they were not alike; "" nothing
    TableRow *rows;     // (row_count)
    size_t row_count, row_capacity;
    const char **chosen; // (chosen_count): of the run's config
    size_t chosen_count, chosen_capacity;
    TableTexts texts; // that rows point to
} Table;

void table_release(Table *t); // takes an empty one

// --- a table made

// Estimates of the run must be there (estimates_ensure). False with e filled, and out empty.
bool table_make(Store *store, int64_t run, const PublishedItem *item, Table *out, Error *e);

// --- which run a table is about, and what its config chose

// *run 0: there is none. `kind` as Published has it: a surface has no config, and so is found by its name,
// or, where any will do, is the newest.
bool table_run_find(Store *store, const char *name, const char *kind, int64_t *run, Error *e);

// Adds the config's `chosen` to t->chosen; a run without a config has none.
bool table_run_chosen(Store *store, int64_t run, Table *t, Error *e);

// Whether the run is named after that item, or its config names it.
bool table_run_names(Store *store, int64_t run, const char *item, bool *names, Error *e);

// --- printing -------------------------------------------------------------------------------------------

// A table for people (text, Markdown, LaTeX) and for programs (CSV, JSON). Foreign text is escaped.
typedef enum { TABLE_TEXT, TABLE_MD, TABLE_CSV, TABLE_LATEX, TABLE_JSON, TABLE_FORMATS } TableFormat;
extern const char *const table_format_names[TABLE_FORMATS]; // "text", ...

// width: of a terminal, that text is fitted to; 0: of any.
bool table_print(const Table *t, TableFormat format, int width, Text *out);

bool table_fields_json(const Table *t, Text *out); // one object; unknown values are null
