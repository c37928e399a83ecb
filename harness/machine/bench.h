// Times single steps of an open model, of some tokens on top of some context, beside the two floors.
#pragma once
#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/engine.h"
#include "harness/machine/watch.h"
#include "simulate/statistics.h"

// Seconds of one sample.
typedef struct BenchSample {
    double step;
    double submit, busy, layers, head; // of it: see BenchPoint
    int flags;                         // of results/record.h: what disturbed it
} BenchSample;

// What samples come to: of the undisturbed ones, or, where these were too few, of all.
typedef struct BenchTime {
    double mean_s, median_s;
    double low_s, high_s; // 95% of the median; NAN: a single sample
    double mad_s;         // median deviation from the median
    int n;                // samples
    int disturbed;        // samples that others disturbed, and that were repeated
    int flags;            // what disturbed all of it; 0: it was measured undisturbed
    int flags_before;     // what the watch found out during it of the time before it
    bool looked;          // did the watch find out anything?
} BenchTime;

typedef struct BenchPoint {
    // what is run
    int context;
    int k, w;      // k rows of w tokens below the root; k = 0: a chain of `tokens`
    int tokens;    // nodes of the step
    Layout layout; // of k and w
    // what it cost
    BenchTime time;
    double submit_s; // median, of them: the host's own, layers and head; what it does not wait for a device
    double busy_s;   // median, of them: the device's own work
    double layers_s, head_s; // medians, of busy_s (each its own, so they need not add up)
    double bytes;            // that it must read
    double operations;
    Reach slowdown; // over one token at this context, same run, 95%
    double floor_bandwidth_s, floor_compute_s;
} BenchPoint;

typedef struct BenchOptions {
    int warm_up; // steps before the first sample, at least
    int min_samples, max_samples;
    double seconds; // enough for one point, once there are min_samples
    uint64_t seed;  // of the tokens
    Clock clock;
    Watch *watch; // who finds out what was disturbed; NULL: nobody looks
} BenchOptions;

// Takes samples until enough of them are undisturbed, or four times as many have been taken. A sample is
// disturbed if the system took a processor from a thread of ours in it, or in the step before it, whose end
// may reach into it; or if the watch says so of the time that it was taken in. False with e filled, also
// where it is interrupted.
enum { BENCH_SAMPLES = 800 };
typedef bool (*BenchTake)(void *state, BenchSample *out, Error *e);
bool bench_take(const BenchOptions *o, BenchTake take, void *state, BenchSample samples[BENCH_SAMPLES],
                BenchTime *out, Error *e);

// Are samples still to be thrown away, after so many that took so long? A model that fits the caches has to
// be in them: its first ones took up to 1.7 times as long.
bool bench_cold(const BenchOptions *o, int steps, double seconds);

// Has a step of one token become another one, by more than noise? Then so may have what was measured between.
bool bench_drifted(double before, double after);

// The slowdown of a step over one token that was timed before and after it (again NULL: before only): its
// interval holds that change, too.
Reach bench_slowdown(const BenchTime *step, const BenchTime *one, const BenchTime *again);

// Operations a second that products can reach as the open model does them: bf16 weights with bf16
// activations, or anything else, which is f32.
double bench_peak(const Engine *engine, const Ceilings *ceilings);

// Sets the session's sequence to `context` random tokens, unless it is that long already.
bool bench_set_context(Session *s, int context, Random *r, Error *e);

// Measures `point` on the model; `one` is one token at this context (NULL: this is that one).
// The session's sequence is set to the context as needed. False with e filled, also where interrupted.
bool bench_point(Engine *engine, const Ceilings *ceilings, const BenchOptions *o, const BenchTime *one,
                 BenchPoint *point, Error *e);

// Seconds to run and commit a prompt of `tokens` tokens from nothing, and its operations.
bool bench_prefill(Engine *engine, const BenchOptions *o, int tokens, double *seconds, double *operations,
                   Error *e);
