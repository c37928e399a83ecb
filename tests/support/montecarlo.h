// The processes behind the laws, simulated step by step: the closed forms are checked against them.
//
// Nothing here uses a closed form: guesses are drawn token by token, the longest match wins.
#pragma once
#include "tests/support/drafting.h"
#include "simulate/laws.h"

#include <gsl/gsl_rng.h>

typedef struct Estimate {
    double mean, se; // se: of the mean
} Estimate;

// Accepted tokens of one step after filling. The law must pass law_check; every guess is drawn, so b must be
// small.
int montecarlo_accepted(const Law *law, gsl_rng *random);

// Tokens of a step after filling, over this many steps (at least 2).
Estimate montecarlo_tokens(const Law *law, int steps, gsl_rng *random);

// Share of steps that accept at least i.
Estimate montecarlo_tail(const Law *law, int i, int steps, gsl_rng *random);

// S over this many outputs (at least 2), each running until it has `stop` tokens or more: filling steps
// first. *output becomes the mean number of emitted tokens, the law's `output`.
Estimate montecarlo_compression(const Law *law, int outputs, int stop, double *output, gsl_rng *random);

typedef struct DraftEstimate {
    Estimate tokens, drafted; // a step
} DraftEstimate;

DraftEstimate montecarlo_draft(const Draft *draft, int gamma, double eta, int steps, gsl_rng *random);
