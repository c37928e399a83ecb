// Measured times of steps, and a machine fitted to them.
//
// The data sheet's part of the machine stays as it is; what is reached of it is fitted to the logarithms of
// the times, so that a short step counts as much as a long one. Each fitted number is held near where it
// began by a weak prior (a factor of e^2), so that what the surface does not determine stays put.
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

// CSV with the columns tokens, context, k, w, layout and median_s, as `outpace bench --csv` prints it; others
// are passed over. Release also what failed.
bool surface_parse(const char *bytes, size_t n, const char *place, Surface *out, Error *e);
bool surface_open(const char *path, Surface *out, Error *e);
void surface_release(Surface *s);

// Holds out this share of the points, drawn at random, at least one and all but one at most.
void surface_hold_out(Surface *s, double share, uint64_t seed);

typedef struct SurfaceError { // relative errors of the priced times
    int points;
    double median, worst; // 0 where there are no points
} SurfaceError;

typedef struct SurfaceFit {
    Hardware machine;
    SurfaceError fitted, held_out;
} SurfaceFit;

// Needs at least two points that are not held out.
bool surface_fit(const Surface *s, const Hardware *start, const StepModel *model, SurfaceFit *out, Error *e);

// Each context in turn is held out whole, the others are fitted: how well steps are priced at contexts that
// were never measured. What is marked as held out is not looked at. No points where there is one context.
bool surface_leave_context(const Surface *s, const Hardware *start, const StepModel *model, SurfaceError *out,
                           Error *e);
