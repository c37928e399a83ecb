// Points as a law sees them: what an estimator of (alpha, f) is given.
//
// Points come weighed by prompt, so that a resample of prompts is the same sample weighed otherwise.
#pragma once
#include "simulate/laws.h"
#include "simulate/points.h"

#include <stdint.h>

typedef enum {
    FIT_PAPER,     // b = W = G; points with W unlike G are predicted, not fitted
    FIT_CORRECTED, // each step's own number of candidates where it is known, else b = G; every point is
                   // fitted
} FitLaw;

typedef struct FitOptions {
    FitLaw law;
    bool bonus_dropped;
    double output; // tokens of an output on average, whose first N - 2 steps emit one each; 0: no filling
    int resamples; // of the bootstrap, at least 2
    double level;  // of the intervals
    uint64_t seed;
    bool alone; // only the estimates: nothing left out, no other assumptions
} FitOptions;

typedef struct SamplePoint {
    PointAt at;
    Law law;          // f = 1; alpha is the estimator's
    double *share;    // (law.share_count), the law's; or NULL
    double *accepted; // (gamma + 1): how many steps accepted i tokens; or NULL
    double hits;      // of them, steps that accepted something
    double S, se;     // se: 0 where not known
    double tokens;    // of a step past filling, from S
    double weight;    // of tokens in a sum of squares: 1 / variance, or relative to it where se is not known
    bool fitted;
} SamplePoint;

typedef struct Sample {
    SamplePoint *points; // (count)
    int count, fitted;
} Sample;

// All prompts weighed alike. Fails where a point's S cannot be under these options. Release also what failed.
bool sample_open(const Points *points, const FitOptions *o, Sample *out, Error *e);
void sample_release(Sample *s);

// Weighs prompts by `weights` (prompts); NULL: all alike.
void sample_weigh(Sample *s, const Points *points, const double *weights);

// Gives a point another S.
void sample_move(SamplePoint *p, double S);

// Gives a point that has accepted lengths others, (gamma + 1) of them.
void sample_count(SamplePoint *p, const double *accepted);

// S of the point under (alpha, phi), and of a good step beyond one token under alpha.
double sample_predict(const SamplePoint *p, double alpha, double phi);
double sample_gain(const SamplePoint *p, double alpha);

// Most tokens that a step past filling can emit.
double sample_most(const SamplePoint *p);
