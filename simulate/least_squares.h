// (alpha, phi) from S over a grid of points, by least squares.
//
// phi = 1/f enters linearly, so for each alpha the best phi is known (variable projection); what is left is a
// search over alpha alone, which no start can mislead. gsl_multifit_nlinear then finishes on S itself.
#pragma once
#include "simulate/sample.h"

typedef struct LeastSquares {
    double alpha, phi;
    double squares;     // weighed sum of squared residuals of S; chi-square where every se is known
    double condition;   // of the Jacobian by (ln alpha, ln f); infinite where they cannot be told apart
    double correlation; // of ln alpha and ln f
} LeastSquares;

// Fails where the points cannot tell alpha from f: one point, constant S, a law that is the same at all.
bool least_squares(const Sample *s, LeastSquares *out, Error *e);

// The search alone, beginning near alpha: for resamples. s must have a fitted point.
void least_squares_near(const Sample *s, double alpha, LeastSquares *out);
