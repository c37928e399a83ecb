// The spaces that `outpace tune` looks through: one row per method lists the parameters it varies.
#pragma once
#include "harness/config/sweep.h"
#include "harness/run/plan.h"
#include "simulate/tuning.h"

typedef struct TuneAxis {
    const char *name, *values; // as an axis of a config's matrix
} TuneAxis;

enum { TUNE_AXES = 5 };

typedef struct TuneMethod {
    const char *name;
    TuneAxis axes[TUNE_AXES]; // names are NULL after the last
} TuneMethod;

// Unknown: e names those that there are.
const TuneMethod *tune_method_find(const char *name, Error *e);

typedef struct TuneSpace {
    TuningPoint *points; // (count): those of the sweep, in its order
    int count;
    int longest;      // the largest N
    double most_rows; // planned
} TuneSpace;

void tune_space_open(const Plan *p, TuneSpace *out);
void tune_space_release(TuneSpace *s);

// The point as --method takes it: "lookahead:W=5,N=3,G=5", with the config's own values.
void tune_method_text(const Experiment *x, const Point *p, Text *out);

// --- the experiment that tune runs

typedef struct TuneAsk {
    const char *method;                          // "lookahead", or "lookahead:bonus=drop": fixed, no axis
    const char *target, *draft;                  // directories; NULL: none
    const char *adapters[ADAPTER_ROLES];         // directories, too
    const char *inflate, *inflate_draft;         // shapes; NULL: as they are
    const char *dataset, *path, *format, *split; // path: a file in place of a dataset that is known
    const char *template;                        // NULL: none
    EngineOptions engine;                        // the config's hardware, with a device
    int limit, max_tokens;
    bool ignore_eos;
    bool processor; // measures processor time; the run is marked so
    uint64_t seed;  // of the order of the prompts
    Words axes;
    bool tree;  // prepare to calibrate a fixed tree (tree.h): one point
    Words sets; // of the config, as `run --set` takes them
} TuneAsk;

// `out` may not move. False with e filled, and out empty.
bool tune_prepare(const TuneAsk *ask, Plan *out, Error *e);
