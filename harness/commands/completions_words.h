// What completes an argument or an option's value: the names that there are of what its usage calls MODEL,
// RUN, DATASET, ... A script asks for them by 'outpace completions words KIND TOKEN' when they are wanted.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

typedef struct WordKind {
    const char *name; // as usages have it: "RUN", "CONFIG.yaml|RUN"
    bool files;       // a path may stand instead
    // Writes the names, a line each; `token` is what has been typed.
    void (*list)(const char *token, Text *out);
} WordKind;

const WordKind *words_kind(const char *usage); // that a usage or a value begins with; NULL: none
