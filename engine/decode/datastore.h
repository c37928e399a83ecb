// A body of text to look things up in: documents as tokens, and all their places sorted (suffix_array.h). The
// file:
//
//      | "OPSTORE1" | vocab, 0: 2 x u32 | count: u64 | tokens: count x i32 | places: count x i32 |
//
// little-endian, and mapped as it lies. Documents stand one after the other with DATASTORE_BREAK after each.
// Every byte is checked once, when the file is opened; only the order of the places is taken on trust (a
// wrong one finds less).
#pragma once
#include "engine/base/error.h"
#include "engine/base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATASTORE_BREAK = -1 };

typedef struct Datastore {
    FileView view;         // empty where the bytes are somebody else's
    const int32_t *tokens; // (count): ids below vocab, and breaks
    const int32_t *places; // (count)
    int count, vocab;
} Datastore;

// bytes: aligned for int32_t, and the caller's as long as the store is used.
bool datastore_parse(const unsigned char *bytes, size_t n, const char *place, Datastore *out, Error *e);
bool datastore_open(Datastore *d, const char *path, Error *e);
void datastore_close(Datastore *d); // takes an empty one

// How a file of this kind begins.
#define DATASTORE_START "OPSTORE1"

// The file's bytes, sorted, for mem_free; NULL with e filled. tokens (count): ids below vocab, and breaks.
unsigned char *datastore_make(const int *tokens, int count, int vocab, size_t *size, Error *e);
bool datastore_write(const char *path, const int *tokens, int count, int vocab, Error *e);

// How many places begin with the phrase (n >= 1); they are places[*first] and those that follow.
int datastore_find(const Datastore *d, const int *phrase, int n, int *first);

// The tokens from `place` on, up to the document's end: *tokens, and how many, at most `most`.
int datastore_read(const Datastore *d, int64_t place, int most, const int32_t **tokens);
