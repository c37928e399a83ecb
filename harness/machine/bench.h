// Times single steps of an open model, of some tokens on top of some context, beside the two floors.
#pragma once
#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/engine.h"

typedef struct BenchPoint {
    // what is run
    int context;
    int k, w;      // k rows of w tokens below the root; k = 0: a chain of `tokens`
    int tokens;    // nodes of the step
    Layout layout; // of k and w
    // what it cost
    double mean_s, median_s, mad_s;
    double submit_s; // median, of them: the host's own, layers and head; what it does not wait for a device
    double busy_s;   // median, of them: the device's own work
    double layers_s, head_s; // medians, of busy_s (each its own, so they need not add up)
    int n;                   // samples
    double bytes;            // that it must read
    double operations;
    double slowdown; // over one token at this context, same run
    double floor_bandwidth_s, floor_compute_s;
} BenchPoint;

typedef struct BenchOptions {
    int warm_up; // steps before the first sample, at least
    int min_samples, max_samples;
    double seconds; // enough for one point, once there are min_samples
    uint64_t seed;  // of the tokens
    Clock clock;
    bool (*interrupted)(void); // asked between samples; may be NULL
} BenchOptions;

// Are samples still to be thrown away, after so many that took so long? A model that fits the caches has to
// be in them: its first ones took up to 1.7 times as long.
bool bench_cold(const BenchOptions *o, int steps, double seconds);

// Has a step of one token become another one, by more than noise? Then so may have what was measured between.
bool bench_drifted(double before, double after);

// Operations a second that products can reach as the open model does them: bf16 weights with bf16
// activations, or anything else, which is f32.
double bench_peak(const Engine *engine, const Ceilings *ceilings);

// Sets the session's sequence to `context` random tokens, unless it is that long already.
bool bench_set_context(Session *s, int context, Random *r, Error *e);

// Measures `point` on the model; `one` is the median time of one token at this context (0: this is that one).
// The session's sequence is set to the context as needed. False without an error where interrupted.
bool bench_point(Engine *engine, const Ceilings *ceilings, const BenchOptions *o, double one,
                 BenchPoint *point, Error *e);

// Seconds to run and commit a prompt of `tokens` tokens from nothing, and its operations.
bool bench_prefill(Engine *engine, const BenchOptions *o, int tokens, double *seconds, double *operations,
                   Error *e);
