// The surface as tuning needs it: the time of a step by its number of rows, at one context, up to the first
// number of rows that is so slow that no method can gain by it.
#pragma once
#include "harness/machine/steps.h"
#include "simulate/tuning.h"

typedef struct TuneSurfaceAsk {
    int context;
    double most_rows; // that a point plans
    int longest;    // most tokens that a step can emit: a step that takes that many times as long as one row
                    // gains nothing
    double seconds; // limit for all of it, but what was begun is finished; two numbers of rows are always
                    // measured
    double steps;   // the same limit, as a multiple of a step of one row
    Clock clock;
    Watch *watch; // NULL: nobody looks
} TuneSurfaceAsk;

typedef struct TuneSurface {
    double rows[TUNING_MOST_CURVE], seconds[TUNING_MOST_CURVE]; // (count) as measured, medians
    int context, count;
    int disturbed; // of them: could not be measured undisturbed
    double took_s;
} TuneSurface;

// As a curve that never falls as rows grow. seconds: (TUNING_MOST_CURVE), memory for the curve.
TuningCurve tune_curve(const TuneSurface *s, double *seconds);

bool tune_surface(Engine *engine, const TuneSurfaceAsk *ask, TuneSurface *out, Error *e);
