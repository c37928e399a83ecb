// The only line between methods and hardware: what a backend must do, as one table of functions.
//
// A backend instance is one open model on one device, with its weights, its cache and its step area. All
// integers (tree, positions, slots, who may see whom) are decided by core/session.c and handed over ready;
// the backend does the arithmetic. Several instances are open side by side: nothing has file-scope state.
//
// Exactness: the numbers of a node are the same bits whatever shares the step with it (other nodes, either
// layout, prefill in chunks of any size, any number of threads, wherever its keys stand). A backend takes
// keys in position order, cuts them at absolute positions only, and lets masked lanes contribute exactly
// nothing.
#pragma once
#include "engine/base/error.h"
#include "engine/base/progress.h"
#include "engine/core/cache.h"
#include "engine/core/compute.h"
#include "engine/core/sampler.h"
#include "engine/core/shape.h"
#include "engine/core/tree.h"

#include <stddef.h>

typedef struct BackendOptions {
    Compute compute;
    int context;   // positions; 0: the shape's own
    int max_nodes; // of a step; at most TREE_MAX_NODES
    int slack;     // see cache.h
    int threads;   // 0: as many as there are cores
    bool plain;    // attention keeps its scores in memory (docs/speed.md), as exact; the CPU and null have it
    const char *isa; // force a kernel set; NULL: the best that this machine has
    bool fast;       // sums may depend on what shares the step (no exactness, below): a vendor's library
    // An instance of the same backend whose threads this one uses too (they take turns; `threads` is then
    // ignored), or whose stream, on the same device. It is closed later than this one. NULL: its own.
    void *beside;
    Progress progress; // of opening, and of all that the session runs
} BackendOptions;

// Nodes [first, last) of a tree through layers [a, b).
typedef struct StepRun {
    const Tree *tree;
    const Cache *cache;
    int first, last;
    int a, b;
} StepRun;

typedef enum { HEAD_ARGMAX = 1, HEAD_LOGITS = 2, HEAD_TOP = 4, HEAD_DRAW = 8 } HeadWant;

// HEAD_DRAW, of backends that have `distribution`: the few numbers that a step needs of the distribution p of
// each node (sampler.h). The arrays are the caller's.
typedef struct HeadDraws {
    Sampling sampling;  // not greedy
    int vocab;          // ids from here on take no part
    const double *u;    // (count), in [0, 1)
    const int *first;   // (count + 1): row i's tokens are token[first[i]] .. token[first[i + 1] - 1]
    const int *token;   // no two of a row alike; at most as many as a step has nodes
    double *chance;     // of each token, by p
    double *confidence; // (count): chance of the likeliest token at temperature 1, of all ids; or NULL
    int *drawn; // (count): by u from p without the row's tokens, as sampler_draw does; -1: none is left
} HeadDraws;

enum { HEAD_BAD = -1 }; // a row with a logit that is NaN or +INFINITY, or with none above -INFINITY
// What the LM head says of chosen nodes, row i for nodes[i]. The arrays are the caller's. The search for the
// best reads every logit, so bad rows cost nothing: NaN counts as +INFINITY there. The session refuses them.
typedef struct HeadOut {
    int *argmax;      // (count): the lowest id among the largest; or HEAD_BAD
    float *logits;    // (count, vocab); masked ids hold -INFINITY
    int top;          // k for HEAD_TOP
    int *top_id;      // (count, top), largest first, lowest id first among equals
    float *top_logit; // (count, top); a bad row begins with an infinity
    HeadDraws *draws; // for HEAD_DRAW
} HeadOut;

typedef enum {
    HIDDEN_RAW,    // the residual stream after the last layer that the node went through
    HIDDEN_NORMED, // the same after the final norm (after all layers)
} HiddenKind;

// Seconds of work since the instance opened, by kind of call; their sum is how long the device was busy. A
// device with a clock of its own (events in a GPU's stream) counts the work itself, when something next waits
// for it; any other instance times its calls by the wall clock.
typedef struct PhaseSeconds {
    double run;    // run, and set_hidden
    double head;   // head, distribution and get_hidden
    double commit; // commit; by a device's own clock only those that something has waited for since
} PhaseSeconds;

typedef struct BackendReport {
    const char *name, *device, *isa;
    size_t weight_bytes; // that one step must read: layers, norms and head
    size_t layer_bytes;  // of one layer
    size_t head_bytes;
    size_t cache_bytes;           // allocated
    size_t step_bytes;            // allocated: step area and scratch
    size_t kv_bytes_per_position; // read by one query, all layers
    size_t score_bytes; // moved by one query for each position that it sees, all layers; 0: not plain
    PhaseSeconds seconds;
    bool own_clock;  // `seconds` are by the device's own clock
    double waited_s; // the host's, until a device that works beside it had finished; by the wall clock
} BackendReport;

// What a device can do at most, measured on it: the two floors under a step's time.
typedef struct Ceilings {
    double bytes_per_s;                     // read from its memory
    double operations_per_s[COMPUTE_KINDS]; // of products; a multiply-add counts two; 0: not measured
    const char *isa;                        // of the kernels that were measured
    int threads;
    size_t few_bytes; // bytes_per_s was read from so few, perhaps out of a cache; 0: enough
} Ceilings;

// What a device says of itself now. NAN or empty: it does not say.
typedef struct Gauge {
    char name[256], uuid[48], driver[80], runtime[16]; // versions: "580.159.04", "13.0"
    size_t memory;                                     // bytes, all of it
    double clock_mhz, most_clock_mhz, memory_clock_mhz;
    double power_w, power_limit_w, temperature_c;
    char throttle[160]; // why its clocks are lower than they could be, "none" where nothing slows it down
} Gauge;

// A device's own memory for hidden states that go from one instance to another without the host seeing them.
typedef struct HiddenMemory {
    // Room that `self` and `other` both reach, in the order of their calls. NULL: there is none.
    float *(*take)(void *self, void *other, size_t bytes);
    void (*drop)(void *self, float *rows);
    // As get_hidden and set_hidden, with a row of that room.
    bool (*keep)(void *self, int node, HiddenKind kind, float *row, Error *e);
    bool (*give)(void *self, int node, const float *row, Error *e);
} HiddenMemory;

typedef struct Backend {
    const char *name;
    bool cuts; // run layer by layer takes no longer
    // Runs nodes through layers, keeping their hidden states (at b) and their keys and values in the step
    // area. Ancestors have been through these layers, or go along. Layer 0 starts from the token, or from
    // set_hidden where the shape's input is hidden states.
    bool (*run)(void *self, const StepRun *run, Error *e);
    // The LM head on nodes that have been through all layers.
    bool (*head)(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e);
    // p of a node that head has drawn at, over `vocab` ids. NULL: draws come from its logits (draws.h).
    bool (*distribution)(void *self, int node, const Sampling *sampling, int vocab, float *p, Error *e);
    // Rows of `width` floats.
    bool (*get_hidden)(void *self, const int *nodes, int count, HiddenKind kind, float *rows, Error *e);
    bool (*set_hidden)(void *self, int first, int count, const float *rows, Error *e);
    const HiddenMemory *hidden; // NULL: the host's memory is the device's
    // Copies keys and values of all layers from the step area, node nodes[i] to slot slots[i].
    bool (*commit)(void *self, const int *nodes, const int *slots, int count, Error *e);
    // Forgets everything: a new sequence begins. Only the null backend has to do anything.
    void (*reset)(void *self);
    void (*report)(const void *self, BackendReport *out);
    void (*close)(void *self); // takes NULL
} Backend;
