// The losses of a training run, step by step.
#pragma once
#include "engine/base/text.h"

typedef struct CurvePoint {
    int step;
    double loss, held_out; // of the step's batch; NAN: not measured
} CurvePoint;

typedef struct Curve {
    CurvePoint *points; // (count), in ascending order of steps
    size_t count, capacity;
} Curve;

// Adds a point, or adds to the last point if that has the same step. NAN changes nothing.
void curve_add(Curve *c, int step, double loss, double held_out);
void curve_release(Curve *c); // accepts an empty one

// A table, "step <tab> loss <tab> held_out", a line a point, unknown numbers empty; read up to a step.
extern const char curve_heads[];
void curve_write(const Curve *c, Text *out);
void curve_read(Curve *c, const char *text, size_t n, int last_step);
void curve_draw(const Curve *c, Text *out); // in letters
