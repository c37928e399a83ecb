// The slots of committed keys and values: integers only, shared by all backends.
//
// Position p of the committed sequence is in slot p or, if the model has a sliding window, in slot p mod
// capacity of a ring (Mistral, section 2: the rolling buffer cache). The ring holds the window and some
// slack, so that the last tokens can be taken back (cache_truncate):
//
//      capacity = window + slack, rounded up to CACHE_BLOCK
//
// The tokens of an open step are never in the cache; committing a token overwrites the oldest slot.
//
// Invariants: 0 <= length <= highest <= limit; positions [cache_first_intact, length) are intact.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>

enum { CACHE_BLOCK = 16, CACHE_SLACK = 64 };

typedef struct Cache {
    int length;   // committed tokens
    int highest;  // the longest `length` since the last reset
    int limit;    // the context
    int window;   // 0: none
    int capacity; // slots
    bool ring;
} Cache;

// slack: the tokens that can always be taken back from a ring.
void cache_init(Cache *c, int limit, int window, int slack);
void cache_reset(Cache *c);

static inline int cache_slot(const Cache *c, int position) {
    return c->ring ? position % c->capacity : position;
}

// The first position that a query at `position` sees.
static inline int cache_first_visible(const Cache *c, int position) {
    return c->window && position >= c->window ? position - c->window + 1 : 0;
}

// The first position that no later one has overwritten. A later cache_truncate may make any position from
// here on visible again.
static inline int cache_first_intact(const Cache *c) {
    return c->ring && c->highest > c->capacity ? c->highest - c->capacity : 0;
}

// Consecutive slots, which a kernel can read as one block.
typedef struct SlotRun {
    int slot, count;
} SlotRun;

// Writes the slots of positions [from, to) in order, as one or two runs, and returns the number of runs.
int cache_runs(const Cache *c, int from, int to, SlotRun out[2]);

// Lengthens the sequence by n. The caller has already written the slots of [length, length + n).
void cache_advance(Cache *c, int n);

// Takes the sequence back to `length` tokens. Returns false, and changes nothing, if a ring has already
// overwritten positions that the next query would see.
bool cache_truncate(Cache *c, int length, Error *e);
