#include "engine/core/cache.h"

#include <assert.h>

static int round_up(int n, int to) { return (n + to - 1) / to * to; }

void cache_init(Cache *c, int limit, int window, int slack) {
    *c = (Cache){.limit = limit, .window = window, .capacity = round_up(limit, CACHE_BLOCK)};
    if (window == 0 || window >= limit) return; // a window that holds everything needs no ring
    int ring = round_up(window + slack, CACHE_BLOCK);
    if (ring >= c->capacity) return;
    c->ring = true;
    c->capacity = ring;
}

void cache_reset(Cache *c) { c->length = c->highest = 0; }

int cache_runs(const Cache *c, int from, int to, SlotRun out[2]) {
    if (from >= to) return 0;
    int slot = cache_slot(c, from), count = to - from, room = c->capacity - slot;
    assert(count <= c->capacity);
    out[0] = (SlotRun){slot, count < room ? count : room};
    if (count <= room) return 1;
    out[1] = (SlotRun){0, count - room};
    return 2;
}

void cache_advance(Cache *c, int n) {
    c->length += n;
    if (c->length > c->highest) c->highest = c->length;
    assert(c->length <= c->limit);
}

bool cache_truncate(Cache *c, int length, Error *e) {
    assert(length >= 0 && length <= c->length);
    int lost =
        c->ring && c->highest > c->capacity ? c->highest - c->capacity : 0; // positions below are overwritten
    if (cache_first_visible(c, length) < lost)
        return error_system(e,
                            "cannot take the sequence back from %d to %d tokens: the rolling cache of %d "
                            "slots has overwritten what a window of %d needs",
                            c->length, length, c->capacity, c->window);
    c->length = length;
    return true;
}
