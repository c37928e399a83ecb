// Memory of the machine, and what is known of each word of it.
//
// Device memory is mapped twice: where programs hold pointers to it nobody can touch it, as on a real
// machine; the machine itself reaches it through the other mapping. Addresses are never given out again, so
// what was given back is told from what is in use.
//
// A word of global memory has a cell (of shared memory: shared.c): who wrote it last, who read it, and when.
// An access is a race if it and the one before it, one of them a write, are not ordered. What orders two of
// them:
//
//      threads of a block      past.h
//      blocks of a launch      write; fence; atomic of one block, atomic of the same word; fence; read of the
//      other.
//                              A write without its fence, and a read without its own, are told by those
//                              names.
//      launches                their order in the stream; before griddepcontrol.wait an early launch has none
//      streams                 order.h, by the allocation
#include "tests/ptx/memory.h"
#include "tests/simt/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t ARENA = (size_t)1 << 36;
enum { GUARD = 512, NOBODY = 0xffff, SEVERAL = 0xfffe, OF_WARP = 0x8000 };

typedef struct Cell {
    uint32_t wrote, writer, write_epoch, write_time, write_fences; // launch, block, ..
    uint32_t read, reader, read_epoch, read_time;
    uint16_t write_thread, read_thread;
    uint8_t write_bytes; // a bit a byte
    bool atomic;
} Cell;

typedef struct Allocation {
    size_t at, bytes;
    uint32_t owner;
    bool gone;
    History history;
} Allocation;

// What an atomic of a word has seen of other blocks' fences.
typedef struct Release {
    uint64_t address;
    uint32_t block, fences;
} Release;

static struct {
    unsigned char *public, *reach, *known; // known: a bit a byte
    Cell *cells;                           // one for 4 bytes
    Allocation *list;
    size_t count, used, live, last; // last: found last
    Release *releases;              // of this launch
    size_t release_count, release_space;
    Fence **fences; // by block
    uint32_t *fence_count, blocks;
} m;

static void *reserve(size_t bytes, int fd, int protection) {
    void *p = mmap(NULL, bytes, protection,
                   fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED) machine_fault("cannot reserve memory: %s", strerror(errno));
    return p;
}

static void open_arena(void) {
    if (m.reach) return;
    int fd = memfd_create("device", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)ARENA))
        machine_fault("cannot make device memory: %s", strerror(errno));
    m.public = reserve(ARENA, fd, PROT_NONE);
    m.reach = reserve(ARENA, fd, PROT_READ | PROT_WRITE);
    m.known = reserve(ARENA / 8, -1, PROT_READ | PROT_WRITE);
    m.cells = reserve(ARENA / 4 * sizeof(Cell), -1, PROT_READ | PROT_WRITE);
    m.used = 4096;
    close(fd);
}

void memory_take(void **device, size_t bytes, uint32_t owner) {
    open_arena();
    if (bytes > ARENA - m.used - 4 * GUARD) machine_fault("device memory is used up");
    if (!(m.count & (m.count - 1))) {
        m.list = realloc(m.list, (m.count ? 2 * m.count : 1) * sizeof *m.list);
        if (!m.list) machine_fault("no memory");
    }
    m.list[m.count++] = (Allocation){.at = m.used, .bytes = bytes, .owner = owner};
    *device = m.public + m.used;
    m.used += (bytes + 2 * GUARD - 1) / GUARD * GUARD;
    if (owner != TABLE_OWNER) m.live += bytes;
}

static Allocation *holder(uint64_t address) {
    size_t at = address - (uint64_t)(uintptr_t)m.public;
    if (!m.count || at >= m.used) return NULL;
    Allocation *a = &m.list[m.last];
    if (at >= a->at && at < a->at + a->bytes) return a;
    size_t low = 0, high = m.count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (m.list[middle].at <= at) low = middle;
        else high = middle;
    }
    a = &m.list[low];
    if (at < a->at || at >= a->at + a->bytes) return NULL;
    m.last = low;
    return a;
}

bool memory_is_device(const void *p) {
    uint64_t at = (uint64_t)(uintptr_t)p - (uint64_t)(uintptr_t)m.public;
    return m.public && at < ARENA;
}
uint32_t memory_owner(const void *p) {
    const Allocation *a = holder((uint64_t)(uintptr_t)p);
    return a ? a->owner : 0;
}
size_t memory_live_bytes(void) { return m.live; }
size_t memory_live_of(uint32_t owner) {
    size_t bytes = 0;
    for (size_t i = 0; i < m.count; i++)
        if (m.list[i].owner == owner && !m.list[i].gone) bytes += m.list[i].bytes;
    return bytes;
}

bool memory_give(void *device) {
    Allocation *a = holder((uint64_t)(uintptr_t)device);
    if (!a || a->gone || m.public + a->at != device) return false;
    size_t from = (a->at + 4095) / 4096 * 4096, to = (a->at + a->bytes) / 4096 * 4096;
    a->gone = true;
    m.live -= a->bytes;
    if (to > from) {
        madvise(m.reach + from, to - from, MADV_REMOVE);
        madvise((void *)&m.cells[from / 4], (to - from) / 4 * sizeof(Cell) / 4096 * 4096, MADV_DONTNEED);
    }
    return true;
}

// Why an access may not be, or NULL.
static const char *trouble(uint64_t address, size_t bytes) {
    const Allocation *a = holder(address);
    if (!a) return "is outside of every allocation";
    if (a->gone) return "is in memory that was given back";
    if (address + bytes > (uint64_t)(uintptr_t)m.public + a->at + a->bytes)
        return "reaches beyond its allocation";
    return NULL;
}

void *memory_reach(const void *p, size_t bytes, bool write, const char *who) {
    const char *why = trouble((uint64_t)(uintptr_t)p, bytes);
    if (bytes && why) machine_fault("%s: %zu bytes at %p: this %s", who, bytes, p, why);
    if (bytes && ptx_settings.checked) order_touch(&m.list[m.last].history, write);
    return m.reach + ((const unsigned char *)p - m.public);
}

static bool is_known(size_t at) { return m.known[at / 8] >> at % 8 & 1; }
static void set_known(size_t at, size_t bytes, bool known) {
    size_t i = 0;
    for (; i < bytes && (at + i) % 8; i++)
        m.known[(at + i) / 8] = (unsigned char)((m.known[(at + i) / 8] & ~(1u << (at + i) % 8)) |
                                                (unsigned)known << (at + i) % 8);
    size_t whole = (bytes - i) / 8;
    memset(m.known + (at + i) / 8, known ? 255 : 0, whole);
    for (i += whole * 8; i < bytes; i++)
        m.known[(at + i) / 8] = (unsigned char)((m.known[(at + i) / 8] & ~(1u << (at + i) % 8)) |
                                                (unsigned)known << (at + i) % 8);
}

// Of 1 to 16 bytes, aligned to their number.
static unsigned known_mask(size_t at, unsigned bytes) { return ((1u << bytes) - 1) << at % 16; }
static bool all_known(size_t at, unsigned bytes) {
    unsigned mask = known_mask(at, bytes);
    return (((uint16_t *)(void *)m.known)[at / 16] & mask) == mask;
}
static void know_all(size_t at, unsigned bytes) {
    uint16_t *known = (uint16_t *)(void *)m.known + at / 16;
    *known = (uint16_t)(*known | known_mask(at, bytes));
}

static size_t place(const void *p) { return (size_t)((const unsigned char *)p - m.public); }

void memory_written_by_host(const void *device, size_t bytes) { set_known(place(device), bytes, true); }
void memory_copied(const void *to, const void *from, size_t bytes) {
    size_t at = place(to), of = place(from), i = at % 8 || of % 8 ? 0 : bytes / 8 * 8;
    memcpy(m.known + at / 8, m.known + of / 8, i / 8);
    for (; i < bytes; i++) set_known(at + i, 1, is_known(of + i));
}

// --- launches and blocks

void memory_begin_launch(const Launch *l, uint32_t blocks) {
    (void)l;
    for (uint32_t i = 0; i < m.blocks; i++) free(m.fences[i]);
    free(m.fences), free(m.fence_count);
    m.fences = calloc(blocks, sizeof *m.fences);
    m.fence_count = calloc(blocks, sizeof *m.fence_count);
    if (!m.fences || !m.fence_count) machine_fault("no memory");
    m.blocks = blocks;
    m.release_count = 0;
}
void memory_begin_block(Block *b) {
    shared_begin_block(b);
    b->lines = ptx_settings.counted ? calloc(LINES, sizeof *b->lines) : NULL;
    if (ptx_settings.counted && !b->lines) machine_fault("no memory");
}
void memory_end_block(Block *b) {
    free(b->lines);
    free(b->acquired);
}

void memory_leave(const Warp *w, uint32_t lanes) {
    const Launch *l = w->block->launch;
    for (uint32_t i = 0; i < w->copy_count; i++)
        if (lanes >> w->copies[i].lane & 1) fault(w, w->copies[i].lane, "leaves with copies in flight");
    warpgroups_leave(w);
    if (ptx_settings.checked && l->early && (lanes & ~w->waited))
        fault(w, __builtin_ctz(lanes & ~w->waited), "leaves an early launch without having waited");
}

// --- who may touch what

static uint16_t thread_of(const Warp *w, int lane) { return (uint16_t)(w->number * LANES + lane); }
static int warp_of(uint16_t thread) { return thread & OF_WARP ? thread & ~OF_WARP : thread / LANES; }
static uint16_t readers(uint16_t before, uint16_t thread) {
    if (before == thread || before == SEVERAL) return before;
    return warp_of(before) == warp_of(thread) ? (uint16_t)(OF_WARP | warp_of(thread)) : (uint16_t)SEVERAL;
}

// Whether an access of this block, by `other` at that epoch and time, is in order before one of the warp's
// lane.
static bool ordered(const Warp *w, int lane, uint16_t other, uint32_t epoch, uint32_t time) {
    if (epoch != w->block->epoch) return true;
    return other != SEVERAL &&
           warp_knows(w, lane, warp_of(other), time, other & OF_WARP ? ALL : 1u << other % LANES);
}

// Whether what another block did, when it had so many fences, is known here; else what is missing.
static const char *missing(const Warp *w, const Cell *c, bool strong) {
    const Block *b = w->block;
    static const char *const reasons[] = {"no atomic that the two share came between",
                                          "the writer had no fence before its atomic (missing release)",
                                          "no fence of its own after the atomic (missing acquire)",
                                          "no barrier after the fence of another warp"};
    int reached = 0;
    for (uint32_t i = 0; i < b->acquired_count; i++) {
        const Acquired *a = &b->acquired[i];
        bool released = false;
        if (a->block != c->writer) continue;
        for (uint32_t f = c->write_fences; f < a->fences && !released; f++) {
            const Fence *fence = &m.fences[c->writer][f];
            released = fence->warp == (uint32_t)warp_of(c->write_thread) || fence->epoch > c->write_epoch;
        }
        int here = !released ? 1 : a->fenced ? 3 : 2;
        if (released && (strong || a->fenced >> w->number & 1 || (a->fenced && a->fenced_epoch != b->epoch)))
            return NULL;
        if (here > reached) reached = here;
    }
    return reasons[reached];
}

static void check_before_wait(const Touch *t, int lane, const Cell *c) {
    const Warp *w = t->w;
    const Launch *l = w->block->launch;
    uint64_t address = t->address[lane];
    if (!l->early || w->waited >> lane & 1) return;
    if (t->write)
        fault(w, lane, "writes %#lx before it has waited for the launches in front", (unsigned long)address);
    if (c->wrote >= l->overlap && c->wrote != l->number)
        fault(w, lane, "reads %#lx before it has waited for the launch that writes it",
              (unsigned long)address);
}

static void check_cell(const Touch *t, int lane, const Cell *c, uint8_t part) {
    const Warp *w = t->w;
    const Block *b = w->block;
    uint64_t address = t->address[lane];
    bool write = t->write, atomic = t->atomic;
    uint32_t launch = b->launch->number;
    check_before_wait(t, lane, c);
    if (c->wrote == launch && c->write_bytes & part && !(atomic && c->atomic)) {
        if (t->access == ACCESS_CONSTANT)
            fault(w, lane, "reads %#lx as constant (.nc), which this launch writes", (unsigned long)address);
        if (c->writer == b->number) {
            if (!ordered(w, lane, c->write_thread, c->write_epoch, c->write_time))
                fault(w, lane, "race: %s %#lx, which thread %d wrote; nothing orders the two",
                      write ? "writes" : "reads", (unsigned long)address, c->write_thread);
        } else {
            const char *why = missing(w, c, t->access == ACCESS_STRONG);
            if (why)
                fault(w, lane, "race: %s %#lx, which block %u wrote: %s", write ? "writes" : "reads",
                      (unsigned long)address, c->writer, why);
        }
    }
    if (write && c->read == launch && !atomic) {
        if (c->reader != b->number) {
            // Somebody else may still read. In order only if that block's fences are known here.
            Cell as_write = *c;
            as_write.writer = c->reader, as_write.write_epoch = c->read_epoch, as_write.write_fences = 0;
            as_write.write_thread = c->read_thread == SEVERAL ? 0 : c->read_thread;
            if (c->reader == NOBODY || missing(w, &as_write, true))
                fault(w, lane, "race: writes %#lx, which another block reads in this launch",
                      (unsigned long)address);
        } else if (!ordered(w, lane, c->read_thread, c->read_epoch, c->read_time))
            fault(w, lane, "race: writes %#lx, which another thread reads; nothing orders the two",
                  (unsigned long)address);
    }
}

static void note_write(const Touch *t, uint16_t thread, Cell *c, uint8_t part) {
    const Block *b = t->w->block;
    uint32_t launch = b->launch->number;
    bool same = c->wrote == launch && c->writer == b->number && c->write_thread == thread &&
                c->write_epoch == b->epoch;
    c->write_bytes = same ? (uint8_t)(c->write_bytes | part) : part;
    c->wrote = launch, c->writer = b->number, c->write_epoch = b->epoch, c->write_time = t->w->time;
    c->write_fences = m.fence_count[b->number];
    c->write_thread = thread, c->atomic = t->atomic;
}
static void note_read(const Touch *t, uint16_t thread, Cell *c) {
    const Block *b = t->w->block;
    uint32_t launch = b->launch->number;
    bool here = c->read == launch && c->read_epoch == b->epoch;
    c->read_thread = here ? readers(c->read_thread, thread) : thread;
    c->reader = c->read == launch && c->reader != b->number ? NOBODY : b->number;
    c->read = launch, c->read_epoch = b->epoch, c->read_time = t->w->time;
}

// The allocation that has the bytes, if the lane may touch it.
static Allocation *allocation_of(const Touch *t, int lane) {
    const Warp *w = t->w;
    uint64_t address = t->address[lane];
    const char *why = trouble(address, t->bytes), *does = t->write ? "writes" : "reads";
    if (why) fault(w, lane, "%s %u bytes at %#lx: this %s", does, t->bytes, (unsigned long)address, why);
    Allocation *a = &m.list[m.last];
    if (a->owner != w->block->launch->device && a->owner != TABLE_OWNER)
        fault(w, lane, "touches memory of device %u on device %u", a->owner, w->block->launch->device);
    if (ptx_settings.checked) order_touch(&a->history, t->write);
    return a;
}

// The part of a word that an access has, a bit a byte.
static uint8_t part_of(const Touch *t, uint64_t address) {
    return t->bytes >= 4 ? 15 : (uint8_t)(((1u << t->bytes) - 1) << address % 4);
}

static void check_lane(const Touch *t, int lane, size_t at) {
    const Launch *l = t->w->block->launch;
    uint16_t thread = thread_of(t->w, lane);
    uint8_t part = part_of(t, at);
    bool early = l->early && !(t->w->waited >> lane & 1);
    if (!t->write || t->atomic)
        if (!all_known(at, t->bytes))
            fault(t->w, lane, "reads %u bytes at %#lx, some of which nobody has written", t->bytes,
                  (unsigned long)t->address[lane]);
    for (Cell *c = &m.cells[at / 4], *end = &m.cells[(at + t->bytes + 3) / 4]; c < end; c++) {
        bool now = c->wrote == l->number || (t->write && c->read == l->number);
        if (now || early) check_cell(t, lane, c, part);
        if (t->write) note_write(t, thread, c, part);
        else note_read(t, thread, c);
    }
    if (t->write) know_all(at, t->bytes);
}

void memory_touch(Touch *t, uint32_t lanes) {
    const uint64_t base = (uint64_t)(uintptr_t)m.public;
    const Allocation *a = NULL;
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        size_t at = t->address[lane] - base;
        if (!a || at < a->at || at + t->bytes > a->at + a->bytes) a = allocation_of(t, lane);
        if (at % t->bytes)
            fault(t->w, lane, "%s %u bytes at %#lx, which is not aligned", t->write ? "writes" : "reads",
                  t->bytes, (unsigned long)t->address[lane]);
        if (ptx_settings.checked) check_lane(t, lane, at);
        t->at[lane] = m.reach + at;
    }
}

static size_t prefetched;
size_t simt_prefetched(void) { return prefetched; }
void memory_prefetch(Warp *w, int lane, uint64_t address, uint64_t bytes) {
    const char *why = trouble(address, bytes);
    prefetched += bytes;
    if (ptx_settings.counted) machine_counters()->prefetched += bytes;
    if (why)
        fault(w, lane, "prefetches %lu bytes at %#lx: this %s", (unsigned long)bytes, (unsigned long)address,
              why);
}

// --- releases and acquires

void memory_pass_on(Warp *w, uint64_t address) {
    Block *b = w->block;
    uint32_t mine = 0;
    for (size_t i = 0; i < m.release_count; i++) {
        Release *r = &m.releases[i];
        if (r->address != address || r->block == b->number) continue;
        if (b->acquired_count == b->acquired_space) {
            b->acquired_space = b->acquired_space ? 2 * b->acquired_space : 16;
            b->acquired = realloc(b->acquired, b->acquired_space * sizeof *b->acquired);
            if (!b->acquired) machine_fault("no memory");
        }
        b->acquired[b->acquired_count++] =
            (Acquired){r->block, r->fences, (uint32_t)w->number, b->epoch, 0, 0};
    }
    for (uint32_t f = 0; f < m.fence_count[b->number]; f++) {
        const Fence *fence = &m.fences[b->number][f];
        if (fence->warp != (uint32_t)w->number && fence->epoch == b->epoch) break;
        mine = f + 1;
    }
    if (m.release_count == m.release_space) {
        m.release_space = m.release_space ? 2 * m.release_space : 256;
        m.releases = realloc(m.releases, m.release_space * sizeof *m.releases);
        if (!m.releases) machine_fault("no memory");
    }
    m.releases[m.release_count++] = (Release){address, b->number, mine};
}

void memory_fence(Warp *w) {
    Block *b = w->block;
    uint32_t n = m.fence_count[b->number];
    if (!(n & (n - 1))) {
        m.fences[b->number] = realloc(m.fences[b->number], (n ? 2 * n : 1) * sizeof(Fence));
        if (!m.fences[b->number]) machine_fault("no memory");
    }
    m.fences[b->number][m.fence_count[b->number]++] = (Fence){(uint32_t)w->number, b->epoch};
    for (uint32_t i = 0; i < b->acquired_count; i++) {
        Acquired *a = &b->acquired[i];
        if (a->warp != (uint32_t)w->number && a->epoch == b->epoch) continue; // not ordered behind the atomic
        if (!a->fenced) a->fenced_epoch = b->epoch;
        a->fenced |= 1u << w->number;
    }
}
