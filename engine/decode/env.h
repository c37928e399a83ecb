// The environment of an open method: the target, the models that draft for it, and facts about them.
#pragma once
#include "engine/base/file.h"
#include "engine/core/sampler.h"
#include "engine/core/session.h"

#include <stdint.h>

typedef enum { EMBEDDING_INPUT, EMBEDDING_OUTPUT } EmbeddingKind;

// The target besides its outputs. Zero: unknown.
typedef struct TargetFacts {
    const int *prefix; // (prefix_count): the tokens at the start of every text, or else the model's BOS
    int prefix_count;
    const void *self; // first argument of the functions
    // Writes a name of the weights: equal names, equal weights. NULL: tables made from them aren't kept.
    bool (*identify)(const void *self, char out[SHA256_TEXT], Error *e);
    // Writes a token's row of the input or output embedding, (width). NULL: the device has no weights.
    void (*embedding)(const void *self, EmbeddingKind kind, int token, float *row);
} TargetFacts;

// Kangaroo's adapter, Medusa's heads, or a draft of EAGLE's, MTP's or DFlash's.
typedef struct AdapterSet {
    Session *sessions; // (count)
    int count;         // 0: there is none
    int layer;         // the target's layer whose states they read; its layer count: the final normed states
    const Captures *captures; // of EAGLE-3's, MTP's and DFlash's: the layers that it reads
    const int *draft_ids;     // (vocab of these): the target's id of each of its own; NULL: the same
    const float *mask_states; // of P-EAGLE's: a mask's row; else, and on a device without weights, NULL
    bool recycles_normed;     // of MTP's (adapter.h)
} AdapterSet;

enum { ADAPTER_SETS = 6 };

// Everything that a method may use. Sessions it doesn't need are NULL.
typedef struct MethodEnv {
    Session *target;
    Session *draft;                    // same vocabulary
    AdapterSet adapters[ADAPTER_SETS]; // all that the target has, in any order
    const AdapterSet *adapter;         // the one that the method needs: method_open finds it
    Sampling sampling;
    uint64_t seed;
    const int *eos; // (eos_count): tokens that end the output; valid until the method is closed
    int eos_count;
    TargetFacts facts;
    const char *cache; // directory for tables that are made once and reused; NULL: tables aren't kept
    bool mixed;        // other methods fill the same tree: accepted tokens may be theirs
    const char
        *only_text; // not NULL: there is no model, as this explains; methods that read its outputs fail
    // Called if a table was made but can't be kept, with the reason. NULL: that is an error.
    void (*unkept)(const void *state, const Error *why);
    const void *unkept_state;
    Progress progress;           // while tables are made
    struct Rehearsal *rehearsal; // not NULL: nothing is run, only counted (model_tables.h)
} MethodEnv;
