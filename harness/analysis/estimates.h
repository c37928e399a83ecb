// The statistics of a run's points, from its samples: made once when a run ends, kept in the store, and read
// from there.
#pragma once
#include "results/store.h"
#include "simulate/statistics.h"

// --- sums over samples, and their intervals

// One prompt in one pass, all its turns, decoded by the point and by its baseline.
typedef struct TallyPair {
    int prompt, pass;
    double tokens, steps, decode_s, prefill_s;
    double base_tokens, base_decode_s, base_prefill_s; // NAN: there is no baseline, and no speedup
    double prefill_tokens, prefill_steps; // counted by the authors' programs besides `tokens` and `steps`
    double accepted, drafted;             // tokens; drafted: the longest chain of each step; NAN: unknown
} TallyPair;

// Of structs that begin with `int prompt, pass`: their order, for qsort and bsearch; and where each prompt's
// begin in a sorted list, in `starts`, and where the last one's end. Returns the number of prompts.
int sample_order(const void *a, const void *b);
int sample_prompts(const void *samples, size_t count, size_t size, size_t *starts);

// DESIGN's names.
typedef enum {
    TALLY_S,
    TALLY_SPEEDUP,     // of times per token, by summed decode times
    TALLY_SPEEDUP_E2E, // the same with prefill
    TALLY_SPECBENCH, // ratio of the means of the prompts' tokens per second, prefill included; mean of passes
    TALLY_RATE,      // tokens per second
    TALLY_S_REFERENCE, // S with prefill and its token
    TALLY_RATE_E2E,    // tokens per second, prefill's time included
    TALLY_OVER_S,      // speedup over S: a baseline's step over the point's own, which no step falls short of
    TALLY_ACCEPTANCE,  // accepted of drafted tokens
    TALLY_METRICS
} TallyMetric;
extern const char *const tally_names[TALLY_METRICS]; // as the store calls them

typedef struct Tally {
    int prompts, pairs;
    double value[TALLY_METRICS];      // NAN: not defined
    Interval interval[TALLY_METRICS]; // NAN: not defined
    int resamples[TALLY_METRICS];     // of TALLY_RESAMPLES those in which it is defined
    bool has_interval;                // two prompts at least
} Tally;

enum { TALLY_RESAMPLES = 2000, TALLY_SEED = 1 };

// Sums the turns of a prompt in a pass. Sorts the pairs and returns how many are left.
int tally_sum_turns(TallyPair *pairs, int count);

// Sorts the pairs. plain: without intervals.
void tally(TallyPair *pairs, int count, bool plain, Tally *out);

// ---

// Estimates of whole points; or also S, acceptance and speedup of each category of the data and of its parts,
// if it has several: metric "S of coding/python", as the view task_matrix reads it. These take several times
// as long.
typedef enum { ESTIMATES_OF_POINTS, ESTIMATES_OF_TASKS } EstimatesScope;

// Whether a point of the run has samples and lacks estimates: its run was killed, its samples were imported,
// or an older program estimated less.
bool estimates_missing(Store *store, int64_t run, EstimatesScope scope, bool *missing, Error *e);

// Of all points of the run, in place of older ones.
bool estimates_make(Store *store, int64_t run, EstimatesScope scope, Error *e);

// Opens the store for reading, with the run's estimates made where they can be: of a run that was killed
// nobody has, and a store that cannot be written has none. *store is open before and after; where that fails
// it is NULL.
bool estimates_ensure(Store **store, int64_t run, EstimatesScope scope, Error *e);

// Which samples of a point count.
typedef struct SampleChoice {
    const char *subtask; // of Spec-Bench, as the view `subtask` has them; NULL: all
    const char *task;    // or a category, as the view `prompt_task` has them; NULL: all
    int parity;          // 0: even prompts, 1: odd ones; below 0: all
    bool plain;          // values alone, which take no resampling
} SampleChoice;

// Values of the chosen samples; prompts and passes that the baseline has, too, if there is one. Nothing is
// stored.
bool estimates_tally(Store *store, int64_t point, const SampleChoice *choice, Tally *out, Error *e);
