// Predicts a method's whole space from a few measured points: tokens per step, the time of a step, and the
// speedup from both.
//
//      S        Lookahead's law (laws.h), fitted to the sample; its residuals are kriged over the space
//      rows     as planned, times the sample's ratio of measured to planned
//      step     the surface's time for that number of rows, scaled by the time of a token while decoding; the
//               cost of host, draft or adapter is kriged
//      speedup  S x the time of a token, autoregressive / the time of a step
//
// All kriging is of logarithms. Errors are those of the ranking: errors that all points share are not
// included.
#pragma once
#include "simulate/kriging.h"

enum { TUNING_MOST_AXES = 8, TUNING_MOST_CURVE = 64 };

typedef struct TuningPoint {
    double place[TUNING_MOST_AXES]; // each in [0, 1]; 0 past the space's axes
    int N;                          // what a step can emit at most, by the law: at least 1
    int b;                          // guesses of a step, by the law: at least 1
    double rows;                    // of a step, as planned: at least 1
} TuningPoint;

typedef struct TuningMeasured { // sums over the same prompts for every point
    int point;                  // of the space
    double tokens, steps, rows, seconds;
    double S_error, time_error; // of the logarithms of S and of a step's time
} TuningMeasured;

// The time of a step by its rows: (count), at most TUNING_MOST_CURVE; rows rising.
typedef struct TuningCurve {
    const double *rows;
    double *seconds;
    int count;
} TuningCurve;

// Makes it rise, or stay, with the rows, as near as that lets it be in the logarithms.
void tuning_curve_rise(TuningCurve *c);

// By proportion between two rows; past the last, as many times as long as there are times the rows.
double tuning_curve_at(const TuningCurve *c, double rows);

typedef struct TuningProblem {
    const TuningPoint *space; // (count)
    int count, axes;
    const TuningMeasured *measured; // (measured_count)
    int measured_count;
    TuningCurve curve;
    double token_s; // autoregressive decoding's
} TuningProblem;

typedef struct TuningPrediction {
    double S, rows, step_s, speedup;
    double error; // of the logarithm of the speedup
} TuningPrediction;

typedef struct TuningLaw {
    bool given; // else the sample could not tell its parameters, and its mean S stood for the law
    double alpha, f;
} TuningLaw;

// Fills out (count).
bool tuning_predict(const TuningProblem *p, TuningPrediction *out, TuningLaw *law, Error *e);

// The points to race: the one predicted best, then in turn the one that could most surprise and the next
// best, as far as they could beat the first. `sure`, measured fastest of the sample, is the second, whatever
// is predicted of it; -1: none. Gives their number, at most `most`.
int tuning_choose(const TuningPrediction *predictions, int count, int sure, int most, int *chosen);

// The points to measure next, in turn the one predicted best and the one that could most surprise, of those
// not known yet that could be faster than all that are known. Gives their number, at most `most`.
int tuning_close_in(const TuningPrediction *predictions, const bool *known, int count, int most, int *chosen);
