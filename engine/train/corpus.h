// The text that a training learns from: documents as token ids, and the stream of batches that is cut
// from them.
//
// A document of n tokens gives n - 1 rows, each with the next token as its target. Every epoch reads the
// documents one after another in a new random order. A document that crosses a multiple of `context` rows
// continues after it as a document of its own.
#pragma once
#include "engine/train/network.h"

#include <stdint.h>

typedef struct Corpus {
    int *ids; // (count): all documents, one after another
    size_t count, capacity;
    size_t *ends; // (documents): where each document ends in ids
    size_t documents, end_capacity;
} Corpus;

// Copies ids as a document. One of fewer than two tokens has no row, and isn't added.
void corpus_add(Corpus *c, const int *ids, size_t n);
void corpus_release(Corpus *c);

// Fills ids (count) with the commonest of a vocabulary's tokens, in ascending order; of equally common ones
// those with lower ids.
void corpus_commonest(const Corpus *c, int vocab, int *ids, int count);
double corpus_share(const Corpus *c, const int *ids, int count); // of its tokens that are among such ids

static inline size_t corpus_begin(const Corpus *c, size_t document) {
    return document ? c->ends[document - 1] : 0;
}

// --- batches ---------------------------------------------------------------------------------------------

// The documents of one side of the split, and the place of the next row.
typedef struct Feed {
    const Corpus *corpus;
    size_t *documents; // (count), in this epoch's order
    size_t *given;     // (count), in the corpus's order
    size_t count;
    size_t rows; // in an epoch
    uint64_t seed;
    // the place of the next row
    uint64_t epoch;
    size_t document; // index into `documents`
    size_t offset;   // rows of it that have been read
} Feed;

// Takes the documents that are held out, or the others. `share` of them are held out, chosen by a hash of
// content and seed, so that equal documents are on the same side, and at least one if share is above 0. False
// with e filled if this side has no document.
bool feed_open(Feed *f, const Corpus *c, double share, bool held_out, uint64_t seed, Error *e);
void feed_close(Feed *f); // takes an empty one

// Keeps only the documents for which `keep` returns true, possibly none, and restarts at epoch 0.
void feed_narrow(Feed *f, bool (*keep)(const void *state, size_t document), const void *state);

// Moves to a place where a feed of the same corpus was. Returns false, and restarts the feed, if there is no
// such place.
bool feed_seek(Feed *f, uint64_t epoch, size_t document, size_t offset);

// The place of a row whose document was cut before it: its states differ from those in the whole document.
#define NO_PLACE SIZE_MAX

// Fills `rows` rows (see Batch) and advances. places: of the rows' tokens in corpus->ids, or NO_PLACE.
void feed_fill(Feed *f, int rows, int context, int *tokens, int *targets, int *start, size_t *places);
