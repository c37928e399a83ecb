// The models of a run or a command: where they are, how they are made and opened, and what identifies them.
//
//      ModelSpec (config)  --model_files_find-->  ModelFiles (directories; described, until they are made)
//      ModelChoice         --models_open------->  Models (target, draft, adapters, open)
//      Models              --models_env-------->  MethodEnv, which methods are opened with
#pragma once
#include "engine/base/clock.h"
#include "engine/decode/env.h"
#include "engine/engine.h"
#include "engine/model/adapter.h"
#include "engine/model/make/inflate.h"
#include "engine/text/tokenizer.h"
#include "harness/config/experiment.h"

// --- directories

// Directories as written, members of the reference family, and random or inflated models, which are made once
// and kept in the cache.
typedef struct ModelFiles {
    char *target, *draft, *adapters[ADAPTER_ROLES]; // directories; NULL: none
    bool unmade;                                    // target, and with it its adapters, are still to be made
    bool draft_unmade;                              // so is the draft; implies `unmade`
    Model model, draft_model;                       // descriptions of unmade ones: without weights
    AdapterKind kinds[ADAPTER_ROLES];
    char *small;       // the model that an inflated one is made from; they share a tokenizer
    char *small_draft; // the same of its draft; NULL: no draft, or the draft as it is
} ModelFiles;

// Makes nothing. cache: a directory for models to be made; NULL: none. False with e filled, and out empty.
bool model_files_find(const ModelSpec *m, const char *cache, ModelFiles *out, Error *e);
void model_files_release(ModelFiles *f); // takes an empty one

// Makes the unmade models.
bool model_files_make(const ModelSpec *m, const char *cache, ModelFiles *f, const Progress *progress,
                      Error *e);
Tokenizer *model_files_tokenizer(const ModelFiles *f, Error *e); // the target's; NULL with e filled

// Inflated models in the cache, found by what they are made of:
//
//      CACHE/inflated/KEY/     the model, or one of its adapters (engine/model/make/inflate.h)
//      CACHE/inflated/KEY.lock locked while it is made: a second run waits. The lock ends with the process.
//                              Random models have the same
//
// Describes what model_inflate(o) would write and returns where, a path for mem_free; *there: it is complete.
// Writes nothing. NULL with e filled.
char *inflated_find(const char *cache, const InflateOptions *o, Inflated *out, bool *there, Error *e);
char *inflated_open(const char *cache, const InflateOptions *o, Error *e); // makes it unless it is there

// Rows of the target's adapters in a command's options; at: the offset of ModelChoice.adapters.
#define ADAPTER_OPTION(key, role, at, text) \
    { key, ARG_WORD, (at) + (role) * sizeof(char *), .help = text, .value = "MODEL" }
#define ADAPTER_OPTIONS(at)                                                                            \
    ADAPTER_OPTION("adapter", ADAPTER_ANY, at, "Kangaroo's adapter, or the only one of what follows"), \
        ADAPTER_OPTION("heads", ADAPTER_FOR_MEDUSA, at, "Medusa's heads"),                             \
        ADAPTER_OPTION("eagle", ADAPTER_FOR_EAGLE, at, "the draft network of EAGLE-1 and 2"),          \
        ADAPTER_OPTION("eagle3", ADAPTER_FOR_EAGLE3, at, "the draft network of EAGLE-3"),              \
        ADAPTER_OPTION("mtp", ADAPTER_FOR_MTP, at, "an MTP layer; by default the model's own"),        \
        ADAPTER_OPTION("dflash", ADAPTER_FOR_DFLASH, at, "the draft of DFlash or DSpark")

// The row of --cache in a command's options.
#define CACHE_OPTION(at)                                                                                 \
    {                                                                                                    \
        "cache", ARG_WORD, at, .help = "keeps what is made of a model once; '' keeps nothing",           \
                               .value = "DIR", .fallback = "$XDG_CACHE_HOME/outpace or ~/.cache/outpace" \
    }

// The cache's directory, for mem_free: `option` if given ("" is none), else outpace/ under $XDG_CACHE_HOME or
// ~/.cache, provided that $HOME is a directory. NULL: there is none.
char *models_cache(const char *option);

// --- open models. NULL where the command line or the config is silent.
typedef struct ModelChoice {
    const char *target, *draft;          // directories
    const char *adapters[ADAPTER_ROLES]; // directories, too
    const char *draft_device;            // NULL: the target's, of several cards the last
    const char *cache;                   // see models_cache
    EngineOptions engine;                // its progress is of all that the models and their methods run
} ModelChoice;

typedef struct EngineFacts {
    const Engine *engine;
    const char *dir; // that the engine was opened from
} EngineFacts;

typedef struct Models {
    Engine target, draft;
    AdapterEngine adapters[ADAPTER_ROLES];
    EngineMemory memory, draft_memory, adapter_memory[ADAPTER_ROLES];
    EngineFacts facts;
    char *cache;    // NULL: none
    bool must_keep; // the cache was asked for: a method that cannot write to it fails
    Progress progress;
    bool has_draft;
} Models;

// `m` may not move while it is open. With a batch, every sequence has sessions of its own.
bool models_open(Models *m, const ModelChoice *choice, Error *e);
void models_close(Models *m); // takes an empty or half-opened one
// False with e filled if a file of weights changed since they were opened.
bool models_are_unchanged(const Models *m, Error *e);

// Warns on stderr of a model that its steps will read from its file, since memory doesn't hold it.
void memory_warn(const EngineMemory *m, const char *name);
void cards_warn(const char *device); // of cards whose driver compiles the kernels at their first use

// Models that are only described, or open elsewhere; NULL: none.
typedef struct DescribedModels {
    const Model *target, *draft;
    const Adapter *adapters[ADAPTER_ROLES];
    Tokenizer *tokenizer, *draft_tokenizer; // the caller's
} DescribedModels;

// All checks of models_open, without a weight: see engine_rehearse. Methods opened with these models need a
// Rehearsal (model_tables.h).
bool models_rehearse(Models *m, const ModelChoice *choice, const DescribedModels *d, Error *e);
void models_end_rehearsal(Models *m);

// The environment of methods, with all adapters; it uses m.
MethodEnv models_env(Models *m, const Sampling *sampling, uint64_t seed, bool ignore_eos);
// The same for the methods of one sequence of a batch.
MethodEnv models_env_of(Models *m, int sequence, const Sampling *sampling, uint64_t seed, bool ignore_eos);
int models_batch(const Models *m); // at least 1

// Outputs that a batch makes: each sequence takes the next one when it has finished one. With one sequence,
// they are made one after another, without threads.
typedef struct Outputs {
    int count;
    // Makes output i in a sequence, with its methods and this clock (core/batch.h).
    bool (*make)(void *state, int sequence, int i, Clock clock, Error *e);
    void *state;
    Clock clock;
} Outputs;

bool models_run(Models *m, const Outputs *o, Error *e);

// --- descriptions and hashes

// Facts about the target besides its outputs. `of` outlives the result.
TargetFacts facts_of(const EngineFacts *of);

// A JSON object for the store, for mem_free: what the prices of steps and the cache's size depend on, and in
// "parts" the parameters of its adapters and the tokens they were trained on (empty: none); "quantised" as in
// Model.
char *shape_text(const Model *m, const Adapter adapters[ADAPTER_ROLES]);

// Warns on stderr if a model's files hold more layers than its config.json names.
void shape_warn(const Model *m, const char *name);

bool content_model(const char *dir, bool weights, char out[SHA256_TEXT], Error *e); // else config.json only
bool content_tokenizer(const char *dir, char out[SHA256_TEXT], Error *e);
