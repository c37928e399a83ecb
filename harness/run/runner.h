// Runs a schedule: opens each model once, goes through its groups, and measures round by round. What was
// measured before, in the same run, is not measured again.
//
// Every prompt of every method is held against the baseline's answer as it runs, where outputs are greedy.
#pragma once
#include "harness/run/ledger.h"
#include "harness/run/point_state.h"
#include "harness/run/reporter.h"

typedef struct RunnerResult {
    bool interrupted;
    int points;                // of the sweep, that are measured
    int baselines;             // measured, that the sweep lacks
    int skipped, failed, left; // of the sweep, that are not
    int diverged;              // points whose text was not the baseline's
    int rounds;                // of this start
    double seconds, harness_s; // that they took, and what of it was not decoding
} RunnerResult;

// What a test puts in place of the real things; NULL: those.
typedef struct RunnerSeams {
    bool (*open_method)(Method *m, const char *text, const MethodEnv *env, Error *e);
    bool (*interrupted)(void);
    void (*look)(void *state, WatchLook *out); // see watch.h
    void *look_state;
    Clock clock; // now NULL: the monotonic one
} RunnerSeams;

// False with e filled where the run cannot go on; all that ended before is in the ledger. seams may be NULL.
bool runner_run(Ledger *ledger, bool json, const RunnerSeams *seams, RunnerResult *out, Error *e);
