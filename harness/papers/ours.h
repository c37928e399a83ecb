// The numbers of a table's groups, from their samples: means over seeds, and over the parts of a match. What
// is needed again and again is read from the store once.
#pragma once
#include "engine/base/error.h"
#include "harness/papers/match.h"
#include "harness/papers/quantities.h"
#include "results/store.h"

enum { TABLE_SEEDS = 5 }; // of sampled texts, that an interval needs

// Of the texts of a group's outputs; NAN: unknown.
typedef struct TableText {
    double S, rows_per_step, bytes_per_step, repeated,
        calm; // calm: S of the outputs that do not end in a loop
} TableText;

typedef struct TableAsk {
    Store *store;
    const TablePoints *points;
    const char *by;   // the measure that the fastest is found by
    double *speeds;   // (2 x groups): over all prompts, over the even ones; NAN: not asked yet
    TableText *texts; // (groups)
    bool *has_text;   // (groups)
} TableAsk;

// False with e filled, and out empty. `points` and `by` must live as long.
bool table_ask_open(TableAsk *a, Store *store, const TablePoints *points, const char *by);
void table_ask_release(TableAsk *a); // takes an empty one

typedef struct TableQuestion {
    const char *measure; // quantities.h
    const char *subtask; // NULL: all of the dataset; a match sets it for each of its parts
    int parity;          // see SampleChoice
    bool above;          // of a quality: how far it is above the baseline's
    bool plain;          // no interval is asked for
} TableQuestion;

// The mean over the seeds, with an interval where there are TABLE_SEEDS of them; of several parts the mean of
// those that were measured.
bool table_ask_match(TableAsk *a, const TableMatch *match, const TableQuestion *q, Quantity *out, Error *e);

// For TableJudge, whose state is the TableAsk: below 0 where it is not known.
bool table_ask_speed(void *ask, const TableGroup *g, const char *subtask, double *out, Error *e);
bool table_ask_even_speed(void *ask, const TableGroup *g, const char *subtask, double *out, Error *e);

bool table_ask_text(TableAsk *a, const TableGroup *g, TableText *out, Error *e);
