// Shared memory of a block, and what is known of each word of it: who wrote it last, and who has read it
// since. What orders two accesses is in past.h: program order and bar.warp.sync, barriers, mbarriers, the
// waits for groups of wgmma.
#include "tests/ptx/memory.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = MOST_RANKS * SHARED_SPAN / 4, BY_COPY = 0x8000 };

typedef struct SharedCell {
    uint32_t write_time;
    uint32_t readers;           // warps that have read it since
    uint16_t writer;            // a thread, or the mbarrier of a bulk copy
    uint8_t write_bytes, known; // a bit a byte
    uint8_t vague;              // .. that was written with what nobody wrote
    uint8_t groups;             // warpgroups whose wgmma have read it since
    bool atomic, flight;        // an asynchronous copy is on its way here
    bool mbarrier;
} SharedCell;
typedef struct Reader {
    uint32_t time, lanes;
} Reader;

static struct {
    SharedCell *cells;
    Reader *readers[WARPS];       // of each warp, by word
    uint32_t *groups[WARPGROUPS]; // the last group of wgmma of each warpgroup
} m;

static void *taken(size_t count, size_t size) {
    void *p = calloc(count, size);
    if (!p) machine_fault("no memory");
    return p;
}

void shared_begin_block(const Block *b) {
    if (!m.cells) m.cells = taken(WORDS, sizeof *m.cells);
    for (uint32_t i = 0; i < b->warp_count; i++)
        if (!m.readers[i]) m.readers[i] = taken(WORDS, sizeof *m.readers[i]);
    for (uint32_t i = 0; i < WARPGROUPS && b->kernel->tensor; i++)
        if (!m.groups[i]) m.groups[i] = taken(WORDS, sizeof *m.groups[i]);
    for (int rank = 0; rank < b->ranks; rank++) {
        SharedCell *c = m.cells + (size_t)rank * SHARED_SPAN / 4;
        memset(b->shared + (size_t)rank * SHARED_SPAN, 0xff, b->shared_bytes);
        for (size_t i = 0; i < (b->shared_bytes + 3) / 4 && ptx_settings.checked; i++)
            c[i].known = c[i].vague = 0, c[i].flight = c[i].mbarrier = false;
    }
}

uint64_t shared_place(Warp *w, int lane, uint64_t address, bool far) {
    uint64_t tag = address >> RANK_SHIFT, at = address & ((1u << RANK_SHIFT) - 1);
    int rank = tag ? (int)tag - 1 : w->rank;
    if (tag > (uint64_t)w->block->ranks || at >= SHARED_SPAN)
        fault(w, lane, "is at %lu of shared memory, which has %zu", (unsigned long)address,
              w->block->shared_bytes);
    if (rank != w->rank) {
        if (!far)
            fault(w, lane,
                  "takes a place in another block's shared memory for one in its own; only "
                  ".shared::cluster may name it");
        cluster_reach(w, lane, rank);
    }
    return (uint64_t)rank * SHARED_SPAN + at;
}

static void check_place(const Touch *t, int lane) {
    const char *does = t->write ? "writes" : "reads";
    size_t has = t->w->block->shared_bytes;
    uint64_t address = t->address[lane] % SHARED_SPAN;
    if (address + t->bytes > has || address > has)
        fault(t->w, lane, "%s %u bytes at %lu of shared memory, which has %zu", does, t->bytes,
              (unsigned long)address, has);
    if (address % t->bytes)
        fault(t->w, lane, "%s %u bytes at %lu of shared memory, which is not aligned", does, t->bytes,
              (unsigned long)address);
}

// Whether what wrote the word last is in order before what a lane does now; -1: before what all lanes do.
static bool write_is_known(const Warp *w, int lane, const SharedCell *c) {
    if (c->writer & BY_COPY) return warp_knows_phase(w, lane, c->writer & ~BY_COPY, c->write_time);
    return warp_knows(w, lane, c->writer / LANES, c->write_time, 1u << c->writer % LANES);
}

// The words that wgmma reads are read until one of the group's warps has waited for it.
static void check_groups(const Touch *t, int lane, const SharedCell *c) {
    const Warp *w = t->w;
    const Block *b = w->block;
    for (uint32_t left = c->groups; left; left &= left - 1) {
        int g = __builtin_ctz(left);
        uint32_t group = m.groups[g][c - m.cells];
        bool ended = group <= b->groups, known = ended;
        for (uint32_t i = 4 * (uint32_t)g; i < 4 * (uint32_t)g + 4 && i < b->warp_count && !known; i++) {
            const Multiplying *x = &b->warps[i].tensor;
            if (x->done < group) continue;
            ended = true;
            known =
                (int)i == w->number || warp_knows(w, lane, (int)i, x->ended[group - b->groups - 1].time, 0);
        }
        if (!known)
            fault(w, lane,
                  "race: writes byte %lu of shared memory, which wgmma of warpgroup %d may still read: %s",
                  (unsigned long)t->address[lane] % SHARED_SPAN, g,
                  ended ? "nothing orders its wait before the write" : "nobody has waited for its group");
    }
}

static void check_shared(const Touch *t, int lane, const SharedCell *c, uint8_t part) {
    const Warp *w = t->w;
    const char *does = t->write ? "writes" : "reads";
    unsigned long address = t->address[lane] % SHARED_SPAN;
    bool reads = !t->write || t->atomic;
    if (c->mbarrier) fault(w, lane, "%s byte %lu of shared memory, which is an mbarrier's", does, address);
    if (c->flight)
        fault(w, lane, "%s byte %lu of shared memory, where a copy is still on its way", does, address);
    if (part & ~(c->known | c->vague) && reads && !t->unwritten)
        fault(w, lane, "reads byte %lu of shared memory, which nobody has written", address);
    if (c->write_bytes & part && !(t->atomic && c->atomic) && !write_is_known(w, lane, c)) {
        if (c->writer & BY_COPY)
            fault(w, lane,
                  "race: %s byte %lu of shared memory, which a bulk copy wrote; nobody waited for its phase",
                  does, address);
        fault(w, lane, "race: %s byte %lu of shared memory, which thread %d wrote; nothing orders the two",
              does, address, c->writer);
    }
    if (!t->write || t->atomic) return;
    for (uint32_t left = c->readers; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        const Reader *r = &m.readers[i][c - m.cells];
        if (!warp_knows(w, lane, i, r->time, r->lanes))
            fault(
                w, lane,
                "race: writes byte %lu of shared memory, which another thread reads; nothing orders the two",
                address);
    }
    if (c->groups) check_groups(t, lane, c);
}

static void note_shared(const Touch *t, int lane, SharedCell *c, uint8_t part) {
    const Warp *w = t->w;
    if (t->write) {
        uint16_t thread = (uint16_t)(w->number * LANES + lane);
        bool same = c->write_time == w->time && c->writer == thread;
        c->write_bytes = same ? (uint8_t)(c->write_bytes | part) : part;
        c->write_time = w->time, c->writer = thread, c->atomic = t->atomic;
        c->known |= part;
        c->vague &= (uint8_t)~part;
        if (!t->atomic) c->readers = c->groups = 0;
        return;
    }
    Reader *r = &m.readers[w->number][c - m.cells];
    bool also = c->readers >> w->number & 1 && r->time >= w->past.warp[w->number];
    *r = (Reader){w->time, (also ? r->lanes : 0) | 1u << lane};
    c->readers |= 1u << w->number;
}

// A matrix may have rows that nobody wrote, as long as nobody looks at what is made of them: they are NaN.
void memory_touch_shared(Touch *t, uint32_t lanes) {
    const Block *b = t->w->block;
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t address = t->address[lane];
        check_place(t, lane);
        t->at[lane] = b->shared + address;
        if (!ptx_settings.checked) continue;
        uint8_t part = t->bytes >= 4 ? 15 : (uint8_t)(((1u << t->bytes) - 1) << address % 4);
        for (SharedCell *c = &m.cells[address / 4], *end = &m.cells[(address + t->bytes + 3) / 4]; c < end;
             c++) {
            check_shared(t, lane, c, part);
            note_shared(t, lane, c, part);
        }
    }
}

bool shared_is_written(uint64_t address) {
    const SharedCell *c = &m.cells[address / 4];
    return !ptx_settings.checked || (c[0].known & c[1].known & c[2].known & c[3].known) == 15;
}

void shared_forget(uint64_t address, unsigned bytes) {
    for (uint64_t at = address; at < address + bytes && ptx_settings.checked; at++) {
        SharedCell *c = &m.cells[at / 4];
        c->known &= (uint8_t) ~(1u << at % 4);
        c->vague |= (uint8_t)(1u << at % 4);
    }
}
bool shared_is_vague(uint64_t address, unsigned bytes) {
    bool vague = false;
    for (uint64_t at = address; at < address + bytes && ptx_settings.checked; at++)
        vague |= m.cells[at / 4].vague >> at % 4 & 1;
    return vague;
}

void shared_in_flight(uint64_t address, bool flight) {
    for (unsigned i = 0; i < 4 && ptx_settings.checked; i++) m.cells[address / 4 + i].flight = flight;
}

// --- mbarriers, bulk copies and wgmma

void shared_is_mbarrier(uint64_t address, bool it_is) {
    for (unsigned i = 0; i < 2 && ptx_settings.checked; i++) {
        m.cells[address / 4 + i].mbarrier = it_is;
        m.cells[address / 4 + i].known = 0;
    }
}
bool shared_mbarrier_is_known(const Warp *w, int lane, uint64_t address) {
    return !ptx_settings.checked || write_is_known(w, lane, &m.cells[address / 4]);
}

// The first fence of the thread behind its write, if this lane knows of it.
static bool is_shown(const Warp *w, int lane, const SharedCell *c, bool mbarrier) {
    if (!ptx_settings.checked || c->writer & BY_COPY || c->write_time < w->block->begun) return true;
    const Warp *by = &w->block->warps[c->writer / LANES];
    const uint32_t own = 1u << c->writer % LANES;
    uint32_t low = 0, high = by->show_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (by->shows[middle].time < c->write_time) low = middle + 1;
        else high = middle;
    }
    for (; low < by->show_count; low++) {
        const ProxyFence *f = &by->shows[low];
        if (f->lanes & own && (mbarrier || !f->mbarriers))
            return warp_knows(w, lane, by->number, f->time, own);
    }
    return false;
}
bool shared_mbarrier_is_shown(const Warp *w, int lane, uint64_t address) {
    return is_shown(w, lane, &m.cells[address / 4], true);
}

void shared_check_shown(const Warp *w, int lane, uint64_t address, const char *who) {
    for (unsigned i = 0; i < 4 && ptx_settings.checked; i++) {
        const SharedCell *c = &m.cells[address / 4 + i];
        if (c->known && !c->flight && !is_shown(w, lane, c, false))
            fault(w, lane < 0 ? 0 : lane,
                  "%s byte %lu of shared memory, which thread %d wrote, without a fence.proxy.async of that "
                  "thread in between",
                  who, (unsigned long)(address + 4 * i) % SHARED_SPAN, c->writer);
    }
}

void shared_copied(const Block *b, uint64_t address, const void *from, int mbarrier, uint32_t phase) {
    memcpy(b->shared + address, from, 16);
    for (unsigned i = 0; i < 4 && ptx_settings.checked; i++)
        m.cells[address / 4 + i] = (SharedCell){
            .write_time = phase, .writer = (uint16_t)(BY_COPY | mbarrier), .write_bytes = 15, .known = 15};
}

bool shared_multiplied(Warp *w, uint64_t address) {
    const int g = w->number / 4;
    bool known = true;
    for (unsigned i = 0; i < 4 && ptx_settings.checked; i++) {
        SharedCell *c = &m.cells[address / 4 + i];
        unsigned long at = (address + 4 * i) % SHARED_SPAN;
        if (c->flight || c->mbarrier)
            fault(w, 0, "multiplies byte %lu of shared memory, %s", at,
                  c->flight ? "where a copy is still on its way" : "which is an mbarrier's");
        known &= c->known == 15;
        if (c->known && !write_is_known(w, -1, c))
            fault(w, 0,
                  "race: multiplies byte %lu of shared memory, which %s %d wrote; nothing orders the two", at,
                  c->writer & BY_COPY ? "a bulk copy to mbarrier" : "thread", c->writer & ~BY_COPY);
        c->groups |= (uint8_t)(1u << g);
        m.groups[g][c - m.cells] = w->tensor.closed + 1;
    }
    shared_check_shown(w, -1, address, "multiplies");
    return known;
}
