// A text taken apart into words: what one step of the pipeline hands to the next.
#pragma once
#include "engine/base/text.h"

typedef struct Words {
    Text text;    // the words, one after another; `failed` is set where memory ran out
    size_t *ends; // (count) where each word ends in it
    size_t count, capacity;
    bool at_start; // the first word stands at the start of the whole input
} Words;

// Ends the word that text_add to `text` has built; an empty one is dropped.
void words_end(Words *w);
void words_add(Words *w, const char *word, size_t n); // a whole word
void words_clear(Words *w);                           // keeps the memory
void words_release(Words *w);

static inline size_t words_from(const Words *w, size_t i) { return i ? w->ends[i - 1] : 0; }
