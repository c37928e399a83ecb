// A guessing model's words as proposals: its most likely token as a one-hot, or a draw from its distribution
// q together with q, so that the verifier can weigh both.
#pragma once
#include "engine/core/draws.h"
#include "engine/base/args.h"

// A draft's own sampling, as parameters; -1: the same as the run's.
typedef struct DraftSampling {
    double temperature, top_p;
    int top_k;
} DraftSampling;

// Rows of a method's table; `where` is the offset of its DraftSampling.
#define DRAFT_SAMPLING_PARAMS(where)                                                    \
    {"draft_temperature",                                                               \
     ARG_REAL,                                                                          \
     (where) + offsetof(DraftSampling, temperature),                                    \
     -1,                                                                                \
     100,                                                                               \
     "-1",                                                                              \
     .help = "the draft's; 0 is greedy, -1 as the run's"},                              \
        {"draft_top_k", ARG_INT, (where) + offsetof(DraftSampling, top_k),        -1,   \
         1 << 24,       "-1",    .help = "the draft's; 0 is off, -1 as the run's"},     \
    {                                                                                   \
        "draft_top_p", ARG_REAL, (where) + offsetof(DraftSampling, top_p), -1, 1, "-1", \
            .help = "the draft's; 1 is off, -1 as the run's"                            \
    }

typedef struct Drafter {
    Session *session; // the model that guesses
    bool greedy;
    bool confidence; // is asked for
    int vocab;       // ids that both models have
    Draws draws;     // empty where it is greedy and nobody asks how sure it is
    Random random;   // STREAM_DRAFT
} Drafter;

typedef struct Draft {
    int token, node;   // node: in the target's tree, or TREE_NONE: it had no room
    double confidence; // chance of the model's most likely token, at temperature 1; 1 where nobody asked
} Draft;

// target_vocab: the length of q in the target's tree.
bool drafter_init(Drafter *d, Session *session, int target_vocab, const DraftSampling *own,
                  const Sampling *run, bool confidence, Error *e);
void drafter_release(Drafter *d);

// A new output: draws begin anew.
void drafter_begin(Drafter *d, uint64_t seed);

// Reads what the session says at `node`, which has been through all layers, and proposes it below `parent`.
bool drafter_propose(Drafter *d, int node, Tree *tree, int parent, Draft *out, Error *e);
