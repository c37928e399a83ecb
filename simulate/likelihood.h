// (alpha, phi) from the lengths that steps accepted, by maximum likelihood: one point is enough.
//
// P(A >= i) = phi (1 - (1 - alpha^i)^b). For each alpha the likelihood is concave in phi, whose best is found
// by halving; what is left is a search over alpha alone.
#pragma once
#include "simulate/sample.h"

typedef struct Likelihood {
    double alpha, phi;
    double log_likelihood; // per step
    double condition;      // of the root of the information on (ln alpha, ln f)
    double correlation;    // of ln alpha and ln f
} Likelihood;

// Fails where there are no accepted lengths, none is above 0, or they cannot tell alpha from f.
bool likelihood(const Sample *s, Likelihood *out, Error *e);

// The search alone, beginning near alpha: for resamples. s must have accepted lengths.
void likelihood_near(const Sample *s, double alpha, Likelihood *out);
