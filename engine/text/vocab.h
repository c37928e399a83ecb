// Pieces and their ids, both ways.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { VOCAB_MAX = 1 << 21 };

typedef struct Piece {
    const char *text; // NULL: no piece has this id
    size_t length;
} Piece;

typedef struct Vocab {
    Piece *pieces; // (size), by id
    int size;      // the largest id, plus 1
    int *table;    // (table_size) ids, -1 where free; by hash of the text
    size_t table_size;
} Vocab;

// Room for ids below `size`.
bool vocab_init(Vocab *v, int size, Error *e);
void vocab_release(Vocab *v);

// Copies the text. A piece or an id that is there already is an error, unless both are the same as before.
bool vocab_add(Vocab *v, const char *text, size_t n, int id, const char *place, Error *e);

// Gives the id a text, but does not let the text be found: an added token is no piece. The text may be a
// piece of that id already.
bool vocab_name(Vocab *v, const char *text, size_t n, int id, const char *place, Error *e);

// The id of a piece, or -1.
int vocab_find(const Vocab *v, const char *text, size_t n);

// --- added tokens

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
