// What `outpace tune` is asked for, as an experiment like any other: one model, one dataset, one method whose
// parameters are axes. So its points are checked, named, run and stored as those of a sweep are.
#pragma once
#include "harness/tune/space.h"

typedef struct TuneAsk {
    const char *method;                             // "lookahead", or "lookahead:bonus=drop": fixed, no axis
    const char *target, *draft, *adapter;           // directories; NULL: none
    const char *inflate, *inflate_draft;            // shapes; NULL: as they are
    const char *dataset, *path, *format, *split;    // path: a file in place of a dataset that is known
    const char *template, *device, *compute, *math; // NULL: none, cpu, as the weights, exact
    const char *weights;                            // NULL: mapped
    int limit, max_tokens, threads;
    bool ignore_eos;
    bool processor; // what is measured is processor time: the run says so
    uint64_t seed;  // of the order of the prompts
    Words axes;
    Words sets; // of the config, as `run --set` takes them
} TuneAsk;

// `out` may not move. False with e filled, and out empty.
bool tune_prepare(const TuneAsk *ask, const TuneMethod **method, Plan *out, Error *e);
