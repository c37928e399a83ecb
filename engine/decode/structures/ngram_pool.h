// The n-gram pool of Lookahead and Ouroboros: under each first token (the key) the tuples that followed it,
// newest first, at most `cap` per key. When a key is full, its last tuple is evicted:
//
//      lru    a tuple that is seen again becomes the newest: evicts the least recently used
//      fifo   a tuple that is seen again stays in its place: evicts the oldest
//
// Flat arrays over the whole vocabulary, one block per key, so nothing is allocated after init. The system
// hands out a block's pages when its key is first used.
//
//      tuples   | key 0: newest .. oldest | key 1: ... |      a tuple: `width` tokens
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { POOL_LRU, POOL_FIFO } PoolEviction;

typedef struct NgramPool {
    int vocab, width, cap;
    PoolEviction eviction;
    int *count;       // (vocab): tuples per key
    int *tuples;      // (vocab, cap, width)
    size_t size;      // tuples of all keys
    size_t evicted;   // since the pool was last empty
    uint64_t history; // a hash of all changes since then, in order: equal ones, equal pools
} NgramPool;

// width: tokens per tuple, not counting the key; at least 1, as is cap. Fails if memory runs out for
// vocab * cap * width tokens.
bool ngram_pool_init(NgramPool *p, int vocab, int width, int cap, PoolEviction eviction, Error *e);
void ngram_pool_release(NgramPool *p);
void ngram_pool_clear(NgramPool *p);

// The tuple must not point into the pool.
void ngram_pool_insert(NgramPool *p, int key, const int *tuple);

// Removes a tuple if it is there.
void ngram_pool_remove(NgramPool *p, int key, const int *tuple);

// Overwrites the i-th newest tuple in place; a key can then hold a tuple twice. The tuple must not point into
// the pool.
void ngram_pool_write(NgramPool *p, int key, int i, const int *tuple);

static inline int ngram_pool_count(const NgramPool *p, int key) { return p->count[key]; }

// The i-th newest tuple, (width); valid until the pool next changes.
static inline const int *ngram_pool_tuple(const NgramPool *p, int key, int i) {
    return p->tuples + ((size_t)key * (size_t)p->cap + (size_t)i) * (size_t)p->width;
}

// Writes the size, its bytes and the evictions, as a method's `state`.
void ngram_pool_describe(const NgramPool *p, Text *out);
