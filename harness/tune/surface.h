// The surface as tuning needs it: the time of a step by its rows, at one context, up to the rows that no
// method can make up for.
#pragma once
#include "harness/machine/bench.h"
#include "simulate/tuning.h"

typedef struct TuneSurfaceAsk {
    int context;
    double most_rows; // that a point plans
    int longest;      // tokens that a step emits at most: a step that takes as many times as long is lost
    double seconds;   // for all of it; what is begun then ends. Two rows are measured always
    double steps;     // the same, as so many times a step of one row
    Clock clock;
    bool (*interrupted)(void);
} TuneSurfaceAsk;

typedef struct TuneSurface {
    double rows[TUNING_MOST_CURVE], seconds[TUNING_MOST_CURVE]; // (count) as measured, medians
    int context, count;
    double took_s;
} TuneSurface;

// As tuning takes it: it never falls with the rows; seconds: (TUNING_MOST_CURVE), for the curve to stand in.
TuningCurve tune_curve(const TuneSurface *s, double *seconds);

// False without an error where it is interrupted.
bool tune_surface(Engine *engine, const TuneSurfaceAsk *ask, TuneSurface *out, Error *e);
