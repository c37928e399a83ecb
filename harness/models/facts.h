// What a method is given beside the open model's own output: facts of its weights, a directory to keep what
// was made from them, and a way to show progress.
#pragma once
#include "engine/decode/method.h"
#include "engine/engine.h"

typedef struct EngineFacts {
    const Engine *engine;
    const char *dir; // that the engine was opened from
} EngineFacts;

// `of` must live as long as the result is used.
TargetFacts facts_of(const EngineFacts *of);

// The directory for what is made once: `option` where it is given ("" is none), else outpace/ under
// $XDG_CACHE_HOME or ~/.cache. For mem_free; NULL with no error: there is none.
bool facts_cache(const char *option, char **out, Error *e);

// Writes what is being made to standard error, where that is a terminal.
Progress facts_progress(void);
