// Instructions that touch memory: each reaches its bytes by memory.c, which checks that it may, and counts
// what it costs: sectors of 32 bytes, passes of the banks of shared memory, latencies by the space and by
// what L1 has.
#include "tests/ptx/memory.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 128 };
static const uint64_t SHARED_WINDOW = (uint64_t)1 << 56; // generic addresses of shared memory begin here

// --- counts

// Bytes of different addresses, and the sectors they lie in.
static unsigned count_sectors(const uint64_t *address, uint32_t lanes, unsigned bytes, uint64_t *sectors,
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
    return count;
}

// Passes of the 32 banks: lanes of wide accesses go in groups of 128 bytes.
void count_waves(const uint64_t *address, uint32_t lanes, unsigned bytes) {
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
    for (int l = 0; l < LANES && ptx_settings.timed; l++)
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

static unsigned char *reach(Warp *w, const Instruction *o, int lane, uint64_t address, unsigned bytes,
                            bool write, bool atomic) {
    const Kernel *k = w->block->kernel;
    if (o->space == SPACE_LOCAL) {
        if (address + bytes > k->local_bytes)
            fault(w, lane, "%lu is outside of local memory", (unsigned long)address);
        return w->local + (size_t)lane * k->local_bytes + address;
    }
    if (o->space == SPACE_SHARED) return memory_touch_shared(w, lane, address, bytes, write, atomic, false);
    if (o->space == SPACE_GENERIC && is_shared_window(address))
        return memory_touch_shared(w, lane, address - SHARED_WINDOW, bytes, write, atomic, false);
    return memory_touch(w, lane, address, bytes, write, atomic, o->access);
}

static void count_access(Warp *w, const Instruction *o, const uint64_t *address, uint32_t lanes, bool write) {
    unsigned bytes = (unsigned)o->bytes * o->width;
    uint64_t offset[LANES];
    uint32_t shared = 0;
    if (o->space == SPACE_LOCAL) {
        machine_latency(L1_CYCLES);
        return;
    }
    for (int l = 0; l < LANES; l++) {
        bool window = o->space == SPACE_GENERIC && is_shared_window(address[l]);
        offset[l] = window ? address[l] - SHARED_WINDOW : address[l];
        shared |= (uint32_t)(window || o->space == SPACE_SHARED) << l;
    }
    if (lanes & shared) count_waves(offset, lanes & shared, bytes);
    if (lanes & ~shared) count_global(w, address, lanes & ~shared, bytes, write, o->access);
}

static uint64_t extended(uint64_t value, unsigned bytes, bool sign) {
    unsigned shift = 64 - 8 * bytes;
    return sign ? (uint64_t)((int64_t)(value << shift) >> shift) : value << shift >> shift;
}

static void put_result(Warp *w, const Operand *d, int lane, const unsigned char *from, unsigned bytes,
                       bool sign) {
    uint64_t value = 0;
    memcpy(&value, from, bytes);
    value = extended(value, bytes, sign);
    if (d->bits == 64) ((uint64_t *)operand_at(w, d))[lane] = value;
    else ((uint32_t *)operand_at(w, d))[lane] = (uint32_t)value;
}

void run_load(Warp *w, const Instruction *o, uint32_t lanes) {
    uint64_t address[LANES];
    addresses(w, &o->s[0], o->offset, address);
    for (int l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        const unsigned char *from = reach(w, o, l, address[l], (unsigned)o->bytes * o->width, false, false);
        for (unsigned i = 0; i < o->width; i++)
            put_result(w, &o->d[i], l, from + i * o->bytes, o->bytes, o->negated);
    }
    count_access(w, o, address, lanes, false);
}

void run_store(Warp *w, const Instruction *o, uint32_t lanes) {
    uint64_t address[LANES];
    addresses(w, &o->s[0], o->offset, address);
    for (int l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        unsigned char *to = reach(w, o, l, address[l], (unsigned)o->bytes * o->width, true, false);
        for (unsigned i = 0; i < o->width; i++) {
            uint64_t value = operand_lane(w, &o->s[1 + i], l);
            memcpy(to + i * o->bytes, &value, o->bytes);
        }
    }
    count_access(w, o, address, lanes, true);
}

void run_load_param(Warp *w, const Instruction *o, uint32_t lanes) {
    const Block *b = w->block;
    uint64_t address[LANES];
    addresses(w, &o->s[0], o->offset, address);
    for (int l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        if (address[l] + (unsigned)o->bytes * o->width > b->kernel->param_bytes)
            fault(w, l, "reads beyond the parameters");
        for (unsigned i = 0; i < o->width; i++)
            put_result(w, &o->d[i], l, b->launch->params + address[l] + i * o->bytes, o->bytes, o->negated);
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
    uint64_t address[LANES];
    bool global = false;
    addresses(w, &o->s[0], o->offset, address);
    for (int l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        unsigned char *at = reach(w, o, l, address[l], o->bytes, true, true);
        uint64_t old = 0, swap = o->sources > 2 ? operand_lane(w, &o->s[2], l) : 0,
                 value = operand_lane(w, &o->s[1], l);
        memcpy(&old, at, o->bytes);
        put_result(w, &o->d[0], l, at, o->bytes, false);
        value = combined(o->atom, old, value, swap);
        memcpy(at, &value, o->bytes);
        if (o->space == SPACE_SHARED || is_shared_window(address[l])) continue;
        memory_pass_on(w, address[l]);
        global = true;
    }
    machine_counters()->atomics += (uint64_t)__builtin_popcount(lanes);
    machine_latency(global ? ATOMIC_CYCLES : SHARED_ATOMIC_CYCLES);
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

void run_copy(Warp *w, const Instruction *o, uint32_t lanes) {
    uint64_t to[LANES], from[LANES];
    uint32_t reads = 0;
    addresses(w, &o->s[0], o->offset, to);
    addresses(w, &o->s[1], o->more, from);
    for (int l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        uint64_t bytes = operand_lane(w, &o->s[2], l);
        if (bytes > 16) fault(w, l, "a copy of %lu bytes", (unsigned long)bytes);
        if (from[l] % 16) fault(w, l, "copies from %#lx, which is not aligned", (unsigned long)from[l]);
        if (w->copy_count == w->copy_space) {
            w->copy_space = w->copy_space ? 2 * w->copy_space : 256;
            w->copies = realloc(w->copies, w->copy_space * sizeof *w->copies);
            if (!w->copies) machine_fault("no memory");
        }
        CopyInFlight *c = &w->copies[w->copy_count++];
        *c = (CopyInFlight){.shared = (uint32_t)to[l],
                            .bytes = (uint32_t)bytes,
                            .lane = (uint8_t)l,
                            .group = w->closed[l],
                            .trips = w->now.trips + 1,
                            .ready = w->now.clock + L2_CYCLES};
        if (bytes) {
            memcpy(c->data, memory_touch(w, l, from[l], 16, false, false, ACCESS_WEAK), bytes);
            reads |= 1u << l;
        }
        unsigned char *place = memory_touch_shared(w, l, to[l], 16, true, false, false);
        memset(place, 0xff, 16);
        memory_in_flight(w->block, to[l], true);
    }
    Counters *c = machine_counters();
    unsigned sectors = count_sectors(from, reads, 16, &c->copy_sectors, &c->copy_ideal);
    if (w->block->launch->early && !w->waited) c->early_sectors += sectors;
    count_waves(to, lanes, 16);
}

void run_copy_commit(Warp *w, const Instruction *o, uint32_t lanes) {
    (void)o;
    for (int l = 0; l < LANES; l++) w->closed[l] += lanes >> l & 1;
}

void run_copy_wait(Warp *w, const Instruction *o, uint32_t lanes) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < w->copy_count; i++) {
        CopyInFlight *c = &w->copies[i];
        if (!(lanes >> c->lane & 1) || c->group + (uint32_t)o->more >= w->closed[c->lane]) {
            w->copies[left++] = *c;
            continue;
        }
        memory_in_flight(w->block, c->shared, false);
        memcpy(memory_touch_shared(w, c->lane, c->shared, 16, true, false, false), c->data, 16);
        if (c->ready > w->now.clock) w->now.clock = c->ready;
        if (c->trips > w->now.trips) w->now.trips = c->trips;
    }
    w->copy_count = left;
}
