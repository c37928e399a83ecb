// mbarriers, and the bulk copies that count their bytes at them.
//
// An mbarrier's phase is complete when as many have arrived as it was made for, and all bytes that were
// expected have come. A wait that isn't over fails once, as it may on a card, and then stands still until it
// is. A copy's bytes leave at once and arrive when no warp can go on (async.h), in the order of the test.
#include "tests/ptx/memory.h"
#include "tests/simt/settings.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = (1 << 20) - 1 }; // that an mbarrier can expect

static uint64_t address_of(Warp *w, const Instruction *o, int lane) {
    return shared_place(w, lane, operand_lane(w, &o->s[0], lane) + (uint64_t)o->offset, o->far);
}

static Mbarrier *mbarrier_at(const Warp *w, int lane, uint64_t address) {
    Block *b = w->block;
    for (int i = 0; i < MOST_MBARRIERS; i++) {
        if (!b->mbarriers[i].live || b->mbarriers[i].address != address) continue;
        if (!shared_mbarrier_is_known(w, lane, address))
            fault(w, lane, "race: uses the mbarrier at %lu; nothing orders its init before",
                  (unsigned long)address % SHARED_SPAN);
        return &b->mbarriers[i];
    }
    fault(w, lane, "there is no mbarrier at %lu of shared memory", (unsigned long)address % SHARED_SPAN);
}

static void complete(Block *b, Mbarrier *x) {
    if (x->pending || x->bytes) return;
    x->next.mbarrier[x - b->mbarriers] = ++x->done;
    x->past = x->next;
    x->pending = x->count;
}

// --- init and inval

void run_mbarrier_init(Warp *w, const Instruction *o, uint32_t lanes) {
    Block *b = w->block;
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left), i = 0;
        Touch t = {.w = w, .bytes = 8, .write = true};
        uint32_t count = (uint32_t)operand_lane(w, &o->s[1], lane);
        t.address[lane] = address_of(w, o, lane);
        memory_touch_shared(&t, 1u << lane); // an mbarrier that is there already is a fault
        if (!count || count > MOST_BYTES) fault(w, lane, "an mbarrier of %u arrivals", count);
        while (i < MOST_MBARRIERS && b->mbarriers[i].live) i++;
        if (i == MOST_MBARRIERS) fault(w, lane, "more than %d mbarriers", MOST_MBARRIERS);
        Mbarrier *x = &b->mbarriers[i];
        if (x->done < b->begun) { // its first of this block
            x->done = b->begun;
            past_begin(&x->past, b->begun);
        }
        x->first = x->done;
        x->next = x->past;
        x->live = true, x->address = (uint32_t)t.address[lane];
        x->count = x->pending = count;
        x->bytes = 0, x->latest = 0;
        shared_is_mbarrier(x->address, true);
    }
}
void run_mbarrier_drop(Warp *w, const Instruction *o, uint32_t lanes) {
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        Mbarrier *x = mbarrier_at(w, lane, address_of(w, o, lane));
        if (x->bytes) fault(w, lane, "drops an mbarrier that expects %ld bytes", (long)x->bytes);
        x->live = false;
        shared_is_mbarrier(x->address, false);
    }
}

// --- arrivals: s[1] at once (none: bytes are only expected), s[2] bytes expected

void run_mbarrier_arrive(Warp *w, const Instruction *o, uint32_t lanes) {
    Block *b = w->block;
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        Mbarrier *x = mbarrier_at(w, lane, address_of(w, o, lane));
        uint32_t count = (uint32_t)operand_lane(w, &o->s[1], lane);
        if (count && !o->wide && x->address / SHARED_SPAN != (uint32_t)w->rank)
            fault(w, lane, "arrives at another block's mbarrier, and tells its own block alone (.cluster)");
        if (o->results) ((uint64_t *)operand_at(w, &o->d[0]))[lane] = x->done;
        x->bytes += (int64_t)operand_lane(w, &o->s[2], lane);
        if (x->bytes > MOST_BYTES) fault(w, lane, "an mbarrier expects %ld bytes", (long)x->bytes);
        if (!count) continue;
        if (count > x->pending)
            fault(w, lane, "arrives at the mbarrier at %u, which expects %u arrivals, and all have come",
                  x->address % SHARED_SPAN, x->count);
        // Lanes that come together to one mbarrier tell it the same.
        bool first = left == lanes || address_of(w, o, lane) != address_of(w, o, __builtin_ctz(lanes));
        if (first) warp_tells(w, lanes, &x->next);
        if (w->now > x->latest) x->latest = w->now;
        x->pending -= count;
        complete(b, x);
    }
}

// --- waits: for the phase of a parity, or of what an arrival has returned

static bool is_over(const Warp *w, const Instruction *o, int lane, const Mbarrier *x) {
    uint64_t phase = operand_lane(w, &o->s[1], lane);
    return o->more == WAIT_PARITY ? ((x->done - x->first) & 1) != (phase & 1) : x->done > phase;
}

bool mbarrier_ready(Warp *w, const Instruction *o, uint32_t lanes) {
    uint32_t waits = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        Mbarrier *x = mbarrier_at(w, lane, address_of(w, o, lane));
        waits |= (uint32_t)!is_over(w, o, lane, x) << lane;
    }
    bool may = !(waits & w->denied);
    w->denied = (w->denied & ~lanes) | waits;
    return may;
}

// All that came tell, but a wait without .cluster hears its own block's warps alone.
static Past told(const Warp *w, const Instruction *o, const Mbarrier *x) {
    const Block *b = w->block;
    Past p = x->past;
    for (uint32_t i = 0; i < b->warp_count && b->ranks > 1 && !o->wide; i++)
        if (b->warps[i].rank != w->rank) p.warp[i] = p.some[i] = b->begun;
    return p;
}

void run_mbarrier_wait(Warp *w, const Instruction *o, uint32_t lanes) {
    uint32_t over = 0, *d = operand_at(w, &o->d[0]);
    bool one = true;
    Mbarrier *x = NULL;
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        Mbarrier *other = mbarrier_at(w, lane, address_of(w, o, lane));
        one &= !x || x == other;
        x = other;
        if (is_over(w, o, lane, x)) over |= 1u << lane;
    }
    *d = (*d & ~lanes) | over;
    for (uint32_t left = one ? 0 : over; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        Past p = told(w, o, mbarrier_at(w, lane, address_of(w, o, lane)));
        warp_learns(w, 1u << lane, &p);
    }
    if (one && over) {
        Past p = told(w, o, x);
        warp_learns(w, over, &p);
    }
    if (over && x->latest > w->now) w->now = x->latest;
}

void mbarrier_stuck(Warp *w, const Instruction *o, int lane) {
    const Mbarrier *x = mbarrier_at(w, lane, address_of(w, o, lane));
    fault(
        w, lane,
        "waits at the mbarrier at %u of shared memory, to which nobody comes: %u of %u arrivals and %ld bytes "
        "are missing in phase %u",
        x->address % SHARED_SPAN, x->pending, x->count, (long)x->bytes, x->done - x->first);
}

// --- bulk copies: to, from, bytes, mbarrier; a mask of the cluster's blocks that get the same, each at the
// same place, and count it at their own mbarriers

static void leave(Warp *w, int lane, Bulk *c, uint64_t from_address) {
    Touch to = {.w = w, .bytes = 16, .write = true}, from = {.w = w, .bytes = 16};
    for (uint32_t i = 0; i < c->bytes; i += 16) {
        to.address[lane] = c->to + i;
        from.address[lane] = from_address + i;
        shared_check_shown(w, lane, c->to + i, "a bulk copy overwrites");
        memory_touch_shared(&to, 1u << lane);
        memory_touch(&from, 1u << lane);
        memcpy(c->data + i, from.at[lane], 16);
        memset(to.at[lane], 0xff, 16);
        shared_in_flight(c->to + i, true);
    }
}

static void begin_copy(Warp *w, int lane, uint64_t to, uint64_t from, uint64_t bytes, uint64_t at) {
    Block *b = w->block;
    if (to % SHARED_SPAN + bytes > b->shared_bytes)
        fault(w, lane, "a bulk copy of %lu bytes to %lu of shared memory, which has %zu",
              (unsigned long)bytes, (unsigned long)to % SHARED_SPAN, b->shared_bytes);
    if (to / SHARED_SPAN != at / SHARED_SPAN)
        fault(w, lane, "a bulk copy to block %u that counts at an mbarrier of block %u",
              b->number + (uint32_t)(to / SHARED_SPAN), b->number + (uint32_t)(at / SHARED_SPAN));
    Mbarrier *x = mbarrier_at(w, lane, at);
    if (!shared_mbarrier_is_shown(w, lane, at))
        fault(w, lane,
              "a bulk copy counts at the mbarrier at %lu, behind whose init there is no "
              "fence.mbarrier_init or fence.proxy.async",
              (unsigned long)at % SHARED_SPAN);
    b->bulk = async_grown(b->bulk, b->bulk_count, &b->bulk_space, sizeof *b->bulk);
    Bulk *c = &b->bulk[b->bulk_count++];
    *c = (Bulk){(uint32_t)to, (uint32_t)bytes,   (int)(x - b->mbarriers),
                w->number,    malloc(bytes + 1), w->now + L2_CYCLES};
    if (!c->data) machine_fault("no memory");
    leave(w, lane, c, from);
    copies_leave(w, bytes);
}

// To each block of the mask.
static void copy_to_many(Warp *w, int lane, uint64_t mask, uint64_t to, uint64_t from, uint64_t bytes,
                         uint64_t at) {
    const int ranks = w->block->ranks;
    if (!mask || mask >> ranks)
        fault(w, lane, "a bulk copy to blocks %#lx of a cluster of %d", (unsigned long)mask, ranks);
    for (int rank = 0; rank < ranks; rank++) {
        uint64_t base = (uint64_t)rank * SHARED_SPAN;
        if (!(mask >> rank & 1)) continue;
        if (rank != w->rank) cluster_reach(w, lane, rank);
        begin_copy(w, lane, base + to % SHARED_SPAN, from, bytes, base + at % SHARED_SPAN);
    }
}

void run_bulk(Warp *w, const Instruction *o, uint32_t lanes) {
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t to = address_of(w, o, lane), from = operand_lane(w, &o->s[1], lane) + (uint64_t)o->more,
                 bytes = operand_lane(w, &o->s[2], lane),
                 at = shared_place(w, lane, operand_lane(w, &o->s[3], lane) + (uint64_t)o->third, o->far);
        if (to % 16 || from % 16 || bytes % 16)
            fault(w, lane, "a bulk copy of %lu bytes from %#lx to %lu: all must be multiples of 16",
                  (unsigned long)bytes, (unsigned long)from, (unsigned long)to % SHARED_SPAN);
        if (o->sources > 4)
            copy_to_many(w, lane, operand_lane(w, &o->s[4], lane) & 0xffff, to, from, bytes, at);
        else begin_copy(w, lane, to, from, bytes, at);
        machine_counters()->copy_sectors += bytes / 32; // once, however many blocks get them
        machine_counters()->copy_ideal += bytes / 32;
    }
}

bool bulk_arrives(Block *b) {
    if (!b->bulk_count) return false;
    uint32_t i = simt_settings.order == SIMT_REVERSED ? b->bulk_count - 1
                 : simt_settings.order == SIMT_RANDOM ? machine_random() % b->bulk_count
                                                      : 0;
    Bulk c = b->bulk[i];
    int rank = (int)(c.to / SHARED_SPAN);
    Mbarrier *x = &b->mbarriers[c.mbarrier];
    memmove(&b->bulk[i], &b->bulk[i + 1], (--b->bulk_count - i) * sizeof c);
    if (!x->live) fault(b->warps, 0, "a bulk copy arrives whose mbarrier is gone");
    if (cluster_has_left(b, rank))
        fault(b->warps, 0, "a bulk copy arrives in shared memory of block %u, which has left",
              b->number + (uint32_t)rank);
    for (uint32_t at = 0; at < c.bytes; at += 16)
        shared_copied(b, c.to + at, c.data + at, c.mbarrier, x->done);
    free(c.data);
    b->warps[c.warp].flight -= c.bytes;
    x->bytes -= c.bytes;
    if (c.ready > x->latest) x->latest = c.ready;
    complete(b, x);
    return true;
}

void run_bulk_prefetch(Warp *w, const Instruction *o, uint32_t lanes) {
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t from = operand_lane(w, &o->s[0], lane) + (uint64_t)o->offset,
                 bytes = o->sources > 1 ? operand_lane(w, &o->s[1], lane) : 1;
        if (o->sources > 1 && (from % 16 || bytes % 16))
            fault(w, lane, "a prefetch of %lu bytes from %#lx: both must be multiples of 16",
                  (unsigned long)bytes, (unsigned long)from);
        memory_prefetch(w, lane, from, bytes);
    }
}
