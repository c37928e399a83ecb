// The losses of a run, step by step: a table beside the checkpoint, and a curve in letters.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stdbool.h>

typedef struct CurvePoint {
    int step;
    double loss, held_out; // of the step's batch; NAN: not looked at
} CurvePoint;

typedef struct Curve {
    CurvePoint *points; // (count), by step
    size_t count, capacity;
} Curve;

// Adds to the last point where that is of the same step. NAN changes nothing.
bool curve_add(Curve *c, int step, double loss, double held_out, Error *e);
void curve_release(Curve *c); // takes an empty one

// The table, "step <tab> loss <tab> held_out", a line a point; what is not known is empty. Reading takes what
// comes up to a step, and leaves out lines that are none.
extern const char curve_heads[];
void curve_write(const Curve *c, Text *out);
bool curve_read(Curve *c, const char *text, size_t n, int last_step, Error *e);

// A few lines: * the batches' losses, each the mean of its column, o what was held out. Nothing where there
// are fewer than two points.
void curve_draw(const Curve *c, Text *out);
