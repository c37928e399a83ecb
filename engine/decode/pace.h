// How many tokens a step drafts: one policy for all methods whose guesses are a chain.
//
//      off         always so many
//      heuristic   a full match makes it two longer, anything else one shorter (Hugging Face)
//      confidence  a chain ends after the first guess whose model gave its best token at most that chance
//      learned     a chain goes on while one more guess is likely enough to count to be worth its time
//
// A `schedule`, as 'outpace tune --schedule' writes and vLLM reads it, gives the most for the sequences that
// shared the last step and for the tokens in the cache; it goes with any of these.
//
// A guess counts if it is right and so are all before it. The chance of that is the product of the
// chances that the draft gave its best tokens, corrected by how often guesses of such a chance were right
// lately; of the guess to come, only the mean is known. Its time is `cost` steps, in which the text would
// have gone on by so many tokens as it did lately. Counts fade; every PROBE-th step without a guess makes
// one, and so does the step after one that was right, so a text that becomes easier is noticed.
//
// Whether a token is proposed depends on earlier steps and on chances of best tokens, never on the token
// itself: so sampling keeps the distribution.
#pragma once
#include "engine/decode/method.h"

typedef enum { PACE_OFF, PACE_HEURISTIC, PACE_CONFIDENCE, PACE_LEARNED } PaceKind;

enum { PACE_PLACES = 32, PACE_BINS = 8, PACE_PROBE = 8, PACE_ROWS = 64 };

typedef struct PaceParams {
    int adaptive;
    double confidence, cost;
    char schedule[ARG_TEXT_SIZE]; // a file; "none" or "": there is none
} PaceParams;

extern const char *const pace_kinds[];

// Rows of a method's table; `where` is the offset of its PaceParams, `chance` the usual one; as_added: the
// method had none of them once.
#define PACE_PARAMS(where, chance, as_added)                                          \
    {"adaptive",                                                                      \
     ARG_CHOICE,                                                                      \
     (where) + offsetof(PaceParams, adaptive),                                        \
     .fallback = "off",                                                               \
     .choices = pace_kinds,                                                           \
     .added = as_added,                                                               \
     .help = "how the draft's length adapts to acceptance"},                          \
        {"confidence",                                                                \
         ARG_REAL,                                                                    \
         (where) + offsetof(PaceParams, confidence),                                  \
         0,                                                                           \
         1,                                                                           \
         chance,                                                                      \
         .added = as_added,                                                           \
         .help = "adaptive=confidence: end at this chance or below"},                 \
        {"cost",                                                                      \
         ARG_REAL,                                                                    \
         (where) + offsetof(PaceParams, cost),                                        \
         0,                                                                           \
         100,                                                                         \
         "0.1",                                                                       \
         .added = true,                                                               \
         .help = "adaptive=learned: a guess's time, drafted and verified, in steps"}, \
    {                                                                                 \
        "schedule", ARG_TEXT, (where) + offsetof(PaceParams, schedule),               \
            .fallback = "none", .added = true,                                        \
            .help = "a file of 'tune --schedule': the most by batch and context"      \
    }

// The keys of a schedule's file: ranges of batches, and the same for other contexts.
#define PACE_RANGES   "num_speculative_tokens_per_batch_size"
#define PACE_CONTEXTS "by_context"

typedef struct PaceRow {
    int context, last, most; // from this context on, of batches up to `last`; of a context's last row, of all
} PaceRow;

typedef struct Pace {
    PaceParams p;
    int first, least, most;  // first: of an output
    PaceRow rows[PACE_ROWS]; // (row_count) of the schedule, by context, then by batch
    int row_count;
    int length;        // of the next step, at most
    int limit;         // of this step, by the schedule
    int drafted, last; // of this step: guesses, and the last one's node in the target's tree
    // learned:
    int resting;                                 // steps without a guess so far
    double reached[PACE_BINS], right[PACE_BINS]; // guesses whose forerunners were right; right ones of them
    double tokens, time;                         // lately
    double chance;                               // that all guesses of this step are right
    int bin[PACE_PLACES];                        // of this step's guesses
} Pace;

static inline bool pace_asks_confidence(const PaceParams *p) { return p->adaptive >= PACE_CONFIDENCE; }

// Whether lengths may differ from step to step. pace_fixed: an error if so, since that needs `what`.
bool pace_varies(const PaceParams *p);
bool pace_fixed(const PaceParams *p, const char *what, Error *e);

// least: guesses of any step, 0 or 1. pace_read: the schedule, if there is one.
void pace_init(Pace *x, const PaceParams *p, int first, int least, int most);
bool pace_read(Pace *x, Error *e);
void pace_begin(Pace *x); // a new output, which knows nothing of those before

// Before each step: the guesses it may have, by all that is known. pace_limit: of a batch, at a context.
int pace_step(Pace *x, const Session *target);
int pace_limit(const Pace *x, int batch, int context);

// A guess was proposed as `node`. Returns whether it is the step's last one. confidence: the chance that the
// draft gave its best token, if it is asked.
bool pace_ends(Pace *x, int node, double confidence);

// After each step, also one without a guess, for whatever reason; and by the number that was accepted.
void pace_observe(Pace *x, const Observation *seen);
void pace_learn(Pace *x, int accepted);
