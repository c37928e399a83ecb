// A key's block is kept in order by moving it: a few hundred bytes, cheaper than any list's bookkeeping.
//
// Invariants, asserted by ngram_pool_check(): a key holds 0 to cap tuples; size is the sum over the keys.
#include "engine/decode/structures/ngram_pool.h"

#include "engine/base/memory.h"
#include "engine/core/ranks.h"

#include <assert.h>
#include <string.h>

static void ngram_pool_check(const NgramPool *p, int key) {
    assert(key >= 0 && key < p->vocab);
    assert(p->count[key] >= 0 && p->count[key] <= p->cap && (size_t)p->count[key] <= p->size);
    assert(p->size <= (size_t)p->vocab * (size_t)p->cap);
}

bool ngram_pool_init(NgramPool *p, int vocab, int width, int cap, PoolEviction eviction, Error *e) {
    size_t block;
    assert(vocab >= 1 && width >= 1 && cap >= 1);
    *p = (NgramPool){.vocab = vocab, .width = width, .cap = cap, .eviction = eviction};
    if (size_mul((size_t)width * sizeof(int), (size_t)cap, &block)) p->tuples = mem_try((size_t)vocab, block);
    if (!p->tuples)
        return error_system(e, "out of memory for a pool of %d n-grams of %d tokens under each of %d tokens",
                            cap, width + 1, vocab);
    p->count = mem_new((size_t)vocab, sizeof *p->count);
    return true;
}

void ngram_pool_release(NgramPool *p) {
    MEM_FREE(p->count, p->tuples);
    *p = (NgramPool){0};
}

void ngram_pool_clear(NgramPool *p) {
    memset(p->count, 0, (size_t)p->vocab * sizeof *p->count);
    p->size = p->evicted = 0;
    p->history = 0;
    ngram_pool_check(p, 0);
}

static void note(NgramPool *p, int key, const int *tuple) {
    p->history = ranks_hash(p->history, &key, sizeof key);
    p->history = ranks_hash(p->history, tuple, (size_t)p->width * sizeof *tuple);
}

static int *place(NgramPool *p, int key, int i) { return (int *)ngram_pool_tuple(p, key, i); }

static size_t bytes(const NgramPool *p, int tuples) {
    return (size_t)tuples * (size_t)p->width * sizeof(int);
}

// The tuple's place, the oldest one if the key holds it twice; the key's count if it is absent.
static int find(const NgramPool *p, int key, const int *tuple) {
    int i = p->count[key];
    while (i-- > 0)
        if (memcmp(ngram_pool_tuple(p, key, i), tuple, bytes(p, 1)) == 0) return i;
    return p->count[key];
}

void ngram_pool_insert(NgramPool *p, int key, const int *tuple) {
    ngram_pool_check(p, key);
    note(p, key, tuple);
    int i = find(p, key, tuple);
    bool seen = i < p->count[key];
    if (seen && p->eviction == POOL_FIFO) return;
    if (!seen && i < p->cap) {
        p->count[key]++;
        p->size++;
    }
    if (i == p->cap) { // evicts the last one
        p->evicted++;
        i--;
    }
    memmove(place(p, key, 1), place(p, key, 0), bytes(p, i));
    memcpy(place(p, key, 0), tuple, bytes(p, 1));
    assert(p->count[key] >= 1);
    ngram_pool_check(p, key);
}

void ngram_pool_remove(NgramPool *p, int key, const int *tuple) {
    ngram_pool_check(p, key);
    note(p, ~key, tuple);
    int i = find(p, key, tuple);
    if (i == p->count[key]) return;
    p->count[key]--;
    p->size--;
    memmove(place(p, key, i), place(p, key, i + 1), bytes(p, p->count[key] - i));
    ngram_pool_check(p, key);
}

void ngram_pool_write(NgramPool *p, int key, int i, const int *tuple) {
    ngram_pool_check(p, key);
    assert(i >= 0 && i < p->count[key]);
    note(p, i, tuple);
    memcpy(place(p, key, i), tuple, bytes(p, 1));
}

void ngram_pool_describe(const NgramPool *p, Text *out) {
    text_printf(out, "%zu n-grams, %.1f MB; evicted %zu n-grams", p->size,
                1e-6 * (double)p->size * (double)bytes(p, 1), p->evicted);
}
