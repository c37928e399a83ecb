// The output of `outpace bench`: a table, CSV, or one JSON object with everything that the numbers depend on.
// A GPU's ceilings are listed with the GPU, the processor's with the machine.
#pragma once
#include "harness/cli/table.h"
#include "harness/bench/steps.h"
#include "harness/machine/machine.h"

enum { BENCH_POINTS = 4096 };

typedef struct BenchRun {
    const char *dir;
    const char *math; // "exact" or "fast"
    bool processor;   // processor time instead of wall time
    Engine engine;
    AdapterEngine adapter; // empty: the model's own steps are timed
    const char *adapter_dir;
    Benched benched; // the model or its adapter
    Ceilings ceilings;
    Machine machine;
    Error passed;        // why device auto passed over the first GPU; empty: it did not
    bool gpu;            // what follows is of one
    Gauge before, after; // of its first card
    double copy_bytes_per_s;
    bool batches; // some points are of several sequences
    BenchPoint points[BENCH_POINTS];
    int count, measured; // of them; fewer where the run ended early
    int drifted;         // the first context in whose measuring the machine changed, as it seems; -1: none
    double before_s, after_s; // what one token took there before the other points, and after them
    double open_s;            // from nothing to the first logits
    int prefill;              // tokens
    double prefill_s, prefill_operations;
} BenchRun;

bool bench_report_table(const BenchRun *b, Error *e);
bool bench_report_csv(const BenchRun *b, Error *e);
extern const TableForm bench_points;

// ended: NULL, or why there are fewer points than were asked for.
bool bench_report_json(const BenchRun *b, const char *ended, Error *e);
