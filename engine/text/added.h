// Added tokens: texts that are one token wherever they stand, found before anything else is done to a text.
//
// The longest that starts at the leftmost place wins; one that may not stand there (single_word) still
// uses its place up, as in Hugging Face tokenizers.
#pragma once
#include "engine/text/vocab.h"

typedef struct AddedToken {
    char *text; // as it is sought: for a normalized token, normalized
    size_t length;
    int id;
    bool special;     // left out of decoded text on request
    bool left, right; // takes the white space on that side with it
    bool single_word; // only where no word character stands beside it
    bool normalized;  // sought in the normalized text
} AddedToken;

// The tokens sought in one form of the text.
typedef struct AddedSet {
    Vocab index;               // from a text to its number in `tokens`
    const AddedToken **tokens; // (count)
    size_t *lengths;           // (length_count), the longest first
    int count, length_count;
    bool starts[256]; // a token starts with that byte
} AddedSet;

// Picks those with `normalized` as given. The tokens must outlive the set.
bool added_init(AddedSet *s, const AddedToken *tokens, int count, bool normalized, Error *e);
void added_release(AddedSet *s);

typedef struct AddedMatch {
    const AddedToken *token; // NULL: none is left
    size_t from, to;         // with the white space it takes
} AddedMatch;

// The next token at or after `at`; [done, at) may be taken as white space. n bytes of valid UTF-8.
AddedMatch added_next(const AddedSet *s, const char *text, size_t n, size_t at);
