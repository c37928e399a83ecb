// Everything that a user can set about an open model, parsed once, where the words come in: MODEL_OPTIONS is
// a part of the options of generate, verify, bench and tune, and its first rows are the keys of a config's
// `hardware`. A new setting is a field here, a row in options.c, and its use.
//
// Zeros are the defaults, so that (EngineOptions){0} is a model on the CPU as its files describe it.
#pragma once
#include "engine/base/args.h"
#include "engine/base/progress.h"
#include "engine/core/compute.h"
#include "engine/core/tree.h"

typedef enum { MATH_EXACT, MATH_FAST } Math; // FAST: see BackendOptions.fast; cuda only
// HELD: in memory of our own; cpu only. EXACT: model_open_exact
typedef enum { WEIGHTS_MAPPED, WEIGHTS_HELD, WEIGHTS_EXACT } WeightsPlace;
typedef enum { ATTENTION_FLASH, ATTENTION_PLAIN } Attention; // PLAIN: see BackendOptions.plain; not cuda

typedef struct EngineOptions {
    char device[ARG_TEXT_SIZE]; // "cpu" or "", "null", "auto", "cuda[:n]", "cuda:0,cuda:1" or with +: both
    Math math;
    ComputeChoice compute;
    int threads;    // 0: one a core
    Layout layout;  // of a step's rows; like the next two read by the decoding loop, not by engine_open
    bool no_merge;  // equal prefixes run separately
    int max_rows;   // of a step; 0: as many as a method asks for
    bool no_window; // all positions are seen, as if config.json had no sliding window
    WeightsPlace weights;
    Attention attention;
    int batch;       // sequences that share steps (core/batch.h), each with its own cache; 0: one
    const char *isa; // forces a set of CPU kernels; NULL: the best one. Belongs to argv or the environment
    int context;     // positions; 0: the model's own, or on a GPU what fits
    // Not for users:
    int real_vocab;       // of a draft: the target's, since it proposes no other ids; 0: as the model's
    int max_nodes, slack; // see BackendOptions
    Progress progress;    // of opening, and of everything that the session runs
    const struct Engine *beside; // one that is open at the same time, and is closed later: memory has room
                                 // for both, and they take turns with the same threads. NULL: alone
    const struct Team *team;     // processes that share steps (core/ranks.h). NULL: this one only
} EngineOptions;

// Their order is that in the hashes of stored points. The first MODEL_SETTINGS are settings of a config, too.
enum { MODEL_SETTINGS = 11, MODEL_OPTION_COUNT = 13 };
extern const Arg MODEL_OPTIONS[MODEL_OPTION_COUNT];

// As a part of a command's options: `at` bytes into its struct, without the rows named in `without`.
#define MODEL_SET(at, without) \
    { MODEL_OPTIONS, MODEL_OPTION_COUNT, at, without }

// Whether both open the same model in the same way. What only steps differ in doesn't count.
bool options_same_engine(const EngineOptions *a, const EngineOptions *b);

int options_batch(const EngineOptions *o); // at least 1

// Forgets what only steps of several rows differ in.
void options_clear_step(EngineOptions *o);
