// Several prompts from one file: a line of text each, or JSONL with the prompt under "prompt".
#pragma once
#include "engine/text/tokenizer.h"

#include <stdint.h>

typedef struct PromptList {
    IdList *prompts; // (count)
    size_t count, capacity;
} PromptList;

// Appends at most `most` prompts. path NULL: a few of our own, of chat, code, mathematics and summarisation.
bool prompts_read(const char *path, const Tokenizer *tokenizer, size_t most, PromptList *out, Error *e);

// Appends prompts of random ids, for a model without a tokenizer.
bool prompts_random(int vocab, size_t count, uint64_t seed, PromptList *out, Error *e);

void prompts_release(PromptList *list);
