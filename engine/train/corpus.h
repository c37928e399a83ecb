// What is learned from: documents as token ids, and the stream of batches that is cut from them.
//
// A document of n tokens gives n - 1 rows, each with the token after it as its target. Documents follow each
// other in a new random order in every epoch; what crosses a multiple of `context` rows goes on after it as
// a document of its own.
#pragma once
#include "engine/train/network.h"

#include <stdint.h>

typedef struct Corpus {
    int *ids; // of all documents one after another
    size_t count, capacity;
    size_t *ends; // (documents): where each one's ids end
    size_t documents, end_capacity;
} Corpus;

// Takes a copy. A document of fewer than two tokens teaches nothing and is left out.
bool corpus_add(Corpus *c, const int *ids, size_t n, Error *e);
void corpus_release(Corpus *c);

static inline size_t corpus_begin(const Corpus *c, size_t document) {
    return document ? c->ends[document - 1] : 0;
}

// The documents of one side of the split, and where reading stands.
typedef struct Feed {
    const Corpus *corpus;
    size_t *documents; // (count), in this epoch's order
    size_t *given;     // (count), in the corpus's order
    size_t count;
    size_t rows; // in an epoch
    uint64_t seed;
    // where it stands
    uint64_t epoch;
    size_t document; // in `documents`
    size_t offset;   // rows of it that are done
} Feed;

// Those documents that are held out, or those that are not: `share` of them by a hash of their content and
// the seed, so that equal documents are on the same side, but one at least where the share is above 0. There
// must be at least one.
bool feed_open(Feed *f, const Corpus *c, double share, bool held_out, uint64_t seed, Error *e);
void feed_close(Feed *f); // takes an empty one

// Only the documents that are kept remain, in the order of an epoch of theirs; there may be none.
void feed_narrow(Feed *f, bool (*keep)(const void *state, size_t document), const void *state);

// Moves to where a feed of the same corpus stood; false, and at its start, if there is no such place.
bool feed_seek(Feed *f, uint64_t epoch, size_t document, size_t offset);

// Fills `rows` rows (see Batch) and moves on.
void feed_fill(Feed *f, int rows, int context, int *tokens, int *targets, int *start);
