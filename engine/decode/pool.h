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

typedef struct Pool {
    int vocab, width, cap;
    PoolEviction eviction;
    int *count;  // (vocab): tuples of a key
    int *tuples; // (vocab, cap, width)
    size_t size; // tuples of all keys
} Pool;

// width: tokens of a tuple, the key not among them; at least 1, as is cap.
bool pool_init(Pool *p, int vocab, int width, int cap, PoolEviction eviction, Error *e);
void pool_release(Pool *p);
void pool_clear(Pool *p);

// The tuple is not one of the pool's own.
void pool_insert(Pool *p, int key, const int *tuple);

// Takes a tuple out; nothing happens if it is not there.
void pool_remove(Pool *p, int key, const int *tuple);

static inline int pool_count(const Pool *p, int key) { return p->count[key]; }

// The i-th newest, (width); holds until the pool next changes.
static inline const int *pool_tuple(const Pool *p, int key, int i) {
    return p->tuples + ((size_t)key * (size_t)p->cap + (size_t)i) * (size_t)p->width;
}

// The same tuples under every key, in the same order.
bool pool_equal(const Pool *a, const Pool *b);
