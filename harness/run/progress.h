// How far a run is: the times of each point so far, whether they're enough, and the remaining work. It's read
// from the ledger when a run starts, so that a resumed run decides as the interrupted one would have; then
// every finished round updates it.
//
// The rules (repeat_*) are pure functions of the measured times.
#pragma once
#include "harness/run/ledger.h"

typedef struct PointProgress {
    int prompts;
    double *seconds; // (passes, prompts) of decoding; NAN: not measured
    bool *flagged;   // (passes) the machine was disturbed
    size_t seconds_capacity, flagged_capacity;
    int passes;                             // that have begun
    double tokens, steps, decode_s, base_s; // of all rounds that its baseline shares
    int diverged;                           // answers
    bool failed;                            // it doesn't run any more
    char why[256];
} PointProgress;

typedef struct RoundTimes {
    int pass, prompt;
    double tokens, steps, decode_s; // of all turns
    bool flagged, diverged;
} RoundTimes;

// `prompts` is set before.
void point_progress_add(PointProgress *p, const RoundTimes *t);
void point_progress_release(PointProgress *p); // accepts an empty one
bool point_progress_has(const PointProgress *p, int pass, int prompt);

typedef struct RunProgress {
    const Ledger *ledger;
    const Inputs *in;
    const Schedule *schedule;
    const Measurement *measurement;
    PointProgress *points; // (points of the schedule)
} RunProgress;

// The ledger outlives it.
bool progress_open(RunProgress *r, const Ledger *ledger, Error *e);
void progress_release(RunProgress *r); // accepts an empty one

// Sets which of a group's members need another pass after `passes`; returns whether any does. A baseline that
// isn't in the sweep runs only if another member does.
bool progress_wants(const RunProgress *r, const Group *g, int passes, bool *wanted);
bool progress_is_done(const RunProgress *r, const Group *g);
bool progress_is_left(const RunProgress *r, const Group *g, int member); // runnable, and not measured yet

// The first prompt from `from` on whose round is missing; the number of prompts if none is.
int progress_next(const RunProgress *r, const Group *g, int pass, int from);

// Tokens, as if every output had its maximal length: of a group's pass, and of all that remains.
double progress_tokens(const RunProgress *r, const Group *g);
double progress_work(const RunProgress *r);

// The relative standard error of the mean pass. It comes only from differences between passes of the same
// prompt: differences between prompts aren't timing errors. seconds: (passes, prompts). INFINITY for fewer
// than two passes.
double repeat_error(const double *seconds, int passes, int prompts);

// Whether a point is measured often enough. passes: the ones that count; spent: the point's seconds so far.
bool repeat_is_done(const Measurement *m, int passes, double error, double spent);

// Marks the passes of one prompt whose time is far from the median, if there are at least three. seconds:
// (passes), `stride` apart.
void repeat_outliers(const double *seconds, int passes, int stride, bool *out);
