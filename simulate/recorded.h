// Passes that were recorded on one machine, priced on another: which passes ran is taken from the record, how
// long each takes from the hardware model.
//
// A pass through layers costs those layers and a constant per pass; a pass of the LM head costs the head. If
// the priced model has another depth, it runs the same share of its layers. A step costs the sum over its
// passes.
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

// A prompt of `tokens` tokens in one pass, its head not run: the first step reads it. 0 tokens cost nothing.
double recorded_prefill(const Hardware *h, const StepModel *m, int tokens);

// Keys and values of `tokens` tokens read and written once, in `steps` steps.
double recorded_commit(const Hardware *h, const StepModel *m, double tokens, double steps);

// Bytes of weights that a step reads.
double step_model_bytes(const StepModel *m);
