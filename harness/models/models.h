// The models of one run, opened together: the target, and beside it what a method may need.
#pragma once
#include "engine/engine.h"
#include "harness/models/facts.h"

// What a command line or a config says of them; NULL or 0 where it says nothing.
typedef struct ModelChoice {
    const char *target, *draft, *adapter; // directories; adapter: an adapter or heads
    const char *heads;                    // where there are both
    const char *draft_device;             // NULL: the target's, of several cards the last
    const char *device, *window, *attention, *weights, *compute, *math, *isa;
    int context, threads;
    const char *cache; // see facts_cache
    Progress progress; // of opening them, and of all that they and their methods run
} ModelChoice;

typedef struct Models {
    Engine target, draft;
    AdapterEngine adapters, heads;
    EngineMemory memory, draft_memory, adapter_memory, heads_memory;
    EngineFacts facts;
    char *cache;    // NULL: none
    bool must_keep; // the cache was asked for: it is an error where it cannot be used
    Progress progress;
    bool has_draft;
} Models;

// `m` may not move while it is open.
bool models_open(Models *m, const ModelChoice *choice, Error *e);
void models_close(Models *m); // takes an empty or half-opened one

// Models that are only described, or open elsewhere; NULL: none.
typedef struct DescribedModels {
    const Model *target, *draft;
    const Adapter *adapter, *heads;
    Tokenizer *tokenizer, *draft_tokenizer; // the caller's
} DescribedModels;

// All checks of models_open, without a weight: see engine_rehearse. Methods opened with these models need a
// Rehearsal (model_tables.h).
bool models_rehearse(Models *m, const ModelChoice *choice, const DescribedModels *d, Error *e);
void models_end_rehearsal(Models *m);

// What a method is opened with; it uses m.
MethodEnv models_env(Models *m, const Sampling *sampling, uint64_t seed, bool ignore_eos);

// Heads in place of the adapter, for a method that needs them; where there are none, nothing changes.
void models_give_heads(Models *m, MethodEnv *env);
