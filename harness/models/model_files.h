// Where the models of a config are: directories as written, members of the reference family, and random or
// inflated models, which are made once and kept in the cache. Those that are not there yet are described, so
// that a plan can be made with them, until model_files_make makes them.
#pragma once
#include "engine/model/adapter.h"
#include "engine/text/tokenizer.h"
#include "harness/config/experiment.h"

typedef struct ModelFiles {
    char *target, *draft, *adapter, *heads; // directories; NULL: none
    bool unmade;                            // target, and with it adapter and heads, are still to be made
    bool draft_unmade;                      // so is the draft; then `unmade` holds, too
    Model model, draft_model;               // of what is: without weights
    AdapterKind adapter_kind, heads_kind;
    char *small;       // of an inflated model: from what. It has the same tokenizer
    char *small_draft; // of its draft, alike; NULL: there is none, or it is as it was
} ModelFiles;

// Makes nothing. cache: a directory for what is made; NULL: there is none. False with e filled, and out
// empty.
bool model_files_find(const ModelSpec *m, const char *cache, ModelFiles *out, Error *e);
void model_files_release(ModelFiles *f); // takes an empty one

// Makes what is unmade.
bool model_files_make(const ModelSpec *m, const char *cache, ModelFiles *f, const Progress *progress,
                      Error *e);

// The target's, for tokenizer_close; NULL with e filled.
Tokenizer *model_files_tokenizer(const ModelFiles *f, Error *e);
