// The numbers of a table's groups, from their samples: means over seeds, and over the parts of a match. What
// is needed again and again is read from the store once.
#pragma once
#include "engine/base/error.h"
#include "harness/papers/match.h"
#include "results/store.h"

// --- quantities ------------------------------------------------------------------------------------------

// The quantities that tables take from stored points, by name: the measures that results/published/*.tsv
// compute the papers' metrics by. "ctar.3" is the measure ctar with the argument 3.
typedef struct Quantity {
    double value, low, high; // NAN: unknown
} Quantity;

// Mean and standard deviation over passes; count 0: of fewer than two, or nothing that a pass has.
typedef struct QuantityPasses {
    double mean, deviation;
    int count;
} QuantityPasses;

// A measure, and the prompts it is taken over. A group of points is asked once for each: the last two.
typedef struct TableQuestion {
    const char *measure;
    const char *subtask; // NULL: all of the dataset; a match sets it for each of its parts
    int parity;          // see SampleChoice
    bool above; // of a quality: how much it is above the baseline's, over the same prompts and passes
    bool plain; // no interval is asked for
    int64_t point, baseline; // baseline 0: the point is one, or has none
} TableQuestion;

// Unknown where the point has no such samples. False with e filled.
bool quantity(Store *store, const TableQuestion *q, Quantity *out, Error *e);

// Of all prompts of a point: each pass by itself, as papers give the spread over runs. False with e filled.
bool quantity_passes(Store *store, int64_t point, int64_t baseline, const char *name, QuantityPasses *out,
                     Error *e);

typedef enum {
    QUANTITY_TIME = 1,    // a disturbed machine changes it
    QUANTITY_QUALITY = 2, // ROUGE
    QUANTITY_FITTED = 4,  // by 'outpace fit', of many points at once: alpha, f
    QUANTITY_BEST = 8,    // "best.W": W of the fastest
} QuantityKind;

bool quantity_known(const char *name);              // "-" is one: by nothing that the store has
bool quantity_is(const char *name, unsigned kinds); // one of them
const char *quantity_own(const char *name);         // ours of the same thing, where that is another; NULL

// --- of a table's groups ---------------------------------------------------------------------------------

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

// `points` and `by` must live as long.
void table_ask_open(TableAsk *a, Store *store, const TablePoints *points, const char *by);
void table_ask_release(TableAsk *a); // takes an empty one

// The mean over the seeds, with an interval where there are TABLE_SEEDS of them; of several parts the mean of
// those that were measured.
bool table_ask_match(TableAsk *a, const TableMatch *match, const TableQuestion *q, Quantity *out, Error *e);

// By `by`; below 0 where it is not known. `even`: over the even prompts.
bool table_ask_speed(TableAsk *a, const TableGroup *g, const char *subtask, bool even, double *out, Error *e);

bool table_ask_text(TableAsk *a, const TableGroup *g, TableText *out, Error *e);
