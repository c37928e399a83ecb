// What the threads of a block know of each other, the barriers that tell them, and what is said once for a
// warp: fences, the number of its registers.
#include "tests/ptx/memory.h"

#include <stdlib.h>

void *async_grown(void *array, uint32_t count, uint32_t *space, size_t size) {
    if (count < *space) return array;
    *space = *space ? 2 * *space : 16;
    array = realloc(array, *space * size);
    if (!array) machine_fault("no memory");
    return array;
}

// --- what a warp knows

void warp_meets(Warp *w) {
    for (uint32_t left = w->parted; left; left &= left - 1) past_join(&w->past, &w->own[__builtin_ctz(left)]);
    w->parted = 0;
    w->past.warp[w->number] = ++w->time;
}

void warp_tells(Warp *w, uint32_t lanes, Past *to) {
    const int i = w->number;
    past_join(to, &w->past);
    for (uint32_t left = lanes & w->parted; left; left &= left - 1)
        past_join(to, &w->own[__builtin_ctz(left)]);
    w->time++; // all until now
    if (!(w->alive & ~lanes)) {
        to->warp[i] = w->time;
        return;
    }
    to->lanes[i] = (to->some[i] > to->warp[i] ? to->lanes[i] : 0) | lanes;
    to->some[i] = w->time;
}

void warp_learns(Warp *w, uint32_t lanes, const Past *from) {
    if (!(w->alive & ~lanes)) {
        past_join(&w->past, from);
        return;
    }
    if (!w->own) w->own = calloc(LANES, sizeof *w->own);
    if (!w->own) machine_fault("no memory");
    for (uint32_t left = lanes; left; left &= left - 1) {
        int l = __builtin_ctz(left);
        if (!(w->parted >> l & 1)) past_begin(&w->own[l], w->block->begun);
        past_join(&w->own[l], from);
    }
    w->parted |= lanes;
}

static const Past *own_past(const Warp *w, int lane) {
    return lane >= 0 && w->parted >> lane & 1 ? &w->own[lane] : &w->past;
}
bool warp_knows(const Warp *w, int lane, int warp, uint32_t time, uint32_t lanes) {
    if (lane >= 0 && warp == w->number && lanes == 1u << lane) return true; // program order
    return past_has(&w->past, warp, time, lanes) || past_has(own_past(w, lane), warp, time, lanes);
}
bool warp_knows_phase(const Warp *w, int lane, int mbarrier, uint32_t phase) {
    return w->past.mbarrier[mbarrier] > phase || own_past(w, lane)->mbarrier[mbarrier] > phase;
}

// --- bar.sync and bar.arrive: of all threads, or of a number of them

static void pass(Block *b, Meeting *x) {
    bool all = (uint32_t)__builtin_popcount(x->waiting) == b->each * (uint32_t)b->ranks;
    for (uint32_t left = x->waiting; left; left &= left - 1) {
        Warp *w = &b->warps[__builtin_ctz(left)];
        warp_learns(w, ALL, &x->past);
        w->parted = 0;
        w->barrier = -1;
        w->now = x->latest + BARRIER_CYCLES;
    }
    if (all) b->epoch = machine_epoch();
    *x = (Meeting){0};
    past_begin(&x->past, b->begun);
}

void run_barrier(Warp *w, const Instruction *o, uint32_t lanes) {
    Block *b = w->block;
    const bool waits = o->more != BARRIER_ARRIVE, counted = o->sources > 1;
    const uint32_t threads = b->each * LANES, id = (uint32_t)operand_lane(w, &o->s[0], 0),
                   wanted = counted ? (uint32_t)operand_lane(w, &o->s[1], 0) : threads;
    Meeting *x = &b->meetings[w->rank * BARRIERS + (int)id % BARRIERS];
    if (id >= BARRIERS || !wanted || wanted % LANES || wanted > threads)
        fault(w, 0, "barrier %u of %u threads, in a block that has %u", id, wanted, threads);
    if (x->came && x->wanted != wanted)
        fault(w, 0, "comes to barrier %u of %u threads, to which others came as one of %u", id, wanted,
              x->wanted);
    if (x->came && !counted && x->at != o) fault(w, 0, "two barriers at once");
    warp_tells(w, lanes, &x->past);
    x->came += LANES, x->wanted = wanted, x->at = o;
    if (w->now > x->latest) x->latest = w->now;
    if (waits) x->waiting |= 1u << w->number, w->barrier = (int)(x - b->meetings);
    if (x->came == wanted) pass(b, x);
}

// --- fence.proxy.async, fence.mbarrier_init

void run_proxy_fence(Warp *w, const Instruction *o, uint32_t lanes) {
    w->shows = async_grown(w->shows, w->show_count, &w->show_space, sizeof *w->shows);
    w->shows[w->show_count++] = (ProxyFence){w->time++, lanes, o->more};
}

void run_policy(Warp *w, const Instruction *o, uint32_t lanes) { // of L2, which has none here
    for (int l = 0; l < LANES; l++)
        if (lanes >> l & 1) ((uint64_t *)operand_at(w, &o->d[0]))[l] = 0;
}

void run_trap(Warp *w, const Instruction *o, uint32_t lanes) {
    (void)o;
    if (lanes) fault(w, __builtin_ctz(lanes), "comes to a trap");
}

// --- setmaxnreg: what some warps give away others take

void run_registers(Warp *w, const Instruction *o, uint32_t lanes) {
    uint32_t count = (uint32_t)operand_lane(w, &o->s[0], 0);
    (void)lanes;
    if (count < 24 || count > 256 || count % 8) fault(w, 0, "setmaxnreg of %u registers", count);
    w->most_registers = (int)count;
}
void barriers_end_block(Block *b) {
    uint32_t threads = b->each * LANES, each = PROCESSOR_REGISTERS / threads / 8 * 8;
    for (int rank = 0; rank < b->ranks; rank++) {
        const Warp *w = &b->warps[(uint32_t)rank * b->stride];
        uint32_t sum = 0;
        for (uint32_t i = 0; i < b->each; i++) {
            uint32_t own = (uint32_t)w[i].most_registers;
            sum += LANES * (own ? own : each > 255 ? 255 : each);
            if (i % 4 && own != (uint32_t)w[i - 1].most_registers)
                fault(&w[i], 0, "setmaxnreg that not all warps of a warpgroup come to");
        }
        if (sum > PROCESSOR_REGISTERS)
            fault(w, 0, "setmaxnreg asks for %u registers, and there are %d", sum, PROCESSOR_REGISTERS);
    }
    if (b->bulk_count) fault(b->warps, 0, "the block ends with bulk copies on their way");
}
