// Passes that were recorded on one machine, priced on another: what ran stays, what it cost is the model's.
//
// A pass through layers costs its layers and what a pass costs besides; a pass of the head costs the head. A
// model of another depth runs the same share of its layers. The price of a step is the sum over its passes.
#pragma once
#include "simulate/hardware.h"

typedef struct RecordedPass {
    double layers; // of the priced model; may be a fraction of one. Not looked at where `head`
    bool head;     // the LM head over `rows`
    int rows, context;
    double count; // passes like this
} RecordedPass;

// Seconds. h must pass its check; rows >= 1. Each node sees the context and itself, the cache viewed, not
// copied.
double recorded_price(const Hardware *h, const StepModel *m, const RecordedPass *pass);

// A prompt of so many tokens in one pass, its head not run: the first step reads it. 0 tokens cost nothing.
double recorded_prefill(const Hardware *h, const StepModel *m, int tokens);

// Keys and values of so many tokens read and written once, in so many steps.
double recorded_commit(const Hardware *h, const StepModel *m, double tokens, double steps);

// Bytes of weights that a step reads.
double step_model_bytes(const StepModel *m);
