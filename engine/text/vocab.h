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
