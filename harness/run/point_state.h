// How far the measuring of one point has come: what decides whether it needs another pass, and what is said
// of it on the way. Filled from the store when a run is resumed, and by every round that ends.
#pragma once
#include "harness/config/experiment.h"

typedef struct PointState {
    int prompts;
    double *seconds; // (passes, prompts) of decoding; NAN: not measured
    bool *flagged;   // (passes) the machine was not at rest
    size_t seconds_capacity, flagged_capacity;
    int passes;                             // that have begun
    double tokens, steps, decode_s, base_s; // of all rounds that its baseline shares
    int diverged;                           // answers
    bool failed;                            // and is not run any more
    char why[256];
} PointState;

typedef struct RoundTimes {
    int pass, prompt;
    double tokens, steps, decode_s; // of all turns
    bool flagged, diverged;
} RoundTimes;

// prompts is set before. False with e filled if there is no memory.
bool state_add(PointState *s, const RoundTimes *t, Error *e);
void state_release(PointState *s); // takes an empty one

bool state_has(const PointState *s, int pass, int prompt);

// Whether a point is measured, as of the first `passes` passes. Of a warm one, passes that were flagged are
// run again, up to `reruns` of them.
bool state_is_done(const PointState *s, const Measurement *m, int passes, bool warm);
