// What a run writes to its store, and reads back to go on where it stopped. Points are named by their number
// in the schedule, from 0; for people, in the store and in tables, they count from 1.
//
// A round, or a pass of rounds, is one transaction: it is there whole or not at all. The disk is synced every
// two seconds, and when a start ends: a process that is killed loses nothing that is here, a machine that is
// switched off the rounds of these seconds.
#pragma once
#include "engine/base/text.h"
#include "harness/run/inputs.h"
#include "harness/machine/machine.h"
#include "harness/run/measure.h"
#include "results/store.h"

typedef struct Ledger {
    Store *store;
    const Inputs *inputs;
    int64_t run, attempt;
    Text gpus;       // that points run on: "cuda:0,cuda:1"
    bool found;      // the run was there, and goes on
    double synced;   // when the disk was
    int64_t *points; // (points of the schedule)
    int64_t models[EXPERIMENT_MODELS], datasets[EXPERIMENT_DATASETS];
    int64_t *prompts[EXPERIMENT_DATASETS]; // (prompts, CONVERSATION_TURNS) in a row; 0: no such turn
} Ledger;

typedef struct LedgerStart {
    const char *store;       // path
    const char *config_file; // as given
    const char *config;      // its text
    const char *overrides;   // a JSON object: what the command line changes
    bool again;              // a new run, though one of this content is there
    const Machine *machine;
    int argc;
    char *const *argv;
} LedgerStart;

bool ledger_open(Ledger *l, const Inputs *in, const LedgerStart *start, Error *e);
bool ledger_end(Ledger *l, const char *result, Error *e); // result: done, partial, interrupted, failed
// Writes down that it was interrupted, or failed, where that can be: a full disk takes no last words. Returns
// false.
bool ledger_end_early(Ledger *l, const Error *why);
void ledger_close(Ledger *l); // takes an empty one

// One method's answer to one prompt.
typedef struct LedgerEntry {
    int point, pass, dataset, prompt;
    int position; // in the round's order
    Said *said;
    int diverged; // the turn that differs from the baseline's; -1: none
    Divergence divergence;
} LedgerEntry;

// All of them in one transaction.
bool ledger_add(Ledger *l, const LedgerEntry *entries, int count, const Tokenizer *tokenizer, Error *e);

// Names the point that another is held against, and the one with the same settings; -1: none. ledger_open has
// named the group's baseline as both.
bool ledger_baseline(Ledger *l, int point, int baseline, int same_path, Error *e);

bool ledger_failure(Ledger *l, int point, const char *message, Error *e);
bool ledger_one_off(Ledger *l, int point, double seconds, Error *e); // opening the method

// A repeat that is far from the others of its prompt.
typedef struct LedgerOutlier {
    int point, pass, dataset, prompt;
} LedgerOutlier;

// All of them in one transaction.
bool ledger_outliers(Ledger *l, const LedgerOutlier *list, size_t count, Error *e);

// A turn as it was stored.
typedef struct LedgerSample {
    int point, pass, prompt, turn, flags;
    double tokens, steps, prefill_s, decode_s;
    bool diverged;
} LedgerSample;

// All of a run, ordered by point, pass, prompt and turn. take: false with e filled stops.
bool ledger_samples(Store *store, int64_t run, bool (*take)(void *state, const LedgerSample *s, Error *e),
                    void *state, Error *e);

// Points that failed before, and why; but those that a later start has measured.
bool ledger_failures(Store *store, int64_t run, bool (*take)(void *state, int point, const char *why),
                     void *state, Error *e);
