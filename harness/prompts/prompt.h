// Where a prompt comes from: an argument, a file, standard input, or ids written out.
#pragma once
#include "engine/text/tokenizer.h"

typedef struct PromptSource {
    const char *text; // an argument; "-" is standard input
    const char *file;
    const char *ids;      // "1,2,3"
    const char *template; // of engine/text/template.h; NULL: none
    const char *system;   // text for the template; NULL: its own
    bool no_special;      // nothing is put around the text, no BOS
} PromptSource;

// Fills `out` with the prompt's ids. The tokenizer may be NULL where ids are given. A text that starts with
// the BOS itself, as a rendered prompt may, is not given a second one.
bool prompt_read(const PromptSource *source, const Tokenizer *tokenizer, IdList *out, Error *e);

// Appends the ids of a text; special: with what the tokenizer puts around it, said once (see above).
bool prompt_encode(const Tokenizer *tokenizer, const char *text, size_t n, bool special, IdList *out,
                   Error *e);
