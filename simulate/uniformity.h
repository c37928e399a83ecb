// Are these numbers uniform on [0, 1)? Numbers made from a correct sampler's tokens are: each token becomes
// the summed probability of all tokens before it (harness/run/certify.h).
#pragma once
#include <stddef.h>

typedef struct Uniformity {
    double chi_square;
    int degrees;
    double p; // the chance of a chi-square as large from uniform numbers
} Uniformity;

// Counts in equal bins, at least 10 numbers to each; p is 1 where there are too few for two bins.
Uniformity uniformity(const double *u, size_t count);
