// Clusters: blocks that run together and reach into each other's shared memory.
//
// barrier.cluster parts all warps that are still there, once each has come. Another block's memory is there
// from when something has told the warp of that block's beginning until the block ends, so one of its warps
// must know of every access by others before it leaves. Neither is left to the order of a run.
#include "tests/ptx/memory.h"

#include <string.h>

static Warp *warps_of(const Block *b, int rank) { return &b->warps[(uint32_t)rank * b->stride]; }

bool cluster_has_left(const Block *b, int rank) {
    const Warp *w = warps_of(b, rank);
    for (uint32_t i = 0; i < b->each; i++)
        if (w[i].alive) return false;
    return true;
}

// --- other blocks' shared memory

static bool has_begun(const Warp *w, int lane, int rank) {
    const Block *b = w->block;
    const Past *own = w->parted >> lane & 1 ? &w->own[lane] : &w->past;
    for (uint32_t i = (uint32_t)rank * b->stride, end = i + b->each; i < end; i++)
        if (w->past.warp[i] > b->begun || w->past.some[i] > b->begun || own->warp[i] > b->begun ||
            own->some[i] > b->begun)
            return true;
    return false;
}

void cluster_reach(Warp *w, int lane, int rank) {
    Block *b = w->block;
    uint32_t *time = &b->far_time[rank][w->number], *lanes = &b->far_lanes[rank][w->number];
    if (!ptx_settings.checked) return;
    if (!has_begun(w, lane, rank))
        fault(w, lane, "reaches into shared memory of block %u, and nothing says that it has begun",
              b->number + (uint32_t)rank);
    *lanes = (*time == w->time ? *lanes : 0) | 1u << lane;
    *time = w->time;
}

void run_map(Warp *w, const Instruction *o, uint32_t lanes) {
    const bool wide = o->d[0].bits == 64; // a generic address
    const uint64_t bits = ((uint64_t)1 << RANK_SHIFT) - 1;
    for (uint32_t left = lanes; left; left &= left - 1) {
        int l = __builtin_ctz(left);
        uint64_t from = operand_lane(w, &o->s[0], l), rank = operand_lane(w, &o->s[1], l);
        if (rank >= (uint64_t)w->block->ranks)
            fault(w, l, "asks for a place in block %lu of a cluster of %d", (unsigned long)rank,
                  w->block->ranks);
        uint64_t to = (from & ~(wide ? (uint64_t)0xff << RANK_SHIFT : ~bits)) | (rank + 1) << RANK_SHIFT;
        if (wide) ((uint64_t *)operand_at(w, &o->d[0]))[l] = to;
        else ((uint32_t *)operand_at(w, &o->d[0]))[l] = (uint32_t)to;
    }
}

// --- the barrier

static void pass_if_all_came(Block *b) {
    ClusterMeeting *x = &b->cluster;
    uint32_t there = 0;
    for (uint32_t i = 0; i < b->warp_count; i++) there |= (uint32_t)(b->warps[i].alive != 0) << i;
    if (!x->came || there & ~x->came) return;
    x->came = 0, x->phase++;
    x->past = x->next;
}

void run_cluster_arrive(Warp *w, const Instruction *o, uint32_t lanes) {
    ClusterMeeting *x = &w->block->cluster;
    (void)o;
    if (w->came) fault(w, 0, "comes to the cluster's barrier once more, and has not waited");
    warp_tells(w, lanes, &x->next);
    if (w->now > x->latest) x->latest = w->now;
    x->came |= 1u << w->number;
    w->came = x->phase + 1;
    pass_if_all_came(w->block);
}
bool cluster_ready(Warp *w, const Instruction *o, uint32_t lanes) {
    (void)o, (void)lanes;
    if (!w->came) fault(w, 0, "waits at the cluster's barrier, to which it has not come");
    return w->block->cluster.phase >= w->came;
}
void run_cluster_wait(Warp *w, const Instruction *o, uint32_t lanes) {
    const ClusterMeeting *x = &w->block->cluster;
    (void)o, (void)lanes;
    warp_learns(w, ALL, &x->past);
    w->came = 0;
    if (x->latest + BARRIER_CYCLES > w->now) w->now = x->latest + BARRIER_CYCLES;
}
void cluster_stuck(Warp *w) {
    fault(w, 0, "waits at the cluster's barrier, to which not all warps of its blocks come");
}

// --- from beginning to end

void cluster_begin(Block *b) {
    b->cluster = (ClusterMeeting){0};
    past_begin(&b->cluster.past, b->begun);
    past_begin(&b->cluster.next, b->begun);
    for (int i = 0; i < b->ranks; i++) past_begin(&b->left[i], b->begun);
    memset(b->far_lanes, 0, sizeof b->far_lanes);
}
void cluster_leave(Warp *w) {
    Block *b = w->block;
    if (b->ranks == 1) return;
    if (w->came) fault(w, 0, "leaves without having waited at the cluster's barrier");
    past_join(&b->left[w->rank], &w->past);
    for (uint32_t left = w->parted; left; left &= left - 1)
        past_join(&b->left[w->rank], &w->own[__builtin_ctz(left)]);
    if (!w->alive) pass_if_all_came(b);
}
void cluster_end(Block *b) {
    for (int rank = 0; rank < b->ranks; rank++)
        for (uint32_t i = 0; i < b->warp_count; i++)
            if (b->far_lanes[rank][i] &&
                !past_has(&b->left[rank], (int)i, b->far_time[rank][i], b->far_lanes[rank][i]))
                fault(&b->warps[i], __builtin_ctz(b->far_lanes[rank][i]),
                      "reaches into shared memory of block %u, which may have left: nothing orders the two",
                      b->number + (uint32_t)rank);
}
