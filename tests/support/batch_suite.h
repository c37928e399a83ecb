// Sequences that share steps on a backend: a world of them, each with a random model's target, a draft and an
// adapter, and prompts that they decode in lanes (core/batch.h).
#pragma once
#include "tests/support/exact_suite.h"

#include "engine/core/batch.h"
#include "engine/decode/decode.h"

enum { BATCH_CONTEXT = 90, BATCH_NODES = 70, BATCH_LANES = 5, BATCH_PROMPTS = 9 };

typedef struct {
    Session target, draft, eagle, mtp, block;
    Method method;
} BatchSequence;

typedef struct BatchWorld {
    const ExactBackend *on;
    int lanes, prompts;           // at most BATCH_LANES, BATCH_PROMPTS
    int most_prompt, most_tokens; // of a prompt, of an output
    bool fills;                   // some prompts fill the context
    RandomModel model, eagle_model, mtp_model, block_model;
    Captures captures, last; // MTP's
    BatchSequence sequences[BATCH_LANES];
    const char *method;
    Sampling sampling;
    int next;
    int prompt[BATCH_PROMPTS][BATCH_CONTEXT], count[BATCH_PROMPTS], limit[BATCH_PROMPTS];
    uint64_t seed[BATCH_PROMPTS];
    DecodeResult alone[BATCH_PROMPTS], got[BATCH_PROMPTS];
    double ticks, shared, prefill;
    int fails;       // this prompt's decoding fails; -1: none
    int interrupted; // at the n-th question; 0: never
    int asked, made;
} BatchWorld;

// Opens the sequences on a random model; the three numbers above are set.
void batch_world_open(BatchWorld *w, Random *r);
void batch_world_close(BatchWorld *w);

// Opens the method in each sequence; makes random prompts for it.
void batch_begin(BatchWorld *w, const char *method, bool sampled);
void batch_make_prompts(BatchWorld *w, Random *r);
bool batch_make_together(BatchWorld *w, Error *e); // outputs of all prompts, in lanes
void batch_end(BatchWorld *w);

// Each method, greedy and sampled if `both`, else one of them: each output and each of its steps is the same
// as alone, and times add up.
void batch_same_as_alone(BatchWorld *w, const char *const *methods, int count, bool both, Random *r);

// A random tree of so many nodes below a random root, after `committed` tokens; or rows of LAYOUT_BATCH and
// LAYOUT_COPIED.
void batch_build(Session *s, int committed, int nodes, Layout layout, Random *r);
