// Measured times of steps, and a machine fitted to them.
//
// The data sheet's part of the machine is fixed; the reached shares are fitted to the logarithms of the
// times, so a short step counts as much as a long one. A weak prior (a factor of e^2) holds each fitted
// number near its start, so numbers that the surface doesn't determine stay there.
#pragma once
#include "simulate/hardware.h"

#include <stdint.h>

typedef struct SurfacePoint {
    StepPlan step;
    double seconds; // median
    bool held_out;  // priced, not fitted
} SurfacePoint;

typedef struct Surface {
    SurfacePoint *points; // (count)
    int count;
} Surface;

// CSV with the columns tokens, context, k, w, layout, median_s and, if experts were counted, experts, and if
// several sequences ran the step together, batch, as `outpace bench --csv` prints it; others are skipped.
// Release even after a failure.
bool surface_parse(const char *bytes, size_t n, const char *place, Surface *out, Error *e);
bool surface_open(const char *path, Surface *out, Error *e);
void surface_release(Surface *s);

// Holds out this share of the points, drawn at random: at least one, at most all but one.
void surface_hold_out(Surface *s, double share, uint64_t seed);

typedef struct SurfaceError { // relative errors of the priced times
    int points;
    double median, worst; // 0 without points
} SurfaceError;

typedef struct SurfaceFit {
    Hardware machine;
    SurfaceError fitted, held_out;
} SurfaceFit;

// Needs at least two points that are not held out.
bool surface_fit(const Surface *s, const Hardware *start, const StepModel *model, SurfaceFit *out, Error *e);

// The machine's error on the steps of from `low` to `high` rows, held out or not.
SurfaceError surface_error(const Surface *s, const Hardware *machine, const StepModel *model, int low,
                           int high);

// Holds out each context in turn and fits the others: the error of prices at contexts that were never
// measured. Ignores the points' own held_out. With one context there are no points.
bool surface_leave_context(const Surface *s, const Hardware *start, const StepModel *model, SurfaceError *out,
                           Error *e);
