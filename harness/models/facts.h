// What a method is given beside the open model's own output: facts of its weights, and a directory to keep
// what was made from them.
#pragma once
#include "engine/decode/method.h"
#include "engine/engine.h"

typedef struct EngineFacts {
    const Engine *engine;
    const char *dir; // that the engine was opened from
} EngineFacts;

// `of` must live as long as the result is used.
TargetFacts facts_of(const EngineFacts *of);

// The row of --cache in a command's options.
#define CACHE_OPTION(at)                                                                                 \
    {                                                                                                    \
        "cache", ARG_WORD, at, .help = "keeps what is made of a model once; '' keeps nothing",           \
                               .value = "DIR", .fallback = "$XDG_CACHE_HOME/outpace or ~/.cache/outpace" \
    }

// The directory for what is made once: `option` where it is given ("" is none), else outpace/ under
// $XDG_CACHE_HOME or ~/.cache, if there is a directory $HOME. For mem_free; NULL with no error: there is
// none.
bool facts_cache(const char *option, char **out, Error *e);
