// Times single steps of an open model, and the parts of a step by themselves, next to the floors under them.
#pragma once
#include "engine/base/random.h"
#include "engine/core/backend.h"
#include "engine/engine.h"
#include "harness/machine/watch.h"
#include "simulate/statistics.h"

// Seconds of one sample.
typedef struct BenchSample {
    double step;
    double submit, busy, layers, head; // of it: see BenchPoint
    int flags;                         // of results/record.h: what disturbed it
} BenchSample;

// Statistics of the undisturbed samples; of all, if too few were undisturbed.
typedef struct BenchTime {
    double mean_s, median_s;
    double low_s, high_s; // 95% of the median; NAN: a single sample
    double mad_s;         // median deviation from the median
    int n;                // samples
    int disturbed;        // samples that other processes disturbed, and that were repeated
    int flags;            // what disturbed it; 0: measured undisturbed
    int flags_before;     // flags of the time before it, which the watch found during it
    bool looked;          // whether the watch judged during it
} BenchTime;

typedef struct BenchPoint {
    // the step
    int context;
    int k, w;      // k rows of w tokens below the root; k = 0: a chain of `tokens`
    int tokens;    // nodes of the step, of one sequence
    int sequences; // that run it together, each over a context of its own; 0: one
    Layout layout; // of k and w
    // its cost
    BenchTime time;
    double submit_s; // median: of the host's own work on layers and head, without waiting for a device
    double busy_s;   // median, of them: the device's own work
    double layers_s, head_s; // medians, of busy_s (each its own, so they need not add up)
    double bytes;            // that it must read
    double experts; // read by it, of a layer that has any, on average over samples; 0: none, or not counted
    double experts_expected; // if rows chose theirs evenly and at random
    double operations;
    Reach slowdown; // over one token of one sequence at this context, same run, 95%
    double floor_bandwidth_s, floor_compute_s;
} BenchPoint;

typedef struct BenchOptions {
    int warm_up; // steps before the first sample, at least
    int min_samples, max_samples;
    double seconds; // enough for one point, once there are min_samples
    uint64_t seed;  // of the tokens
    Clock clock;
    Watch *watch; // NULL: disturbances are not looked for
} BenchOptions;

// Takes samples until enough of them are undisturbed, or four times as many have been taken. A sample is
// disturbed if the system took a processor from one of our threads during it or during the step before it,
// whose end may reach into it; or if the watch flags the time of the sample. False with e filled, also when
// interrupted.
enum { BENCH_SAMPLES = 800 };
typedef bool (*BenchTake)(void *state, BenchSample *out, Error *e);
bool bench_take(const BenchOptions *o, BenchTake take, void *state, BenchSample samples[BENCH_SAMPLES],
                BenchTime *out, Error *e);

// Whether samples are still thrown away, after so many that took so long. A model that fits the caches has to
// be in them: its first steps took up to 1.7 times as long.
bool bench_cold(const BenchOptions *o, int steps, double seconds);

// Whether a step of one token changed by more than noise; then the points between may have changed, too.
bool bench_drifted(double before, double after);

// The slowdown of a step over one token that was timed before and after it (again NULL: before only); the
// interval includes that change.
Reach bench_slowdown(const BenchTime *step, const BenchTime *one, const BenchTime *again);

// Sets the slowdown of a measured point, and marks it with what disturbed `one`.
void bench_compare(BenchPoint *p, const BenchTime *one, const BenchTime *again);

// An open model, or an adapter, whose rows of hidden states are random like its tokens.
typedef struct Benched {
    Session *session;
    Dtype weights;
    const Ceilings *ceilings;
    Session *more; // of the other sequences of a batch; NULL: none
} Benched;

// Operations per second that its products can reach: in bf16 if weights and activations are bf16, else in
// f32.
double bench_peak(const Benched *b);

static inline int bench_sequences(const BenchPoint *p) { return p->sequences > 1 ? p->sequences : 1; }

// Measures `point`; `one` is one token at this context (NULL: this is that one). The sequences are set to the
// context as needed. False with e filled, also where interrupted.
bool bench_point(const Benched *b, const BenchOptions *o, const BenchTime *one, BenchPoint *point, Error *e);

// Seconds to run and commit a prompt of `tokens` tokens from nothing, and its operations.
bool bench_prefill(Session *s, const BenchOptions *o, int tokens, double *seconds, double *operations,
                   Error *e);

// --- parts of a step, from which any step can be priced

typedef enum {
    PART_LAYERS,  // rows through layers [a, b)
    PART_HEAD,    // the LM head on rows, and the best token of each
    PART_PREFILL, // rows run and committed
    PART_COMMIT,  // rows that have been run, committed
    PART_HOST,    // a tree of rows built: no arithmetic
    PART_KINDS
} PartKind;
extern const char *const part_names[PART_KINDS]; // their names in the store

typedef struct PartPoint {
    PartKind kind;
    int a, b; // LAYERS
    int rows, context;
    BenchTime time;
} PartPoint;

// As bench_point: the context is set as needed. False with e filled, also where interrupted.
bool part_time(Session *s, const BenchOptions *o, PartPoint *p, Error *e);

// --- what a step must move and compute: the numerators of the two floors under its time

typedef struct StepShape {
    int rows;          // nodes run, of all sequences
    int read;          // of them that reach the LM head
    int context;       // committed tokens, of a sequence
    int cache_readers; // times a cached context is read or written: 1 a sequence, or one a row of
                       // LAYOUT_BATCH
    double seen;       // positions that the nodes see, summed over nodes
    double experts;    // that the nodes chose, each counted once a layer, in all layers
} StepShape;

typedef struct StepCost {
    double bytes;      // weights once, of experts the chosen ones; cached keys and values
    double operations; // products and attention; a multiply-add counts two
} StepCost;

StepCost step_cost(const Shape *shape, const BackendReport *report, const StepShape *step);
