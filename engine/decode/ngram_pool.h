// The n-gram pool of Lookahead and Ouroboros: under each first token (the key) the tuples that followed it,
// newest first, at most `cap` of them. Where a key is full, the last one goes:
//
//      lru    a tuple that is seen again becomes the newest: the least recently used goes
//      fifo   it stays where it is: the oldest goes
//
// Flat arrays over the whole vocabulary, one block per key, so that nothing is allocated after init. The
// system hands out their pages when a key is first used.
//
//      tuples   | key 0: newest .. oldest | key 1: ... |      a tuple: `width` tokens
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum { POOL_LRU, POOL_FIFO } PoolEviction;

typedef struct NgramPool {
    int vocab, width, cap;
    PoolEviction eviction;
    int *count;  // (vocab): tuples of a key
    int *tuples; // (vocab, cap, width)
    size_t size; // tuples of all keys
} NgramPool;

// width: tokens of a tuple, the key not among them; at least 1, as is cap.
bool ngram_pool_init(NgramPool *p, int vocab, int width, int cap, PoolEviction eviction, Error *e);
void ngram_pool_release(NgramPool *p);
void ngram_pool_clear(NgramPool *p);

// The tuple is not one of the pool's own.
void ngram_pool_insert(NgramPool *p, int key, const int *tuple);

// Takes a tuple out; nothing happens if it is not there.
void ngram_pool_remove(NgramPool *p, int key, const int *tuple);

// Writes over the i-th newest, in its place; a tuple can then be there twice. The tuple is not one of the
// pool's own.
void ngram_pool_write(NgramPool *p, int key, int i, const int *tuple);

static inline int ngram_pool_count(const NgramPool *p, int key) { return p->count[key]; }

// The i-th newest, (width); holds until the pool next changes.
static inline const int *ngram_pool_tuple(const NgramPool *p, int key, int i) {
    return p->tuples + ((size_t)key * (size_t)p->cap + (size_t)i) * (size_t)p->width;
}

// The same tuples under every key, in the same order.
bool ngram_pool_equal(const NgramPool *a, const NgramPool *b);
