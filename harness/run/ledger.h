// A run's rows in the store: written as answers come, and read back when it continues. Here a point's number
// is its number in the schedule, from 0; in the store and in tables, which people read, points count from 1.
//
// A round, or a pass of rounds, is one transaction: stored whole or not at all. The disk is synced every two
// seconds, and when a start of the run ends. So a killed process loses nothing that is in the ledger, and a
// power failure loses at most the rounds of the last two seconds.
#pragma once
#include "harness/run/answer.h"
#include "harness/run/plan.h"
#include "results/rows.h"

typedef struct Ledger {
    Store *store;
    const Inputs *inputs; // NULL: of a replay, which has no schedule (harness/replay/record.c)
    int64_t run, attempt;
    Text gpus;                 // of the points: "cuda:0,cuda:1"
    bool found;                // the run was in the store, and continues
    double synced;             // time of the last sync
    bool record;               // rejected guesses, too
    double record_s, rejected; // of this start: the time that took, in no other; how much there was
    int64_t *points;           // (points of the schedule)
    int64_t models[EXPERIMENT_MODELS], datasets[EXPERIMENT_DATASETS];
    int64_t *prompts[EXPERIMENT_DATASETS]; // (prompts, CONVERSATION_TURNS) in a row; 0: no such turn
} Ledger;

typedef struct LedgerStart {
    const char *store;       // path
    const char *config_file; // as given
    const char *config;      // its text
    const char *overrides;   // a JSON array: the words of the command line that change the config
    bool record;             // the guesses that steps reject, too
    bool again;              // start a new run, even if the store has one with the same content
    const Machine *machine;
    int argc;
    char *const *argv;
} LedgerStart;

bool ledger_open(Ledger *l, const Inputs *in, const LedgerStart *start, Error *e);
bool ledger_end(Ledger *l, const char *result, Error *e); // result: done, partial, interrupted, failed
// Records that the run was interrupted or failed, if the store still works. Returns false.
bool ledger_end_early(Ledger *l, const Error *why);
void ledger_close(Ledger *l); // accepts an empty one

// --- writing

// Stores answers in one transaction. tokenizer NULL: their ids without text.
bool ledger_add(Ledger *l, const Answer *answers, int count, const Tokenizer *tokenizer, Error *e);

bool ledger_failure(Ledger *l, int point, const char *message, Error *e);
// Costs of a point that come once: "open", its time, and "state", the bytes of its open method.
bool ledger_one_off(Ledger *l, int point, const char *name, double seconds, size_t bytes, Error *e);

// A repeat that isn't like the others of its prompt.
typedef struct LedgerRepeat {
    int point, pass, dataset, prompt;
} LedgerRepeat;

// Flags them (results/record.h) in one transaction.
bool ledger_flag(Ledger *l, const LedgerRepeat *list, size_t count, int flags, Error *e);

// Finds the greedy outputs of baselines that differ from the first one for their prompt, among all passes of
// the groups whose baselines must write the same text. Rounds can't show these: weights that
// changed, faulty memory, a kernel that isn't deterministic. list is for mem_free.
bool ledger_strays(Ledger *l, LedgerRepeat **list, size_t *count, Error *e);

// Chooses each point's baseline, after the whole run is measured: the fastest of the autoregressive points
// that make the same output from the same numbers in other ways (more threads, faster sums). The baseline
// with the point's own settings is stored too. ledger_open has set the group's baseline as both. One
// transaction.
bool ledger_choose_baselines(Ledger *l, Error *e);

// --- reading back

// A turn as it was stored.
typedef struct LedgerSample {
    int point, pass, prompt, turn, flags;
    double tokens, steps, decode_s;
    bool diverged;
} LedgerSample;

// All of a run, ordered by point, pass, prompt and turn; and the next of them, false at the end.
Rows *ledger_samples(Store *store, int64_t run, Error *e);
bool ledger_sample(Rows *r, LedgerSample *out);

// The failed points (their numbers from 1) and why, except points that a later start has measured.
Rows *ledger_failures(Store *store, int64_t run, Error *e);

// --- repetition in an output: a small model that falls into a loop makes any method look fast

// The share of the output's 4-grams that occurred before; below 0: it has no 4-gram.
double repetition_share(const int *ids, int count);

// Whether the output loops: it ends in the same part three times in a row, at least twelve tokens in all, or
// has the same eight tokens three times without overlap.
bool repetition_loops(const int *ids, int count);
