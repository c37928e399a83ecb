// Where a prompt comes from: an argument, a file, standard input, or ids written out.
#pragma once
#include "engine/text/tokenizer.h"

typedef struct PromptSource {
    const char *text; // an argument; "-" is standard input
    const char *file;
    const char *ids; // "1,2,3"
} PromptSource;

// Fills `out` with the prompt's ids. The tokenizer may be NULL where ids are given.
bool prompt_read(const PromptSource *source, const Tokenizer *tokenizer, IdList *out, Error *e);
