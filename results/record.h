// The rows of the store as plain structs, one per table; schema.sql defines each column.
// Texts are UTF-8; NULL is unknown. Ids come from the store; 0: none. Times are seconds; below 0: unknown.
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef enum { VALUE_NULL, VALUE_INT, VALUE_REAL, VALUE_TEXT, VALUE_BLOB } ValueType; // of a column

typedef struct StoreContent {
    const char *kind, *name, *hash, *path; // kind: weights, draft, tokenizer, template, dataset, config...
} StoreContent;

typedef struct StoreRun {
    const char *hash; // of everything that determines the measurement, machine and device included if they do
    const char *uid;  // the same run in other stores; NULL: a new one
    const char *kind; // sweep, surface, import
    const char *name, *about, *config_file, *config, *overrides, *version;
    bool dirty;
    const StoreContent *contents; // (content_count)
    int content_count;
} StoreRun;

typedef struct StoreEnvironment {
    const char *version, *compiler, *flags, *libraries; // libraries: a JSON object
    const char *host, *system, *kernel, *cpu, *isa, *governor;
    int64_t cores, threads, virtual_machine, l1d, l2, l3, memory, gpu_memory;
    double bandwidth, peak; // bytes/s, operations/s; 0: not measured
    const char *gpu, *gpu_uuid, *driver, *cuda, *cublas;
    double gpu_bandwidth, gpu_peak;
} StoreEnvironment;

// NAN: the device has no such reading.
typedef struct StoreReading {
    double at; // seconds since 1970
    const char *moment, *device, *throttle;
    double clock_mhz, memory_clock_mhz, power_w, temperature_c, load;
    int busy_others;
} StoreReading;

typedef struct StoreModel {
    const char *name, *hash, *path, *shape, *dtype, *stand_in; // shape: a JSON object
    int layers;
} StoreModel;

typedef struct StoreDataset {
    const char *name, *hash, *path;
} StoreDataset;

typedef struct StorePrompt {
    int64_t dataset;
    int number, turn;
    const char *name, *task;
} StorePrompt;

// A value that reads as a number is stored as one.
typedef struct StoreParam {
    const char *section, *name, *value; // section: method, hardware, generation
} StoreParam;

typedef struct StorePoint {
    int number;
    const char *hash;
    int64_t model, dataset;
    const char *method, *decoder, *label, *skipped;
    double temperature;
    int64_t baseline, same_path; // points; 0: none, as for an autoregressive point
    const StoreParam *params;    // (param_count)
    int param_count;
} StorePoint;

typedef struct StoreOutput {
    const int *ids; // (count)
    int count;
    const char *text, *pieces; // (text_bytes); the part of each token, a JSON array, NULL: unknown
    int64_t text_bytes;
    double repeated; // below 0: unknown
    bool looping;
} StoreOutput;

typedef enum { STORE_STEADY, STORE_FILLING, STORE_PREFILL } StoreStepKind;
typedef enum { ROLE_TARGET, ROLE_DRAFT, ROLE_ADAPTER } StoreRole;

// Through layers [a, b); a = b: the head.
typedef struct StorePass {
    StoreRole model;
    int a, b, rows, context, count;
} StorePass;

typedef struct StoreSource {
    const char *name;
    int rows, length, rank; // rank: of the longest match, from 1; 0: nothing matched
} StoreSource;

typedef struct StoreGuess {
    int depth, token;
    const char *piece; // NULL: unknown
} StoreGuess;

// Numbers and times below 0 are unknown (steps of other engines); accepted and emitted are always known.
typedef struct StoreStep {
    StoreStepKind kind;
    int context, rows, asked, depth, candidates, probes, drafted, tried, accepted, emitted;
    const uint8_t *matches; // (match_bytes): see step.matches; NULL: no drafted chain
    int match_bytes, pass_count, source_count, rejected_count;
    int pool, pool_hits; // pool below 0: the method has none
    double propose_s, forward_s, verify_s, observe_s, device_s;
    int sequences, shared_run;  // of a batch (table step_batch); sequences 0: it was alone
    double latency_s;           // then
    const StorePass *passes;    // (pass_count)
    const StoreSource *sources; // (source_count), each name once
    const StoreGuess *rejected; // (rejected_count)
    double margin;              // below 0: unknown
} StoreStep;

typedef struct StoreDivergence {
    int position, wanted, got;
    double margin; // NAN: unknown
} StoreDivergence;

// Bits of a sample's flags; the table flag explains them.
enum { FLAG_OUTLIER = 1, FLAG_THROTTLED = 2, FLAG_CLOCK = 4, FLAG_LOAD = 8 };
enum { FLAG_DIVERGED = 16, FLAG_CUT = 32, FLAG_PAUSED = 64, FLAG_PAGED = 128 };
enum { FLAGS_FROM_OUTSIDE = FLAG_THROTTLED | FLAG_CLOCK | FLAG_LOAD | FLAG_PAUSED | FLAG_PAGED };

typedef struct StoreSample {
    int64_t point, prompt, attempt;
    int pass, position, flags, step_count;
    double started;                                           // seconds since 1970
    int prompt_tokens, tokens, prefill_tokens, prefill_steps; // prefill_: see schema.sql
    double prefill_s, decode_s;                               // wall clock; prefill below 0: it is in decode
    double device_head_s, device_commit_s;                    // where its steps have device_s
    const StoreOutput *output;                                // NULL: not kept
    const StoreDivergence *divergence;                        // NULL: none
    const StoreStep *steps; // (step_count), those after prefill, in order; NULL: only their number is known
} StoreSample;

typedef struct StoreSurface {
    int64_t attempt, model;
    const char *kind, *device, *compute, *layout, *cache, *weights;
    int k, w, a, b, rows, head_rows, context; // k, b or head_rows below 0: does not apply
    int sequences, samples, disturbed, flags; // sequences: that share the rows of a step; 0: a part of one
    double mean_s, median_s, deviation_s, slowdown, floor_s, bytes, operations, drift; // below 0: unknown
    double low_s, high_s, slowdown_low, slowdown_high;                                 // likewise
} StoreSurface;

typedef struct StoreEstimate {
    const char *metric;
    double value, low, high, deviation; // NAN: not computed
    int64_t resamples, seed;
} StoreEstimate;
