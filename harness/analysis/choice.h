// A part of a run, as people choose it: --model, --dataset, --method and --label, each several times or with
// commas, exact names or globs. After choice_apply every question to the store is about that part alone.
#pragma once
#include "engine/base/args.h"
#include "results/store.h"

typedef struct Choice {
    Words model, dataset, method, label; // of any count: all
} Choice;

// Rows of a command's options; AT(field) is the offset of a field in the command's values.
#define CHOICE_OPTION(option, AT, field, text, called) \
    { option, ARG_WORDS, AT(field), .help = text, .value = called ",..." }
#define CHOICE_OPTIONS(AT, choice)                                                                      \
    CHOICE_OPTION("model", AT, choice.model, "of a run: these models only ('ref*': all that begin so)", \
                  "NAME"),                                                                              \
        CHOICE_OPTION("dataset", AT, choice.dataset, "these datasets only", "DATASET"),                 \
        CHOICE_OPTION("method", AT, choice.method, "these methods only", "METHOD"),                     \
        CHOICE_OPTION("label", AT, choice.label, "points of these names only, as 'lookahead W=5*'", "NAME")

bool choice_made(const Choice *c);

// For a store that was opened to be read, once. False with e filled: the run has no such name (which it has,
// or is meant), or nothing that is of all names chosen.
bool choice_apply(const Choice *c, Store *store, int64_t run, Error *e);
