// A point's samples and its baseline's, summed up as speedups, S and rates with intervals (by drawing prompts
// again, and within each prompt its passes). A pure function.
#pragma once
#include "simulate/statistics.h"

// One prompt in one pass, all its turns, decoded by the point and by its baseline.
typedef struct TallyPair {
    int prompt, pass;
    double tokens, steps, decode_s, prefill_s;
    double base_tokens, base_decode_s, base_prefill_s; // NAN: there is no baseline, and no speedup
    double prefill_tokens, prefill_steps; // what the authors' codes count beside `tokens` and `steps`
} TallyPair;

// DESIGN's names.
typedef enum {
    TALLY_S,
    TALLY_SPEEDUP,     // of summed decode times; where outputs are sampled, of times per token
    TALLY_SPEEDUP_E2E, // the same with prefill
    TALLY_SPECBENCH, // ratio of the means of the prompts' tokens per second, prefill included; mean of passes
    TALLY_RATE,      // tokens per second
    TALLY_S_REFERENCE, // S with prefill and its token
    TALLY_RATE_E2E,    // tokens per second, prefill's time included
    TALLY_OVER_S,      // speedup over S: a baseline's step over the point's own, which no step falls short of
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

// Sums what stands apart of a prompt in a pass: its turns. Sorts the pairs; gives how many are left.
int tally_sum_turns(TallyPair *pairs, int count);

// Sorts the pairs. false with e filled where memory runs out.
bool tally(TallyPair *pairs, int count, bool sampled, Tally *out, Error *e);
bool tally_plain(TallyPair *pairs, int count, bool sampled, Tally *out, Error *e); // without intervals
