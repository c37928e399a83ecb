// wgmma: each warp of a warpgroup has 16 of the 64 rows. The sums are made at once, as mma.sync makes them,
// and can't be touched until their group has been waited for.
//
// Rules: registers that another instruction wrote come before a wgmma.fence; nobody touches those of a group
// that isn't waited for; all warps of a warpgroup multiply the same matrices; what they read of shared memory
// is there, shown to them by fence.proxy.async, and stays until the wait (shared.c). A wait is over when all
// warps of the warpgroup have closed the group.
#include "tests/ptx/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SWIZZLE_128 = 1 };
static const uint64_t DESCRIPTOR_BITS =
    0x3fff | (uint64_t)0x3fff << 16 | (uint64_t)0x3fff << 32 | (uint64_t)3 << 62;

typedef struct Matrices { // of 8 rows by 8 columns
    uint64_t start, to_next_k, to_next_row;
    bool swizzled;
} Matrices;

static uint64_t uniform(const Warp *w, const Operand *o) {
    uint64_t value = operand_lane(w, o, 0);
    for (int l = 1; l < LANES; l++)
        if (operand_lane(w, o, l) != value) fault(w, l, "lanes of a warp have different descriptors");
    return value;
}

static Matrices matrices(const Warp *w, uint64_t bits) {
    const unsigned swizzle = (unsigned)(bits >> 62);
    Matrices m = {(bits & 0x3fff) << 4, (bits >> 16 & 0x3fff) << 4, (bits >> 32 & 0x3fff) << 4, swizzle > 0};
    if (bits & ~DESCRIPTOR_BITS || swizzle > SWIZZLE_128)
        fault(w, 0, "a descriptor of %#lx: bits that are not known", (unsigned long)bits);
    if (m.swizzled && (m.start % 1024 >= 128 || m.to_next_row % 1024))
        fault(
            w, 0,
            "a descriptor at %lu, %lu to the next rows: swizzled rows of 128 bytes begin at a multiple of 1024",
            (unsigned long)m.start, (unsigned long)m.to_next_row);
    return m;
}

// 16 bytes: 8 columns of a row.
static uint64_t piece_at(const Warp *w, const Matrices *m, int row, int eight) {
    uint64_t at = m->start + (uint64_t)(row / 8) * m->to_next_row;
    if (m->swizzled) {
        at += (uint64_t)(row % 8) * 128 + (uint64_t)eight * 16;
        at ^= (at >> 7 & 7) << 4;
    } else at += (uint64_t)(row % 8) * 16 + (uint64_t)eight * m->to_next_k;
    if (at + 16 > w->block->shared_bytes)
        fault(w, 0, "a descriptor's row %d is at %lu of shared memory, which has %zu", row, (unsigned long)at,
              w->block->shared_bytes);
    return at + (uint64_t)w->rank * SHARED_SPAN;
}

// A row's 16 columns; false: nobody has written some of them.
static bool take_row(Warp *w, const Matrices *m, int row, bool half, double out[16]) {
    bool known = true;
    for (int e = 0; e < 2; e++) {
        uint16_t bits[8];
        uint64_t at = piece_at(w, m, row, e);
        known &= !ptx_settings.checked || shared_multiplied(w, at);
        memcpy(bits, w->block->shared + at, sizeof bits);
        for (int i = 0; i < 8; i++) out[8 * e + i] = half_value(bits[i], half);
    }
    return known;
}

// Operands: descriptor of b, whether there are sums to add to, then a's descriptor or its four registers. The
// rows that are made of what nobody wrote, a bit a row.
static uint32_t take_a(Warp *w, const Instruction *o, bool half, double a[16][16]) {
    uint32_t unknown = 0;
    if (o->sources == 3) {
        Matrices m = matrices(w, uniform(w, &o->s[2]));
        for (int r = 0; r < 16; r++)
            unknown |= (uint32_t)!take_row(w, &m, w->number % 4 * 16 + r, half, a[r]) << r;
        return unknown;
    }
    for (int i = 0; i < 4; i++) {
        const uint32_t *s = operand_at(w, &o->s[2 + i]);
        for (int t = 0; t < LANES; t++) {
            int r = t / 4 + i % 2 * 8, c = t % 4 * 2 + i / 2 * 8;
            a[r][c] = half_value(s[t] & 0xffff, half), a[r][c + 1] = half_value(s[t] >> 16, half);
            unknown |= (w->unknown[o->s[2 + i].id] >> t & 1) << r;
        }
    }
    return unknown;
}

// Eight columns, in the order of mma.sync.
static void multiply_eight(Warp *w, const Instruction *o, const Matrices *m, int n, double a[16][16],
                           uint32_t unknown_rows) {
    double b[16][8], d[16][8], row[16];
    uint32_t unknown_columns = 0;
    const uint32_t adds = *(const uint32_t *)operand_at(w, &o->s[1]);
    for (int c = 0; c < 8; c++) {
        unknown_columns |= (uint32_t)!take_row(w, m, 8 * n + c, o->more, row) << c;
        for (int k = 0; k < 16; k++) b[k][c] = row[k];
    }
    for (int t = 0; t < LANES; t++)
        for (int i = 0; i < 4; i++) {
            float f = ((const float *)operand_at(w, &o->sums[4 * n + i]))[t];
            d[t / 4 + i / 2 * 8][t % 4 * 2 + i % 2] = adds >> t & 1 ? (double)f : 0;
        }
    multiply_add(d, (const double(*)[16])a, (const double(*)[8])b);
    for (int i = 0; i < 4; i++) {
        uint32_t *unknown = &w->unknown[o->sums[4 * n + i].id], made = 0;
        float *to = operand_at(w, &o->sums[4 * n + i]);
        for (int t = 0; t < LANES; t++) {
            int r = t / 4 + i / 2 * 8, c = t % 4 * 2 + i % 2;
            to[t] = (float)d[r][c];
            if (ptx_settings.wgmma_differs) to[t] = nextafterf(to[t], 0);
            made |= ((unknown_rows >> r | unknown_columns >> c) & 1) << t;
        }
        *unknown = (*unknown & adds) | made;
    }
}

// --- registers

static void check_registers(const Warp *w, const Operand *list, int count, bool sums) {
    const Multiplying *x = &w->tensor;
    for (int i = 0; i < count; i++) {
        uint32_t group = x->busy[list[i].id] >> 1, is_sum = x->busy[list[i].id] & 1;
        if (x->wrote[list[i].id] > x->fenced)
            fault(w, 0, "wgmma takes a register that was written behind the last wgmma.fence");
        if (group > x->done && is_sum != (uint32_t)sums)
            fault(w, 0, "wgmma takes a register of a wgmma that has not been waited for");
    }
}
static void take_registers(Warp *w, const Operand *list, int count, bool sums) {
    for (int i = 0; i < count; i++) w->tensor.busy[list[i].id] = (w->tensor.closed + 1) << 1 | (uint32_t)sums;
}

void warpgroups_check(Warp *w, const Instruction *o) {
    Multiplying *x = &w->tensor;
    if (o->count == COUNT_WGMMA) return;
    for (int i = 0; i < o->results; i++) x->wrote[o->d[i].id] = w->executed;
    if (x->closed == x->done && !x->open) return;
    bool touches = o->guarded && x->busy[o->guard.id] >> 1 > x->done;
    for (int i = 0; i < o->results; i++) touches |= x->busy[o->d[i].id] >> 1 > x->done;
    for (int i = 0; i < o->sources; i++) touches |= !o->s[i].constant && x->busy[o->s[i].id] >> 1 > x->done;
    if (touches) fault(w, 0, "touches a register of a wgmma that has not been waited for");
}

void warpgroups_begin(Warp *w) {
    const Kernel *k = w->block->kernel;
    Multiplying *x = &w->tensor;
    x->closed = x->done = w->block->groups;
    x->open = 0, x->fenced = 0, x->signature = 0, x->ready = 0;
    if (!k->tensor) return;
    memset(x->busy, 0, k->registers * sizeof *x->busy);
    memset(x->wrote, 0, k->registers * sizeof *x->wrote);
}
void warpgroups_leave(const Warp *w) {
    if (w->tensor.closed != w->tensor.done || w->tensor.open)
        fault(w, 0, "leaves with wgmma that it has not waited for");
}

// --- instructions

void run_wgmma(Warp *w, const Instruction *o, uint32_t lanes) {
    double a[16][16];
    Multiplying *x = &w->tensor;
    (void)lanes;
    if ((uint32_t)(w->number - w->first) / 4 * 4 + 4 > w->block->each)
        fault(w, 0, "wgmma of a warp without a warpgroup");
    if (ptx_settings.checked) {
        if (!x->fenced) fault(w, 0, "wgmma without a wgmma.fence in front of it");
        check_registers(w, o->sums, o->sum_count, true);
        check_registers(w, o->s + 2, o->sources == 3 ? 0 : 4, false);
    }
    uint64_t b = uniform(w, &o->s[0]), of_a = o->sources == 3 ? uniform(w, &o->s[2]) : 0;
    Matrices m = matrices(w, b);
    uint32_t unknown = take_a(w, o, o->more, a);
    for (int n = 0; n < o->sum_count / 4; n++) multiply_eight(w, o, &m, n, a, unknown);
    take_registers(w, o->sums, o->sum_count, true);
    take_registers(w, o->s + 2, o->sources == 3 ? 0 : 4, false);
    x->open++;
    x->signature =
        (x->signature ^ b ^ of_a * 3 ^ (uint64_t)(o - w->block->kernel->code)) * 0x9e3779b97f4a7c15u;
    x->ready = (x->ready > w->now ? x->ready : w->now) +
               (uint64_t)o->sum_count; // 16 N 16 of a tensor core's 512 a cycle
    w->mmas++;
}

void run_wgmma_fence(Warp *w, const Instruction *o, uint32_t lanes) {
    (void)o, (void)lanes;
    w->tensor.fenced = w->executed;
}

void run_wgmma_commit(Warp *w, const Instruction *o, uint32_t lanes) {
    Multiplying *x = &w->tensor;
    uint32_t n = x->closed - w->block->groups;
    (void)o, (void)lanes;
    x->ended = async_grown(x->ended, n, &x->space, sizeof *x->ended);
    x->ended[n] = (Group){0, x->signature};
    x->closed++;
    x->open = 0;
}

static uint32_t last_waited(const Warp *w, const Instruction *o) {
    uint32_t left = (uint32_t)o->more, all = w->tensor.closed - w->tensor.done;
    return left < all ? w->tensor.closed - left : w->tensor.done;
}
bool wgmma_ready(Warp *w, const Instruction *o, uint32_t lanes) {
    const Warp *group = &w->block->warps[w->number / 4 * 4];
    uint32_t last = last_waited(w, o);
    (void)lanes;
    for (int i = 0; i < 4 && last > w->tensor.done; i++)
        if (group[i].tensor.closed < last) return false;
    return true;
}
void run_wgmma_wait(Warp *w, const Instruction *o, uint32_t lanes) {
    const Warp *group = &w->block->warps[w->number / 4 * 4];
    Multiplying *x = &w->tensor;
    uint32_t last = last_waited(w, o);
    (void)lanes;
    for (; x->done < last; x->done++) {
        uint32_t n = x->done - w->block->groups;
        x->ended[n].time = w->time;
        for (int i = 0; i < 4; i++)
            if (group[i].tensor.ended[n].signature != x->ended[n].signature)
                fault(w, 0, "the warps of a warpgroup multiply different matrices");
    }
    w->time++;
    if (ptx_settings.counted && o->more == 0 && x->ready + WGMMA_CYCLES > w->now)
        w->now = x->ready + WGMMA_CYCLES;
}
