// The text that a training learns from: documents as token ids, the stream of batches that is cut from them,
// and a model of n-grams that counts them.
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

// Fills `rows` rows (see Batch) and advances.
void feed_fill(Feed *f, int rows, int context, int *tokens, int *targets, int *start);

// --- n-grams (ngram.c) -----------------------------------------------------------------------------------

// A model that only counts. A trained model must beat it to have learnt more than short phrases.
//
// Interpolated modified Kneser-Ney (Chen and Goodman 1998, section 3): each n-gram's count is lowered by a
// discount D that depends on the count, and the mass so taken is distributed by the history h', which is h
// without its oldest token:
//
//     p(w | h) = (c(h w) - D(c(h w))) / c(h) + gamma(h) p(w | h')
//     gamma(h) = (sum over x of D(c(h x))) / c(h)
//
// Below the empty history every token has probability 1 / vocab. For the longest n-grams c counts
// occurrences; for shorter ones, the different tokens that precede them. Every document is preceded by tokens
// that are in no text, so that its first tokens have n-grams of full length too. No probability is 0, and
// they add to 1.
enum { NGRAM_MOST = 8 };

// An n-gram that occurs, as the place of its last token, and its count.
typedef struct NgramEntry {
    uint32_t end, count;
} NgramEntry;

// The different n-grams of one length, sorted by their tokens, the oldest first.
typedef struct NgramLevel {
    NgramEntry *entries; // (count)
    size_t count;
    double discount[4]; // of an n-gram counted 0, 1, 2, or more often
} NgramLevel;

typedef struct Ngram {
    int order, vocab;
    uint32_t *ids; // (count): every document, each after order - 1 times the id `vocab`
    size_t count;
    NgramLevel levels[NGRAM_MOST]; // of 1 to `order` tokens
} Ngram;

// Counts the documents of a feed, equal ones once: repeats would look like a language without rare phrases
// and spoil the discounts (2.700 nats instead of 2.641 on the text of configs/train/reference.yaml). order is
// 1 to NGRAM_MOST, ids are below vocab. False with e filled if the feed has more than 2^32 tokens.
bool ngram_learn(Ngram *m, const Feed *f, int order, int vocab, Error *e);
void ngram_release(Ngram *m); // takes an empty one

// The probability of ids[at], given the tokens before it in its document. at >= 1: nothing predicts BOS.
double ngram_probability(const Ngram *m, const int *ids, size_t at);

// Mean loss in nats over the first `most` rows of the feed's first epoch: the rows of trainer_held_out.
double ngram_loss(const Ngram *m, Feed *f, size_t most);
