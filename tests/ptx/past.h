// What has happened before what, among the threads of a block, or of the blocks of a cluster.
//
// A warp has a time, which grows with everything that others may wait for. A Past is what somebody knows to
// have happened: what all lanes of a warp did before a time, and what some of its lanes did before a later
// one; which phases of each mbarrier are complete. Who waits at a barrier gets the pasts of all that came to
// it. Times and phases of a block are later than those of the blocks before it, so that all of theirs has
// happened.
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { WARPS = 32, WARPGROUPS = WARPS / 4, MOST_MBARRIERS = 64 }; // of a cluster's blocks together

typedef struct Past {
    uint32_t warp[WARPS], some[WARPS], lanes[WARPS]; // lanes: which ones `some` is about
    uint32_t mbarrier[MOST_MBARRIERS];
} Past;

static inline void past_join(Past *p, const Past *other) {
    for (int i = 0; i < WARPS; i++) {
        uint32_t mine = p->some[i] > p->warp[i] ? p->lanes[i] : 0,
                 theirs = other->some[i] > other->warp[i] ? other->lanes[i] : 0;
        p->lanes[i] = mine | theirs;
        p->some[i] = other->some[i] > p->some[i] ? other->some[i] : p->some[i];
        p->warp[i] = other->warp[i] > p->warp[i] ? other->warp[i] : p->warp[i];
    }
    for (int i = 0; i < MOST_MBARRIERS; i++)
        if (other->mbarrier[i] > p->mbarrier[i]) p->mbarrier[i] = other->mbarrier[i];
}
// Whether it has what these lanes did at that time.
static inline bool past_has(const Past *p, int warp, uint32_t time, uint32_t lanes) {
    return time < p->warp[warp] || (time < p->some[warp] && !(lanes & ~p->lanes[warp]));
}
static inline void past_begin(Past *p, uint32_t time) {
    for (int i = 0; i < WARPS; i++) p->warp[i] = p->some[i] = time, p->lanes[i] = 0;
    for (int i = 0; i < MOST_MBARRIERS; i++) p->mbarrier[i] = time;
}
