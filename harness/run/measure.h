// One prompt decoded by one method, turn by turn, with every step kept: the unit that is measured. And the
// check that a method said what the model says.
#pragma once
#include "harness/run/certify.h"
#include "harness/prompts/conversation.h"
#include "harness/config/settings.h"
#include "harness/machine/watch.h"

// What is the same for all that is measured side by side.
typedef struct Measuring {
    Session *target;
    const Tokenizer *tokenizer;
    const Template *template; // NULL: plain texts
    const int *eos;           // (eos_count)
    int eos_count;
    Clock clock;
    Watch *watch; // NULL: nobody looks
} Measuring;

typedef struct Ask {
    const char *const *turns; // (count) what the user says
    int count;
    int number; // of the prompt, in its dataset: outputs that are drawn differ by it
} Ask;

typedef struct SaidTurn {
    IdList prompt;
    DecodeResult result;
    StepReport *steps; // (result.steps); their passes stand in `passes`, step by step
    Pass *passes;      // (pass_count)
    size_t step_capacity, pass_count, pass_capacity;
    int flags;    // of results/record.h
    double began; // seconds since 1970
} SaidTurn;

typedef struct Said {
    SaidTurn *turns; // (count)
    int count;       // less than were asked where the context is full
} Said;

// `out` is empty, or holds what was said last, which is released. A first turn that does not fit into the
// context is an error.
bool measure(const Measuring *m, Method *method, const Settings *settings, const Ask *ask, Said *out,
             Error *e);
void said_release(Said *s); // takes an empty one

double said_decode_seconds(const DecodeResult *r);

// The first turn in which `got` is not `want`, greedy answers to one prompt; -1: none. The turns after it
// answer something else, and are not compared. The session is run for the margin.
bool measure_compare(Session *s, const Said *want, const Said *got, int *turn, Divergence *out, Error *e);
