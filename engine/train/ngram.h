// A model that only counts: what a trained model has to beat to have learnt more than short phrases.
//
// Interpolated modified Kneser-Ney (Chen and Goodman 1998, section 3): each n-gram's count is lowered by a
// discount D that depends on the count, and what was taken is shared out by the history h' that is h without
// its oldest token:
//
//     p(w | h) = (c(h w) - D(c(h w))) / c(h) + gamma(h) p(w | h')
//     gamma(h) = (sum over x of D(c(h x))) / c(h)
//
// This ends at the empty history, below which every token has 1 / vocab. For the longest n-grams c counts
// occurrences; for shorter ones, the different tokens that stand before them. A document begins with a
// history of tokens that are in no text, so that its first tokens have n-grams of full length too. No
// probability is 0, and they add to 1.
#pragma once
#include "engine/train/corpus.h"

enum { NGRAM_MOST = 8 };

// An n-gram that occurs, as the place of its last token, and its count.
typedef struct NgramEntry {
    uint32_t end, count;
} NgramEntry;

// The different n-grams of one length, in the order of their tokens, the oldest first.
typedef struct NgramLevel {
    NgramEntry *entries; // (count)
    size_t count;
    double discount[4]; // of an n-gram counted 0, 1, 2, or more often
} NgramLevel;

typedef struct Ngram {
    int order, vocab;
    uint32_t *ids; // (count): every document after order - 1 times the id `vocab`
    size_t count;
    NgramLevel levels[NGRAM_MOST]; // of 1 to `order` tokens
} Ngram;

// Counts the documents of a feed, equal ones once: repeats would look like a language without rare phrases
// and spoil the discounts (2.700 nats instead of 2.641 on the text of configs/train/reference.yaml). order is
// 1 to NGRAM_MOST, ids are below vocab. False if there is no memory.
bool ngram_learn(Ngram *m, const Feed *f, int order, int vocab, Error *e);
void ngram_release(Ngram *m); // takes an empty or half-built one

// Of ids[at] in a document ids, after the tokens before it there; at is 1 at least: nothing foretells BOS.
double ngram_probability(const Ngram *m, const int *ids, size_t at);

// Mean loss in nats over the first `most` rows of the feed's first epoch: the rows of trainer_held_out.
double ngram_loss(const Ngram *m, Feed *f, size_t most);
