// Slots by position, in a ring if the window is shorter than the context. Only the counts decide which
// positions are intact: a ring holds the last `capacity` positions up to the highest that was ever written.
#include "engine/core/cache.h"

#include <assert.h>

static void cache_check(const Cache *c) {
    assert(0 <= c->length && c->length <= c->highest && c->highest <= c->limit);
    assert(c->capacity % CACHE_BLOCK == 0);
    assert(c->ring ? c->window > 0 && c->window <= c->capacity : c->limit <= c->capacity);
}

static int round_up(int n, int to) { return (n + to - 1) / to * to; }

void cache_init(Cache *c, int limit, int window, int slack) {
    assert(limit > 0 && window >= 0 && slack >= 0);
    *c = (Cache){.limit = limit, .window = window, .capacity = round_up(limit, CACHE_BLOCK)};
    int ring = round_up(window + slack, CACHE_BLOCK);
    if (window > 0 && window < limit && ring < c->capacity) { // a window as long as the context needs no ring
        c->ring = true;
        c->capacity = ring;
    }
    cache_check(c);
}

void cache_reset(Cache *c) {
    c->length = c->highest = 0;
    cache_check(c);
}

int cache_runs(const Cache *c, int from, int to, SlotRun out[2]) {
    if (from >= to) return 0;
    int slot = cache_slot(c, from), count = to - from, room = c->capacity - slot;
    assert(from >= 0 && count <= c->capacity);
    out[0] = (SlotRun){slot, count < room ? count : room};
    if (count <= room) return 1;
    out[1] = (SlotRun){0, count - room};
    return 2;
}

void cache_advance(Cache *c, int n) {
    assert(n >= 0);
    c->length += n;
    if (c->length > c->highest) c->highest = c->length;
    cache_check(c);
}

bool cache_truncate(Cache *c, int length, Error *e) {
    assert(length >= 0 && length <= c->length);
    if (cache_first_visible(c, length) < cache_first_intact(c))
        return error_system(e,
                            "cannot take the sequence back from %d to %d tokens: the rolling cache of %d "
                            "slots has overwritten positions that a window of %d needs",
                            c->length, length, c->capacity, c->window);
    c->length = length;
    cache_check(c);
    return true;
}
