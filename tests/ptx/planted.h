// Kernels with one bug each, and the same kernels without: what the PTX machine must find, and what it must
// let pass.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PLANTED_ITEMS = 256 };

typedef enum {
    PLANT_NONE,
    PLANT_RELEASE,        // parts are kept without a fence before the counter
    PLANT_ACQUIRE,        // .. and read without one after it
    PLANT_COUNTER,        // .. or read with no counter between
    PLANT_CONSTANT,       // memory that the launch writes is read as constant
    PLANT_TWO_BLOCKS,     // two blocks write one word
    PLANT_WARPS,          // two warps pass a word through shared memory without a barrier
    PLANT_LANES,          // two lanes do, without bar.warp.sync
    PLANT_GLOBAL_WARPS,   // two warps do, through global memory
    PLANT_OVERWRITE,      // a word is written while another warp may still read it
    PLANT_COPY_RACE,      // .. by an asynchronous copy
    PLANT_COPY_EARLY,     // a copy is read before its wait
    PLANT_COPY_LEFT,      // .. or on its way when the thread leaves
    PLANT_UNKNOWN_SHARED, // memory that nobody wrote
    PLANT_UNKNOWN_GLOBAL,
    PLANT_REGISTER_STORED, // a register that nobody wrote
    PLANT_REGISTER_SUMMED, // .. by way of arithmetic
    PLANT_REGISTER_ADDRESS,
    PLANT_REGISTER_ASKED,
    PLANT_MATRIX,      // a row that nobody wrote goes through ldmatrix and mma to what is stored
    PLANT_MATRIX_NONE, // .. and to nothing that is
    PLANT_OUTSIDE_SHARED,
    PLANT_BEYOND,  // of an allocation
    PLANT_FREED,   // memory that was given back
    PLANT_ALIGNED, // a read at an odd place
    PLANT_BARRIER, // half of a warp comes to a barrier
    PLANT_SHUFFLE, // .. to a collective
    PLANT_ENDLESS, // a block that waits for another
    PLANT_EARLY_NONE,
    PLANT_EARLY_READ,      // what the launch in front writes is read before the wait
    PLANT_EARLY_WRITE,     // anything is written before it
    PLANT_EARLY_LEAVE,     // a thread never waits
    PLANT_SHARED_LIMIT,    // more than 48 KB, not asked for
    PLANT_CARDS_NONE,      // a kernel on either of two cards, a copy between them
    PLANT_CARDS_POINTER,   // the second reads memory of the first
    PLANT_CARDS_COPY,      // .. copies it as its own
    PLANT_CARDS_UNORDERED, // the copy does not wait for the kernel in front of it
    PLANT_CARDS_OVERWRITE, // the first card's next kernel does not wait for the copy
    PLANT_CARDS_LAUNCH,    // a launch into a stream of a card that is not the thread's
    PLANT_CARDS_EVENT,     // one card's event marks the other's stream
    PLANT_CARDS_PEER,      // a copy between cards names them the wrong way round
    PLANTS
} Plant;

// out (PLANTED_ITEMS): of PLANT_NONE and PLANT_EARLY_NONE, what planted_wanted gives.
void planted_run(Plant plant, const float *input, float *out);

// The calls that the stand-in accepts although the real runtime refuses them; NULL: none.
const char *planted_refusals(void);

// A kernel of one block, for the counters: each warp of `warps` loads a float a lane, `stride` floats apart;
// passes it through shared memory in the same steps, a barrier between; multiplies `mmas` times; adds one a
// lane to a counter.
void planted_count(int warps, int stride, int mmas);

// The same of a product by bulk copies, mbarriers and wgmma.
enum { GROUPS_K = 256, GROUPS_ROWS = 64, GROUPS_COLUMNS = 32 };
typedef enum {
    GROUPS_NONE,
    GROUPS_SHOW,         // stores are multiplied without fence.proxy.async
    GROUPS_SHOW_LATE,    // .. with one behind the barrier
    GROUPS_RACE,         // .. without a barrier
    GROUPS_THREADS,      // a barrier that some come to as one of other threads
    GROUPS_FENCE,        // a sum is written, and no wgmma.fence follows
    GROUPS_SUMS,         // a sum is touched before the wait
    GROUPS_REGISTERS,    // .. a register of the first matrix
    GROUPS_OVERWRITE,    // a matrix is written before the wait
    GROUPS_EMPTY_EARLY,  // .. given back to the copies
    GROUPS_COPY_OVER,    // a copy does not wait until its place is given back
    GROUPS_READ_LANES,   // one lane gives back what all of the warp read
    GROUPS_WAIT,         // a copy is not waited for
    GROUPS_PARITY,       // .. the phase before is
    GROUPS_WAIT_ONCE,    // .. for a moment only
    GROUPS_EXPECT,       // fewer bytes are expected than come
    GROUPS_ARRIVE_TWICE, // more arrivals than the mbarrier has
    GROUPS_INIT_SHOWN,   // an mbarrier is not shown to the copies
    GROUPS_INIT_RACE,    // .. is used without a barrier behind its init
    GROUPS_INIT_AGAIN,
    GROUPS_AS_MEMORY, // .. is read
    GROUPS_STORED,    // a copy overwrites stores that it was not shown
    GROUPS_COPY_LEFT, // a copy is on its way at the end
    GROUPS_COPY_SIZE, // not a multiple of 16
    GROUPS_COPY_ALIGNED,
    GROUPS_COPY_BEYOND, // of an allocation
    GROUPS_PREFETCH,    // likewise
    GROUPS_OUTSIDE,     // a matrix is outside of shared memory
    GROUPS_SWIZZLED,    // .. not where its swizzle begins
    GROUPS_DIFFERENT,   // .. another one for one of the warps
    GROUPS_LANES,       // .. for some lanes
    GROUPS_PLANTS
} GroupPlant;

// out (64, 32) = a b^T; a: by stages of 64 columns, 8 columns, 8 rows; b: (32, GROUPS_K); bf16.
void planted_groups(GroupPlant plant, const uint16_t *a, const uint16_t *b, float *out);

// The same of two blocks that share their copies and reach into each other's memory.
enum { CLUSTERS_ITEMS = 256, CLUSTERS_BLOCKS = 4 };
typedef enum {
    CLUSTERS_NONE,
    CLUSTERS_BEGIN,        // no barrier before one reaches into the other
    CLUSTERS_END,          // .. or behind the last time
    CLUSTERS_STORE,        // .. between a store in the other and its load
    CLUSTERS_NO_WAIT,      // one that comes to the barrier does not wait
    CLUSTERS_WAIT_ALONE,   // .. waits, and has not come
    CLUSTERS_TWICE,        // .. comes twice
    CLUSTERS_STUCK,        // .. never comes
    CLUSTERS_LEFT,         // one leaves, and the other copies to both
    CLUSTERS_MASK,         // a copy to a block outside of the cluster
    CLUSTERS_MASK_NONE,    // .. to none
    CLUSTERS_MAP,          // a place in a block outside of it
    CLUSTERS_COUNTS_HERE,  // a copy to the other counts at an mbarrier of this one
    CLUSTERS_EXPECT,       // the other expects fewer bytes than come
    CLUSTERS_EXPECT_NONE,  // .. none
    CLUSTERS_EMPTY,        // a place is given back to its own block alone
    CLUSTERS_ARRIVE_SCOPE, // .. without .cluster
    CLUSTERS_WAIT_SCOPE,   // .. waited for without it
    CLUSTERS_STORE_HERE,   // a place in the other is stored to as if it were here
    CLUSTERS_INIT_SHOWN,   // mbarriers are not shown to the copies
    CLUSTERS_ODD,          // blocks are left over
    CLUSTERS_PLANTS
} ClusterPlant;

// out (CLUSTERS_BLOCKS, 32); in (CLUSTERS_ITEMS). -1 in out[0]: the launch failed.
void planted_clusters(ClusterPlant plant, bool by_launch, const float *in, float *out);

#ifdef __cplusplus
}
#endif
