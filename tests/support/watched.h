// The text of a decode as the test of a method watches it: the first member of the test's own watch.
#pragma once
#include "engine/base/random.h"
#include "engine/decode/decode.h"

enum { WATCHED_MOST = 256 };

typedef struct Watched {
    int sequence[WATCHED_MOST]; // prompt and output
    int length;
    int before; // tokens when the step began
    void (*look)(void *watch, const StepReport *r);
} Watched;

// The prompt: `count` random tokens below vocab.
void watched_prompt(Watched *w, int count, int vocab, Random *r);

// Greedy in `greedy` cases of `of`, else hot; a random seed, merging or not, either layout.
DecodeOptions watched_options(int max_tokens, int greedy, int of, Random *r);

// Decodes after the prompt, keeping the text. `look` sees each step when its tokens are in the text.
DecodeResult watched_decode(Watched *w, void (*look)(void *watch, const StepReport *r), Session *s, Method *m,
                            const DecodeOptions *o);
