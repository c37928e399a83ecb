// How long the rest of a plan takes, and where that is known from. Times are upper estimates: outputs as long
// as they may be, a step for every token, and as many rows a step as the methods plan (PointWork).
#pragma once
#include "harness/run/plan.h"
#include "results/store.h"

// The part of a plan that a store has.
typedef struct CostDone {
    int *rounds;  // (points of the schedule): prompts and passes that are stored
    Store *store; // NULL: there is none
    int64_t run;  // 0: not begun
} CostDone;

// The cost of a setup's steps.
typedef struct CostPrice {
    double token_s;   // a step of one row; 0: not known
    double row_s;     // each further row
    bool all_methods; // token_s is a token of any method instead
    char from[200];   // its source
} CostPrice;

// Seconds left; 0: nothing.
typedef struct CostParts {
    double making, opening, tables, warmup, prefill, decoding;
    double made_bytes, table_rows, prompt_tokens, tokens;
} CostParts;

// Which points count, as schedule_shards has cut them. NULL: all.
typedef struct CostShard {
    const int *shard_of; // (points of the sweep)
    int shard;
} CostShard;

// The price of every setup's steps: stored, or reckoned from this machine's ceilings, which are measured
// then. prices: (setups).
bool cost_prices(const Plan *p, const CostDone *done, CostPrice *prices, Error *e);

// Everything that is left, of a part with models that it finds unmade.
CostParts cost_parts(const Plan *p, const CostDone *done, const CostPrice *prices, const CostShard *only);
double cost_seconds(const CostParts *t);
const char *cost_time_text(double seconds, char out[32]); // "90 s", "12 min", "3.4 h"

// Bytes of weights; and of keys and values at the context that the prompts need.
double cost_weights(const Plan *p, int setup);
double cost_cache(const Plan *p, int setup);

// Assumed, not measured; the parts are printed with them.
#define COST_WRITTEN_BYTES 3e8 // a second, of a model that is made
#define COST_OPENED_BYTES  1e9 // a second, of weights that are read first
