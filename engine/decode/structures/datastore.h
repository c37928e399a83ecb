// A body of text to look phrases up in: documents as tokens, and all places of them in sorted order (a suffix
// array). The file:
//
//      | "OPSTORE1" | vocab, 0: 2 x u32 | count: u64 | tokens: count x i32 | places: count x i32 |
//
// little-endian, mapped as it is. Each document is followed by DATASTORE_BREAK. Every byte is checked once,
// when the file is opened; only the order of the places is trusted (a wrong order finds less).
#pragma once
#include "engine/base/error.h"
#include "engine/base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATASTORE_BREAK = -1 };

typedef struct Datastore {
    FileView view;         // empty if the bytes belong to the caller
    const int32_t *tokens; // (count): ids below vocab, and breaks
    const int32_t *places; // (count)
    int count, vocab;
} Datastore;

// bytes: aligned for int32_t; they stay the caller's and must outlive the store. `place` names them in
// errors.
bool datastore_parse(const unsigned char *bytes, size_t n, const char *place, Datastore *out, Error *e);
bool datastore_open(Datastore *d, const char *path, Error *e);
void datastore_close(Datastore *d); // accepts an empty one

// The first bytes of such a file.
#define DATASTORE_START "OPSTORE1"

// Returns the file's bytes, with sorted places, for mem_free; NULL with e filled if count is 0 or there is no
// memory. tokens (count): ids below vocab, and breaks.
unsigned char *datastore_make(const int *tokens, int count, int vocab, size_t *size, Error *e);
bool datastore_write(const char *path, const int *tokens, int count, int vocab, Error *e);

// Returns how many places begin with the phrase (n >= 1): places[*first] and those that follow.
int datastore_find(const Datastore *d, const int *phrase, int n, int *first);

// Sorts all places of a text of tokens by the text from there on: equal beginnings become neighbours, so a
// binary search finds every place of a phrase. A place where the text ends comes before one where it
// continues. places (n); tokens are below `vocab`, and from -1 on. O(n log n) time, 12 bytes a token while it
// runs.
bool suffix_array_build(const int *tokens, int n, int vocab, int *places, Error *e);
