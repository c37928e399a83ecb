// Pieces and their ids, both ways.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

// Makes room for ids below `size`.
bool vocab_init(Vocab *v, int size, Error *e);
void vocab_release(Vocab *v);
void vocab_check(const Vocab *v); // asserts its invariants

// Adds a copy of the text. A known piece with another id, or a known id with another piece, is an error.
bool vocab_add(Vocab *v, const char *text, size_t n, int id, const char *place, Error *e);

// Gives the id a text that vocab_find doesn't find, because an added token is not a piece. The text may
// already be the piece of that id.
bool vocab_name(Vocab *v, const char *text, size_t n, int id, const char *place, Error *e);

// The id of a piece, or -1.
int vocab_find(const Vocab *v, const char *text, size_t n);

uint64_t vocab_hash(const char *text, size_t n); // FNV-1a, with its upper half folded in

// --- added tokens

typedef struct AddedToken {
    char *text; // to search for; of a normalized token, normalized
    size_t length;
    int id;
    bool special;     // left out of decoded text on request
    bool left, right; // takes the white space on that side with it
    bool single_word; // matches only between characters that aren't parts of words
    bool normalized;  // sought in the normalized text
} AddedToken;

// The tokens sought in one form of the text.
typedef struct AddedSet {
    Vocab index;               // of texts; an id is a number in `tokens`
    const AddedToken **tokens; // (count)
    size_t *lengths;           // (length_count), the longest first
    int count, length_count;
    bool starts[256]; // a token starts with that byte
} AddedSet;

// Takes the tokens whose `normalized` is the given one. They must outlive the set.
bool added_init(AddedSet *s, const AddedToken *tokens, int count, bool normalized, Error *e);
void added_release(AddedSet *s);

typedef struct AddedMatch {
    const AddedToken *token; // NULL: there are no more
    size_t from, to;         // with the white space that it takes
} AddedMatch;

// The next token at or after `at` in n bytes of valid UTF-8.
AddedMatch added_next(const AddedSet *s, const char *text, size_t n, size_t at);
