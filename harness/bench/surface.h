// The memory-to-compute surface of an open model, and the times of a step's parts, into a store. It is
// measured in units, each stored whole: the grid of a context, with its reference, a step of one token; and
// the parts of one number of rows at one context. So an interrupted run continues with the unit it was in.
#pragma once
#include "harness/bench/steps.h"
#include "harness/cli/terminal.h"
#include "engine/base/ranges.h"
#include "results/store.h"

typedef struct SurfacePlan {
    Layout layout;
    IntList k, w, contexts; // the grid
    IntList batch;          // of it: sequences that run a step together; the session has as many
    IntList rows;           // of parts; 0: none
    IntList exits;          // layers that a step stops at: those before and those from there on are timed
    int samples;
    uint64_t seed;
    bool sequence; // the prefill of each context's text, from nothing, is timed too
} SurfacePlan;

typedef struct SurfaceRun {
    SurfacePlan plan;
    Engine engine;
    Ceilings ceilings;
    const char *device;
    bool fast; // math: its points are not those of exact
    Store *store;
    int64_t run, attempt, model;
    int points, found; // of the surface: measured by this start, and there before
    Line line;
} SurfaceRun;

// Nodes of a step: in a batch k roots with w each, in a tree one root with k chains of w.
int surface_tokens(Layout layout, int k, int w);

// False with e filled, also where interrupted; what ended before is in the store.
bool surface_run(SurfaceRun *s, Error *e);
