// Instructions that touch memory: each reaches its bytes by memory.c, which checks that it may, and counts
// what it costs: sectors of 32 bytes, passes of the banks of shared memory, latencies by the space and by
// what L1 has.
#include "tests/ptx/memory.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 128, SECTOR = 32 };                        // bytes
static const uint64_t SHARED_WINDOW = (uint64_t)1 << 56; // generic addresses of shared memory begin here

// --- counts

// Bytes of different addresses, and the sectors they lie in.
static void count_sectors(const uint64_t *address, uint32_t lanes, unsigned bytes, uint64_t *sectors,
                          uint64_t *ideal) {
    uint64_t seen[LANES], sector[2 * LANES];
    unsigned different = 0, count = 0;
    for (int l = 0; l < LANES; l++) {
        unsigned i = 0;
        if (!(lanes >> l & 1)) continue;
        while (i < different && seen[different - 1 - i] != address[l]) i++; // the last is the likeliest
        if (i < different) continue;
        seen[different++] = address[l];
        for (uint64_t s = address[l] / SECTOR; s <= (address[l] + bytes - 1) / SECTOR; s++) {
            for (i = 0; i < count && sector[count - 1 - i] != s; i++) {}
            if (i == count && count < 2 * LANES) sector[count++] = s;
        }
    }
    *sectors += count;
    *ideal += (different * bytes + SECTOR - 1) / SECTOR;
}

// Passes of the 32 banks: lanes of wide accesses go in groups of 128 bytes.
void count_waves(const uint64_t *address, uint32_t lanes, unsigned bytes) {
    if (!ptx_settings.counted) return;
    unsigned group = bytes <= 4 ? 32 : 128 / bytes, words = bytes <= 4 ? 1 : bytes / 4, waves = 0, ideal = 0;
    for (unsigned first = 0; first < LANES; first += group) {
        uint64_t seen[LANES][8];
        unsigned in_bank[LANES] = {0}, different = 0, most = 0;
        for (unsigned l = first; l < first + group; l++)
            for (unsigned k = 0; lanes >> l & 1 && k < words; k++) {
                uint64_t word = address[l] / 4 + k;
                unsigned bank = word % LANES, i = 0;
                while (i < in_bank[bank] && seen[bank][i % 8] != word) i++;
                if (i < in_bank[bank]) continue;
                seen[bank][in_bank[bank]++ % 8] = word;
                different++;
                if (in_bank[bank] > most) most = in_bank[bank];
            }
        waves += most;
        ideal += (different + LANES - 1) / LANES;
    }
    machine_counters()->shared_waves += waves;
    machine_counters()->shared_ideal += ideal;
    machine_latency(SHARED_CYCLES + WAVE_CYCLES * (int)waves);
}

static bool in_l1(Block *b, uint64_t address) {
    uint64_t line = address / LINE + 1;
    for (uint64_t i = line * 0x9e3779b97f4a7c15u >> 52;; i = (i + 1) % LINES) {
        if (b->lines[i] == line) return true;
        if (b->lines[i]) continue;
        if (b->line_count < LINES / 2) b->lines[i] = line, b->line_count++;
        return false;
    }
}
static void forget_l1(Block *b) {
    if (!b->lines) return;
    memset(b->lines, 0, LINES * sizeof *b->lines);
    b->line_count = 0;
}

static void count_global(Warp *w, const uint64_t *address, uint32_t lanes, unsigned bytes, bool write,
                         uint8_t access) {
    Counters *c = machine_counters();
    bool hit = access != ACCESS_STRONG;
    if (write) {
        count_sectors(address, lanes, bytes, &c->store_sectors, &c->store_ideal);
        return;
    }
    count_sectors(address, lanes, bytes, &c->load_sectors, &c->load_ideal);
    for (int l = 0; l < LANES; l++)
        if (lanes >> l & 1 && !in_l1(w->block, address[l])) hit = false;
    machine_latency(hit ? L1_CYCLES : L2_CYCLES);
}

// --- instructions

static void addresses(const Warp *w, const Operand *base, int64_t offset, uint64_t out[LANES]) {
    if (base->bits == 64)
        for (int l = 0; l < LANES; l++)
            out[l] = ((const uint64_t *)operand_at(w, base))[l] + (uint64_t)offset;
    else
        for (int l = 0; l < LANES; l++)
            out[l] = ((const uint32_t *)operand_at(w, base))[l] + (uint64_t)offset;
}

static bool is_shared_window(uint64_t address) { return address >> 48 == SHARED_WINDOW >> 48; }

static void touch_local(Touch *t, uint32_t lanes) {
    const size_t has = t->w->block->kernel->local_bytes;
    for (int l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        if (t->address[l] + t->bytes > has)
            fault(t->w, l, "%lu is outside of local memory", (unsigned long)t->address[l]);
        t->at[l] = t->w->local + (size_t)l * has + t->address[l];
    }
}

// Generic addresses in the window of shared memory become addresses of that; these lanes of them.
static uint32_t out_of_window(uint64_t address[LANES], uint32_t lanes) {
    uint32_t shared = 0;
    for (int l = 0; l < LANES; l++) shared |= (uint32_t)is_shared_window(address[l]) << l;
    shared &= lanes;
    for (int l = 0; l < LANES && shared; l++)
        if (shared >> l & 1) address[l] -= SHARED_WINDOW;
    return shared;
}

static void places(Warp *w, uint64_t address[LANES], uint32_t lanes, bool far) {
    for (uint32_t left = lanes; left; left &= left - 1) {
        int l = __builtin_ctz(left);
        address[l] = shared_place(w, l, address[l], far);
    }
}

// Fills a touch of what the instruction addresses: the lanes of it that touch shared memory.
static uint32_t reach(Touch *t, Warp *w, const Instruction *o, uint32_t lanes, bool write, bool atomic) {
    t->w = w, t->bytes = (unsigned)o->bytes * o->width;
    t->write = write, t->atomic = atomic, t->unwritten = false, t->access = o->access;
    addresses(w, &o->s[0], o->offset, t->address);
    if (o->space == SPACE_LOCAL) return touch_local(t, lanes), 0;
    uint32_t shared = o->space == SPACE_SHARED    ? lanes
                      : o->space == SPACE_GENERIC ? out_of_window(t->address, lanes)
                                                  : 0;
    places(w, t->address, shared, o->far || o->space == SPACE_GENERIC);
    if (shared) memory_touch_shared(t, shared);
    if (lanes & ~shared) memory_touch(t, lanes & ~shared);
    return shared;
}

static void count_access(const Touch *t, const Instruction *o, uint32_t lanes, uint32_t shared) {
    if (!ptx_settings.counted) return;
    if (o->space == SPACE_LOCAL) {
        machine_latency(L1_CYCLES);
        return;
    }
    if (shared) count_waves(t->address, shared, t->bytes);
    if (lanes & ~shared) count_global(t->w, t->address, lanes & ~shared, t->bytes, t->write, o->access);
}

// --- what is loaded and stored

static uint64_t extended(uint64_t value, unsigned bytes, bool sign) {
    unsigned shift = 64 - 8 * bytes;
    return sign ? (uint64_t)((int64_t)(value << shift) >> shift) : value << shift >> shift;
}

static uint64_t loaded(const unsigned char *from, unsigned bytes, bool sign) {
    uint64_t value = 0;
    memcpy(&value, from, bytes);
    return extended(value, bytes, sign);
}

static void put_result(Warp *w, const Operand *d, int lane, uint64_t value) {
    if (d->bits == 64) ((uint64_t *)operand_at(w, d))[lane] = value;
    else ((uint32_t *)operand_at(w, d))[lane] = (uint32_t)value;
}

// A register of these lanes, from `skip` bytes behind their places. Nearly all are words.
static void put_results(Warp *w, const Instruction *o, int i, uint32_t lanes,
                        unsigned char *const at[LANES]) {
    const Operand *d = &o->d[i];
    size_t skip = (size_t)i * o->bytes;
    if (lanes == ALL && o->bytes == 4 && d->bits != 64) {
        uint32_t *to = operand_at(w, d);
        for (int l = 0; l < LANES; l++) memcpy(&to[l], at[l] + skip, 4);
        return;
    }
    for (uint32_t left = lanes; left; left &= left - 1) {
        int l = __builtin_ctz(left);
        put_result(w, d, l, loaded(at[l] + skip, o->bytes, o->negated));
    }
}

void run_load(Warp *w, const Instruction *o, uint32_t lanes) {
    Touch t;
    uint32_t shared = reach(&t, w, o, lanes, false, false);
    for (int i = 0; i < o->width; i++) put_results(w, o, i, lanes, t.at);
    for (uint32_t left = shared; left; left &= left - 1)
        for (int i = 0, l = __builtin_ctz(left); i < o->width; i++)
            if (shared_is_vague(t.address[l] + (uint64_t)(i * o->bytes), o->bytes))
                w->unknown[o->d[i].id] |= 1u << l;
    count_access(&t, o, lanes, shared);
}

void run_store(Warp *w, const Instruction *o, uint32_t lanes) {
    Touch t;
    uint32_t shared = reach(&t, w, o, lanes, true, false);
    for (int i = 0; i < o->width; i++)
        for (uint32_t left = lanes; left; left &= left - 1) {
            int l = __builtin_ctz(left);
            uint64_t value = operand_lane(w, &o->s[1 + i], l);
            memcpy(t.at[l] + i * o->bytes, &value, o->bytes);
            if (o->space == SPACE_SHARED && w->unknown[o->s[1 + i].id] >> l & 1)
                shared_forget(t.address[l] + (uint64_t)(i * o->bytes), o->bytes);
        }
    count_access(&t, o, lanes, shared);
}

static uint64_t parameter(const Warp *w, const Instruction *o, int i, int lane) {
    const Block *b = w->block;
    uint64_t at = operand_lane(w, &o->s[0], lane) + (uint64_t)o->offset;
    if (at + (unsigned)o->bytes * o->width > b->kernel->param_bytes)
        fault(w, lane, "reads beyond the parameters");
    return loaded(b->launch->params + at + (size_t)i * o->bytes, o->bytes, o->negated);
}
static void put_everywhere(Warp *w, const Operand *d, uint64_t value) {
    uint64_t *wide = operand_at(w, d);
    uint32_t *words = operand_at(w, d);
    if (d->bits == 64)
        for (int l = 0; l < LANES; l++) wide[l] = value;
    else
        for (int l = 0; l < LANES; l++) words[l] = (uint32_t)value;
}

// Nearly always of the whole warp, at an address that is a constant.
void run_load_param(Warp *w, const Instruction *o, uint32_t lanes) {
    for (int i = 0; i < o->width; i++)
        if (lanes == ALL && o->s[0].constant) put_everywhere(w, &o->d[i], parameter(w, o, i, 0));
        else
            for (uint32_t left = lanes; left; left &= left - 1) {
                int l = __builtin_ctz(left);
                put_result(w, &o->d[i], l, parameter(w, o, i, l));
            }
    machine_latency(PARAM_CYCLES);
}

static uint64_t combined(uint8_t atom, uint64_t old, uint64_t value, uint64_t swap) {
    switch (atom) {
    case ATOM_ADD: return old + value;
    case ATOM_MIN: return value < old ? value : old;
    case ATOM_MAX: return value > old ? value : old;
    case ATOM_EXCH: return value;
    default: return old == value ? swap : old;
    }
}

void run_fence(Warp *w, const Instruction *o, uint32_t lanes) {
    (void)o, (void)lanes;
    memory_fence(w);
    forget_l1(w->block);
}

void run_atomic(Warp *w, const Instruction *o, uint32_t lanes) {
    Touch t;
    uint32_t shared = reach(&t, w, o, lanes, true, true);
    for (int l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        uint64_t old = loaded(t.at[l], o->bytes, false), value = operand_lane(w, &o->s[1], l),
                 swap = o->sources > 2 ? operand_lane(w, &o->s[2], l) : 0;
        put_result(w, &o->d[0], l, old);
        value = combined(o->atom, old, value, swap);
        memcpy(t.at[l], &value, o->bytes);
        if (!(shared >> l & 1)) memory_pass_on(w, t.address[l]);
    }
    machine_latency(lanes & ~shared ? ATOMIC_CYCLES : SHARED_ATOMIC_CYCLES);
}

void run_shared_to_generic(Warp *w, const Instruction *o, uint32_t lanes) {
    uint64_t *d = operand_at(w, &o->d[0]);
    for (int l = 0; l < LANES; l++)
        if (lanes >> l & 1) d[l] = operand_lane(w, &o->s[0], l) + SHARED_WINDOW;
}
void run_generic_to_shared(Warp *w, const Instruction *o, uint32_t lanes) {
    uint64_t *d = operand_at(w, &o->d[0]);
    for (int l = 0; l < LANES; l++)
        if (lanes >> l & 1) d[l] = operand_lane(w, &o->s[0], l) - SHARED_WINDOW;
}

// --- asynchronous copies: the bytes leave at once, and arrive when their group is waited for

void copies_leave(Warp *w, uint64_t bytes) {
    w->flight += bytes;
    if (w->flight > w->most_flight) w->most_flight = w->flight;
}

static CopyInFlight *one_more_copy(Warp *w) {
    if (w->copy_count == w->copy_space) {
        w->copy_space = w->copy_space ? 2 * w->copy_space : 256;
        w->copies = realloc(w->copies, w->copy_space * sizeof *w->copies);
        if (!w->copies) machine_fault("no memory");
    }
    return &w->copies[w->copy_count++];
}

// Lanes whose copy has bytes of memory: some only fill with zeros.
static uint32_t copies_that_read(const Warp *w, const Instruction *o, uint32_t lanes, const uint64_t *from) {
    uint32_t reads = 0;
    for (int l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        uint64_t bytes = operand_lane(w, &o->s[2], l);
        if (bytes > 16) fault(w, l, "a copy of %lu bytes", (unsigned long)bytes);
        if (from[l] % 16) fault(w, l, "copies from %#lx, which is not aligned", (unsigned long)from[l]);
        reads |= (uint32_t)(bytes > 0) << l;
    }
    return reads;
}

void run_copy(Warp *w, const Instruction *o, uint32_t lanes) {
    Touch from = {.w = w, .bytes = 16}, to = {.w = w, .bytes = 16, .write = true};
    addresses(w, &o->s[0], o->offset, to.address);
    addresses(w, &o->s[1], o->more, from.address);
    places(w, to.address, lanes, false);
    uint32_t reads = copies_that_read(w, o, lanes, from.address);
    memory_touch(&from, reads);
    memory_touch_shared(&to, lanes);
    for (int l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        CopyInFlight *c = one_more_copy(w);
        *c = (CopyInFlight){.shared = (uint32_t)to.address[l],
                            .bytes = (uint32_t)operand_lane(w, &o->s[2], l),
                            .lane = (uint8_t)l,
                            .group = w->closed[l],
                            .ready = w->now + L2_CYCLES};
        if (c->bytes) memcpy(c->data, from.at[l], c->bytes);
        memset(to.at[l], 0xff, 16);
        shared_in_flight(to.address[l], true);
        copies_leave(w, c->bytes);
    }
    if (!ptx_settings.counted) return;
    Counters *c = machine_counters();
    count_sectors(from.address, reads, 16, &c->copy_sectors, &c->copy_ideal);
    count_waves(to.address, lanes, 16);
}

void run_copy_commit(Warp *w, const Instruction *o, uint32_t lanes) {
    (void)o;
    for (int l = 0; l < LANES; l++) w->closed[l] += lanes >> l & 1;
}

void run_copy_wait(Warp *w, const Instruction *o, uint32_t lanes) {
    Touch to = {.w = w, .bytes = 16, .write = true};
    uint32_t left = 0;
    for (uint32_t i = 0; i < w->copy_count; i++) {
        CopyInFlight *c = &w->copies[i];
        if (!(lanes >> c->lane & 1) || c->group + (uint32_t)o->more >= w->closed[c->lane]) {
            w->copies[left++] = *c;
            continue;
        }
        shared_in_flight(c->shared, false);
        w->flight -= c->bytes;
        to.address[c->lane] = c->shared;
        memory_touch_shared(&to, 1u << c->lane);
        memcpy(to.at[c->lane], c->data, 16);
        if (c->ready > w->now) w->now = c->ready;
    }
    w->copy_count = left;
}
