// Where committed keys and values stand: integers only, shared by all backends.
//
// Position p of the committed sequence stands in slot p, or, where the model has a sliding window, in slot
// p mod capacity of a ring (Mistral, section 2: the rolling buffer cache). The ring holds the window and
// some slack, so that the last tokens can be taken back (truncate):
//
//      capacity = window + slack, rounded up to CACHE_BLOCK
//
// Tokens of an open step are never in the cache; committing one is what overwrites the oldest slot.
//
// Invariants: 0 <= length <= limit; positions [first, length) are intact, where
// first = max(0, highest - capacity) and `highest` is the longest the sequence has been since the reset.
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

// slack: tokens that can always be taken back where there is a ring.
void cache_init(Cache *c, int limit, int window, int slack);
void cache_reset(Cache *c);

static inline int cache_slot(const Cache *c, int position) {
    return c->ring ? position % c->capacity : position;
}

// The first position that a query at `position` sees.
static inline int cache_first_visible(const Cache *c, int position) {
    return c->window && position >= c->window ? position - c->window + 1 : 0;
}

// A run of consecutive slots: what a kernel can read as one block.
typedef struct SlotRun {
    int slot, count;
} SlotRun;

// The slots of positions [from, to) in order, as one or two runs. Gives their number.
int cache_runs(const Cache *c, int from, int to, SlotRun out[2]);

// Lengthens the sequence by n; the caller copies to the slots of [length, length + n) first.
void cache_advance(Cache *c, int n);

// Takes the sequence back to `length` tokens. False, and nothing done, if a ring has already overwritten what
// the next query would see.
bool cache_truncate(Cache *c, int length, Error *e);
