// Measured points of S in a file that anybody can write: a header line, then a line per row, fields between
// tabs; lines that begin with # are comments.
//
//     N  W   G   S     se        prompt  steps  accepted      candidates
//     5  15  15  1.83  0.02      mt-81   210    0:120,4:90    0:30,15:180
//
// N, W, G and S are required. Other columns are optional; a column has a value in every row:
//
//   se          the standard error of S
//   prompt      each row is one prompt's S at the point; needs `steps`, and every prompt at every point
//   steps       how many steps S is the mean of
//   accepted    length:count pairs: how many steps accepted that many drafted tokens, the filling steps not
//               counted
//   candidates  number:count pairs: how many steps had that many guesses to verify; at most 1,023 guesses
#pragma once
#include "engine/base/error.h"
#include "simulate/laws.h"

#include <stddef.h>
#include <stdint.h>

enum { POINTS_MOST_N = 129, POINTS_MOST_CANDIDATES = 1023, POINTS_MOST_BYTES = 64 << 20 };

typedef enum {
    POINTS_SE = 1,
    POINTS_PROMPT = 2,
    POINTS_STEPS = 4,
    POINTS_ACCEPTED = 8,
    POINTS_CANDIDATES = 16
} PointsColumn;

typedef struct Histogram {
    double *count; // (most + 1)
    int most;
} Histogram;

typedef struct PointRow {
    int line;     // of the file
    double S;     // [1, N]
    double se;    // 0: not given
    double steps; // 1 where not given
    Histogram accepted, candidates;
} PointRow;

typedef struct PointAt {
    int N, W, G;
} PointAt;

typedef struct Points {
    PointAt *points;    // (count), in the file's order
    PointRow *rows;     // (count, prompts)
    char **names;       // (prompts) of the prompts; NULL entries where there is no such column
    int count, prompts; // prompts: 1 where there is no such column
    unsigned columns;   // of PointsColumn
} Points;

// `place` is the file in messages, which also give the line. Release even after a failure.
bool points_parse(const char *bytes, size_t n, const char *place, Points *out, Error *e);
bool points_open(const char *path, Points *out, Error *e);
void points_release(Points *p);

// --- the sample -----------------------------------------------------------------------------------------

// Points as a law sees them: the input of every estimator of (alpha, f). Points are weighed by prompt, so a
// resample of prompts is the same sample with other weights.
typedef enum {
    FIT_PAPER,     // b = W = G; points with W != G are predicted, not fitted
    FIT_CORRECTED, // b is each step's own number of candidates if known, else G; every point is fitted
} FitLaw;

typedef struct FitOptions {
    FitLaw law;
    bool bonus_dropped;
    double output; // tokens of an output on average, whose first N - 2 steps emit one each; 0: no filling
    int resamples; // of the bootstrap, at least 2
    double level;  // of the intervals
    uint64_t seed;
    bool alone; // only the estimates: no leave-out rounds, no other assumptions
} FitOptions;

typedef struct SamplePoint {
    PointAt at;
    Law law;          // f = 1; alpha is the estimator's
    double *share;    // (law.share_count), the law's; or NULL
    double *accepted; // (gamma + 1): how many steps accepted i tokens; or NULL
    double hits;      // of these, steps that accepted a token
    double S, se;     // se: 0 where not known
    double tokens;    // of a step past filling, from S
    double weight;    // of tokens in a sum of squares: 1 / variance, or relative to it where se is not known
    bool fitted;
} SamplePoint;

typedef struct Sample {
    SamplePoint *points; // (count)
    int count, fitted;
} Sample;

// All prompts have weight 1. Fails if S of a point is impossible under these options; release even then.
bool sample_open(const Points *points, const FitOptions *o, Sample *out, Error *e);
void sample_release(Sample *s);

// Weighs prompts by `weights` (prompts); NULL: 1 each.
void sample_weigh(Sample *s, const Points *points, const double *weights);

// Sets S of a point.
void sample_move(SamplePoint *p, double S);

// Sets the accepted lengths, (gamma + 1), of a point that has some.
void sample_count(SamplePoint *p, const double *accepted);

// S of the point under (alpha, phi); tokens of a good step beyond the first, under alpha.
double sample_predict(const SamplePoint *p, double alpha, double phi);
double sample_gain(const SamplePoint *p, double alpha);
