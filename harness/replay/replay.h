// Given answers, decoded again by methods that need only text: how much a method would accept, at millions of
// tokens a second instead of a model's dozens. S equals that of a greedy run with these outputs.
#pragma once
#include "datasets/datasets.h"
#include "engine/base/clock.h"
#include "engine/text/template.h"
#include "engine/text/tokenizer.h"

typedef struct ReplayText {
    int *ids;          // (prompt + answer)
    int prompt, count; // tokens of the prompt, and of both
    const char *task;  // the dataset's
} ReplayText;

typedef struct ReplayTexts {
    ReplayText *texts; // (count)
    size_t count, capacity;
    int vocab, longest;        // tokens of the longest text
    size_t tokens, unanswered; // tokens of all answers; turns without an answer, or an empty one
} ReplayTexts;

// Every turn of the dataset that has an answer (its first reference), with the conversation before it. A
// conversation ends at its first turn without one. template: may be NULL. Release the result even on failure.
bool replay_texts(const Dataset *d, const Tokenizer *tokenizer, const Template *template, ReplayTexts *out,
                  Error *e);
void replay_texts_release(ReplayTexts *t);

enum { REPLAY_LENGTHS = 32 };

typedef struct Replay {
    double *tokens, *steps; // (texts)
    double total_tokens, total_steps;
    double rows;                     // of all steps
    double accepted[REPLAY_LENGTHS]; // steps that accepted i tokens; the last: i or more
    double seconds;                  // 0 if the clock is too coarse
} Replay;

// method: "prompt-lookup:draft=8", or "ouroboros-pool". Fails for a method that needs a model. Release the
// result even on failure.
bool replay_run(const ReplayTexts *texts, const char *method, Clock clock, Replay *out, Error *e);
void replay_release(Replay *r);

double replay_rate(const Replay *r); // tokens per second; NAN if no time was measured

// The share of steps that accepted w or more; w < REPLAY_LENGTHS.
double replay_ctar(const Replay *r, int w);
