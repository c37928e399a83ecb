// What a block's warps have under way, and wait for: barriers, also of a cluster, mbarriers, bulk copies, wgmma.
//
// Copies and multiplications touch shared memory in the background, by the asynchronous proxy. What threads
// have written they see after fence.proxy.async of the thread that wrote it, and whatever tells them of that
// fence. A copy arrives as late as it may: when no warp can go on without it.
#pragma once
#include "tests/ptx/past.h"
#include "tests/ptx/program.h"

typedef struct ProxyFence {
    uint32_t time, lanes;
    bool mbarriers; // it is about those alone
} ProxyFence;

// What a warp's wgmmas have under way. Groups have numbers behind those of blocks before.
typedef struct Group {
    uint32_t time;      // of the warp, when it had waited for it
    uint64_t signature; // of all multiplications until its end
} Group;
typedef struct Multiplying {
    uint32_t closed, done, open; // groups; multiplications of the one that is not closed
    uint32_t *busy;              // of each register: twice the group that has it, + 1 if for sums
    uint64_t *wrote, fenced;     // when another instruction wrote it, and the last wgmma.fence: by `executed`
    Group *ended;                // of this block
    uint32_t space;
    uint64_t signature, ready;
} Multiplying;

enum { BARRIERS = 16, MOST_RANKS = 4 }; // of a block; blocks of a cluster
typedef struct Meeting {                // at a barrier: threads that came, and are expected; warps that wait
    uint32_t came, wanted, waiting;
    const Instruction *at;
    uint64_t latest;
    Past past;
} Meeting;
typedef struct Mbarrier {
    bool live;
    uint32_t address, count, pending, first, done; // phases: the first, and how many are complete
    int64_t bytes;                                 // expected, less those that have come
    uint64_t latest;
    Past past, next; // of who waited for the last complete phase, and who will have for the next
} Mbarrier;
typedef struct ClusterMeeting { // barrier.cluster: warps that came; how often all did
    uint32_t came, phase;
    uint64_t latest;
    Past past, next; // of who waited for the last phase, and who will have for the next
} ClusterMeeting;
typedef struct Bulk { // a copy on its way
    uint32_t to, bytes;
    int mbarrier, warp; // warp: that asked for it
    unsigned char *data;
    uint64_t ready;
} Bulk;

// Everything that all lanes of the warp have done is now in order with each of them.
void warp_meets(Warp *w);
// Adds what these lanes know and have done to a past, as a barrier takes it.
void warp_tells(Warp *w, uint32_t lanes, Past *to);
void warp_learns(Warp *w, uint32_t lanes, const Past *from);
bool warp_knows(const Warp *w, int lane, int warp, uint32_t time, uint32_t lanes); // lane -1: all of them
bool warp_knows_phase(const Warp *w, int lane, int mbarrier, uint32_t phase);

void barriers_end_block(Block *b);
// clusters.c: an access of another block's shared memory, which must have begun; a warp's end; the end of all.
void cluster_reach(Warp *w, int lane, int rank);
void cluster_begin(Block *b);
void cluster_leave(Warp *w);
void cluster_end(Block *b);
bool cluster_has_left(const Block *b, int rank);
_Noreturn void cluster_stuck(Warp *w);
bool bulk_arrives(Block *b); // one copy, in the order of the test; false: none is on its way
_Noreturn void mbarrier_stuck(Warp *w, const Instruction *o, int lane); // no warp can go on
void warpgroups_begin(Warp *w);
void warpgroups_check(Warp *w, const Instruction *o); // what an instruction touches that isn't wgmma
void warpgroups_leave(const Warp *w);
void *async_grown(void *array, uint32_t count, uint32_t *space, size_t size); // with room for one more

enum { BARRIER_SYNC, BARRIER_ARRIVE }; // `more` of run_barrier
enum { WAIT_PARITY, WAIT_STATE };      // of run_mbarrier_wait
Execute run_barrier, run_proxy_fence, run_registers, run_policy, run_trap;
Execute run_mbarrier_init, run_mbarrier_drop, run_mbarrier_arrive, run_mbarrier_wait, run_bulk,
    run_bulk_prefetch;
Execute run_cluster_arrive, run_cluster_wait, run_map;
Ready cluster_ready;
Execute run_wgmma, run_wgmma_fence, run_wgmma_commit, run_wgmma_wait;
Ready mbarrier_ready, wgmma_ready;
