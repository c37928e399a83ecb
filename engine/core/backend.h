// The boundary between methods and hardware: a backend is a table of functions.
//
// A backend instance is one open model on one device, with its weights, its cache and its step area.
// core/session.c decides all integers (tree, positions, slots, who may see whom); the backend does the
// arithmetic. Several instances may be open side by side: there is no state at file scope.
//
// Exactness: a node's numbers are the same bits whatever shares the step with it (other nodes, any layout,
// prefill in chunks of any size, any number of threads, any slots of its keys). A backend takes keys in
// position order, cuts them at absolute positions only, and lets masked lanes contribute exactly nothing.
#pragma once
#include "engine/base/error.h"
#include "engine/base/progress.h"
#include "engine/core/compute.h"
#include "engine/core/shape.h"
#include "engine/core/step.h"

#include <stddef.h>

// Some of a device's cards; none is the first.
enum { CARDS_MAX = 16 };
typedef struct Cards {
    int count;
    int ordinal[CARDS_MAX]; // no two alike
} Cards;

typedef struct BackendOptions {
    Cards cards; // on several of one kind, in this order, a model gives the same bits as on any one of them
    Compute compute;
    int context;     // positions; 0: the shape's own
    int max_nodes;   // of a step; at most TREE_MAX_NODES
    int slack;       // see cache.h
    int threads;     // 0: one per core
    bool plain;      // attention keeps its scores in memory (docs/speed.md), and is as exact
    const char *isa; // force a kernel set; NULL: the best one on this machine
    bool fast;       // a vendor's library does the sums, which may then depend on what shares the step
    // An instance of the same backend and device whose threads (used in turns; `threads` is then ignored) or
    // stream this one shares. It's closed after this one. NULL: its own.
    void *beside;
    int sequences; // whose instances share steps; 0: one. Only the first is opened with it
    // The first sequence's instance, of the same model and options: this one shares its scratch, too, and
    // steps of both may run together. It's closed after this one. NULL: this is the first.
    void *first;
    Progress progress; // of opening, and of everything that the session runs
} BackendOptions;

typedef enum {
    HIDDEN_RAW,      // the residual stream after the last layer that the node has been through
    HIDDEN_NORMED,   // the same after the final norm (after all layers)
    HIDDEN_CAPTURED, // after each captured layer, side by side (after all layers)
} HiddenKind;

// Seconds of work since the instance opened, by kind of call; their sum is the time the device was busy. A
// device with its own clock (events in a GPU's stream) times the work itself, when something next waits for
// it; other instances time their calls by the wall clock.
typedef struct PhaseSeconds {
    double run;    // run, and set_hidden
    double head;   // head, distribution and get_hidden
    double commit; // commit; by a device's own clock: only commits that something has waited for since
} PhaseSeconds;

typedef struct BackendReport {
    const char *name, *device, *isa;
    size_t weight_bytes; // read by one step: layers, norms and head, but for experts
    size_t layer_bytes;  // of the first layer, but for its experts
    size_t expert_bytes; // of an expert, which a step reads if one of its rows chose it; 0: no layer has any
    size_t experts_read; // by all steps since the instance opened, in all layers; 0: not counted
    size_t head_bytes;
    size_t cache_bytes;           // allocated
    size_t step_bytes;            // allocated: step area and scratch
    size_t kv_bytes_per_position; // read by one query, all layers
    size_t score_bytes;           // moved by one query per position that it sees, all layers; 0: not plain
    PhaseSeconds seconds;
    bool own_clock;   // `seconds` are by the device's own clock
    double waited_s;  // the host's wait for a device that works asynchronously, by the wall clock
    const char *note; // of the device, for the user; NULL: none
} BackendReport;

// A device's current state, as it reports it. NAN or empty: not reported.
typedef struct Gauge {
    char name[256], uuid[48], driver[80], runtime[16]; // versions: "580.159.04", "13.0"
    char code[48]; // of this build's, the one that it runs: "machine code for 8.0"
    bool compiles; // it's PTX: the driver compiles it at first use
    size_t memory; // bytes, in total
    double clock_mhz, most_clock_mhz, memory_clock_mhz;
    double power_w, power_limit_w, temperature_c;
    char throttle[160]; // why its clocks are reduced; "none" if they aren't
} Gauge;

// A device's own memory for hidden states on their way from one instance to another, without the host.
typedef struct HiddenMemory {
    // Allocates memory that both `self` and `other` reach, in the order of their calls; NULL if there isn't
    // any.
    float *(*take)(void *self, void *other, size_t bytes);
    void (*drop)(void *self, float *rows);
    // Like get_hidden and set_hidden, with a row of that memory.
    bool (*keep)(void *self, int node, HiddenKind kind, float *row, Error *e);
    bool (*give)(void *self, int node, const float *row, Error *e);
} HiddenMemory;

enum { CHAIN_MOST = 64 }; // ids of a Backend.chain
typedef struct Backend {
    const char *name;
    bool cuts; // running layer by layer takes no longer
    // Runs nodes through layers; their hidden states (at b), keys and values stay in the step area. Ancestors
    // have been through these layers already, or are in the same run. Layer 0 starts from the token, or from
    // set_hidden if the shape's input is hidden states, or both (StepRun.given).
    bool (*run)(void *self, const StepRun *run, Error *e);
    // The final norm and the LM head on nodes, whatever layers they have been through.
    bool (*head)(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e);
    // The same for several sequences (BackendOptions.first), whose weights are read once for all. The runs
    // are through the same layers, and the heads want the same: the same `top`, with log_sum or without,
    // draws by the same sampling and vocab, with confidence or without. Of a device that fails, all calls
    // that shared its work fail; else one sequence's failure is not another's. NULL: an instance is alone.
    void (*run_together)(RunCall *calls, int count);
    void (*head_together)(HeadCall *calls, int count, unsigned want);
    // A greedy chain without the host in between: `run` and the head, then `count` - 1 times a run of the
    // tree's next node, a child of the one in front, and the head. Its token is the likeliest id after that
    // one, or names[id] (of a draft with a vocabulary of its own; it stays there as long as the instance);
    // the tree has placeholders. ids: (count), as HeadOut.argmax; at most CHAIN_MOST. NULL: none.
    bool (*chain)(void *self, const StepRun *run, const int *names, int count, int *ids, Error *e);
    // A draft's dynamic tree likewise: `run`, whose last node is read, then `levels` times a run and the head
    // of the next out->top nodes: the best guesses below the level in front, by the sum of ln p along their
    // paths (shared.h). The tree has placeholders: so many chains. out: HEAD_TOP and log_sum of all rows that
    // are read, in their order. *grown: false if the cards can't. NULL: none.
    bool (*grow)(void *self, const StepRun *run, const int *names, int levels, HeadOut *out, bool *grown,
                 Error *e);
    // p of a node that `head` has drawn at, over `vocab` ids. NULL: draws are made from logits (draws.h).
    bool (*distribution)(void *self, int node, const Sampling *sampling, int vocab, float *p, Error *e);
    // Rows of `width` floats, of captures.count * width if captured; those of set_hidden: shape_given_width.
    bool (*get_hidden)(void *self, const int *nodes, int count, HiddenKind kind, float *rows, Error *e);
    bool (*set_hidden)(void *self, int first, int count, const float *rows, Error *e);
    // From the next run on, keeps what HIDDEN_CAPTURED reads. NULL: the device can't.
    bool (*capture)(void *self, const Captures *captures, Error *e);
    const HiddenMemory *hidden;                                // NULL: the host's memory is the device's
    bool (*follow)(void *self, int node, Follow *f, Error *e); // NULL: no block's draft opens there
    // Copies keys and values of all layers from the step area: node nodes[i] to slot slots[i].
    bool (*commit)(void *self, const int *nodes, const int *slots, int count, Error *e);
    // Forgets everything: a new sequence begins. Only the null backend has anything to do.
    void (*reset)(void *self);
    void (*report)(const void *self, BackendReport *out);
    void (*close)(void *self); // accepts NULL
} Backend;

// The members that all backends have, under these names.
#define BACKEND_ROW(prefix)                                                                    \
    .name = #prefix, .run = prefix##_run, .run_together = prefix##_run_together,               \
    .head_together = prefix##_head_together, .get_hidden = prefix##_get_hidden,                \
    .set_hidden = prefix##_set_hidden, .capture = prefix##_capture, .commit = prefix##_commit, \
    .reset = prefix##_reset, .report = prefix##_report, .close = prefix##_close
