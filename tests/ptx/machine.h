// A machine that runs the PTX that nvcc wrote. Its parts:
//
//      parse.c         text -> Kernel; instructions.c decodes, reader.c has the words, names and registers
//      forms.c         arithmetic: one function an opcode, over the 32 lanes of a warp
//      collectives.c   shuffles, votes, ldmatrix, mma
//      memory.c        global memory, and what is known about every word of it; shared.c that of a block
//      accesses.c      the instructions that touch them, and what they cost
//      barriers.c      barriers of a block; mbarriers.c those that bulk copies are waited for with
//      clusters.c      the barrier of a cluster, and places in another block's shared memory
//      warpgroups.c    wgmma
//      known.c         what is made of registers that nobody wrote
//      run.c           warps, barriers, blocks, launches; counts and the critical path
//      runtime.c       the CUDA runtime's calls, so that nvcc's own host objects run on it
//      launches.c      its functions, and how they are launched
//
// What always holds:
// 1. A warp's lanes run in lock-step, lowest program counter first; a collective waits for its lanes.
// 2. Blocks of a launch run one after the other, those of a cluster together; launches in stream order. Races,
//    missing fences, and reads before a launch's wait are found by what happened before what, not by luck.
// 3. The first fault ends the program with one line: kernel, line of PTX, block, warp, lane.
#pragma once
#include "tests/ptx/async.h"
#include "tests/ptx/cards.h"

typedef struct Counters {
    uint64_t warp[COUNTS];                 // instructions of warps
    uint64_t blocks, launches, prefetched; // prefetched: bytes
    uint64_t load_sectors, load_ideal, store_sectors, store_ideal, copy_sectors, copy_ideal; // of 32 bytes
    uint64_t shared_waves, shared_ideal;                                                     // of 128 bytes
    // from here on the most of any: of a warp; of a block
    uint64_t longest, longest_mma;
    uint64_t flight; // bytes of a block's copies on their way, where each warp has as many as it ever has
    uint64_t path;   // cycles
} Counters;

typedef struct CopyInFlight {
    uint32_t shared, bytes; // bytes that come from memory; the rest of 16 are zero
    unsigned char data[16];
    uint8_t lane;
    uint32_t group; // how many groups the lane had closed
    uint64_t ready;
} CopyInFlight;

struct Warp {
    Block *block;
    int number, rank, first;         // rank: of its block in the cluster; first: the first warp of that block
    uint32_t alive, waiting, waited; // lanes; at a collective; past griddepcontrol.wait
    uint32_t stalled, denied;        // at what isn't ready; .. and have been told so once
    uint32_t pc[LANES];
    unsigned char *registers, *local;
    uint32_t *unknown; // of each register: lanes whose value is made of what nobody wrote (known.c)
    const unsigned char *constants;
    uint32_t carry, time; // carry: a bit a lane
    int barrier;          // of the block, that it waits at; -1: none
    uint32_t came;        // to the cluster's barrier, in this phase + 1; 0: it has not, or has waited
    Past past, *own;      // of all lanes; what a lane knows besides, of those in `parted`
    ProxyFence *shows;    // its fences for the tensor cores and bulk copies
    uint32_t parted, show_count, show_space;
    Multiplying tensor;
    int most_registers; // as setmaxnreg has set it; 0: it has not
    CopyInFlight *copies;
    uint32_t copy_count, copy_space, closed[LANES], issued;
    uint64_t executed, mmas, flight, most_flight; // flight: bytes of its copies on their way
    // In cycles of the critical path. now: when the next instruction is issued; begins: the one that runs;
    // begun: the last WINDOW of them; latest: of all; ready: when each register's value is there
    uint64_t now, begins, begun[WINDOW], latest, *ready;
};

typedef struct Fence {
    uint32_t warp, epoch;
} Fence;
typedef struct Acquired {                // fences of another block that this block knows of
    uint32_t block, fences, warp, epoch; // by an atomic of this warp, then
    uint32_t fenced, fenced_epoch; // warps that had a fence after it, and when the first was; 0: none yet
} Acquired;

struct Block { // of a cluster: all its blocks. Warps of block r are those from r * stride on
    const Kernel *kernel;
    const struct Launch *launch;
    uint32_t number, epoch; // epoch: grows at each barrier of all warps, never comes again
    uint32_t begun, groups; // times and groups of wgmma are later than these
    int ranks;
    uint32_t stride, each; // each: warps of one
    Meeting meetings[MOST_RANKS * BARRIERS];
    ClusterMeeting cluster;
    Past left[MOST_RANKS]; // of the warps of each block that have left
    uint32_t far_time[MOST_RANKS][WARPS], far_lanes[MOST_RANKS][WARPS]; // who reached into it last, and when
    Mbarrier mbarriers[MOST_MBARRIERS];
    Bulk *bulk;
    unsigned char *shared;
    size_t shared_bytes;
    struct SharedCell *cells;
    Warp *warps;
    Acquired *acquired;
    uint64_t *lines; // of L1, a hash table: what a load finds there; NULL unless it's counted
    uint32_t bulk_count, bulk_space, warp_count, acquired_count, acquired_space, line_count;
};

typedef struct Launch {
    const Kernel *kernel;
    uint32_t grid[3], threads;
    int cluster; // blocks of one
    size_t shared;
    unsigned char *params;
    uint32_t device;
    bool early;       // may begin before what is in front has ended
    uint32_t number;  // of all launches
    uint32_t overlap; // the first launch that may still run while this one has not waited
} Launch;
void ptx_launch(Launch *l);
uint32_t machine_epoch(void); // another one each time

// The most recent counters of a kernel, summed over its launches since they were cleared, if they're counted.
const Counters *ptx_counters(const char *part_of_name); // NULL: not launched
void ptx_counters_clear(void);
uint64_t ptx_blocks(void);

typedef struct PtxSettings {
    bool checked;       // races, uninitialised reads, waits: off where only counts matter
    bool counted;       // Counters and the critical path: off where nobody reads them
    bool old_code;      // 9.0 loads the code for 8.0, as from a build that has no other
    bool wgmma_differs; // its sums are of other bits than mma.sync's
    bool (*only)(const Launch *l, uint32_t block); // NULL: every block runs
    int processors, shared_kb;                     // of each device; of a block
} PtxSettings;
extern PtxSettings ptx_settings; // checked, not counted, every block; 4 processors, 227 KB

// One line about the instruction that runs, and the end of the program.
_Noreturn void fault(const Warp *w, int lane, const char *format, ...) __attribute__((format(printf, 3, 4)));
_Noreturn void machine_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint32_t machine_random(void);    // from the test's seed
void machine_latency(int cycles); // of the memory access that runs, for the critical path
Counters *machine_counters(void); // of the launch that runs

// d (16, 8) += a (16, 16) b (16, 8), of any multiplication; a 16-bit number, f16 or bf16.
void multiply_add(double d[16][8], const double a[16][16], const double b[16][8]);
double half_value(uint32_t bits, bool f16);
void copies_leave(Warp *w, uint64_t bytes); // so many more are on their way

// For these lanes, before they execute it: faults where what nobody wrote matters, else passes it on.
void known_pass(Warp *w, const Instruction *o, uint32_t lanes);

static inline void *operand_at(const Warp *w, const Operand *o) {
    return (o->constant ? (unsigned char *)(uintptr_t)w->constants : w->registers) + o->at;
}
static inline uint64_t operand_lane(const Warp *w, const Operand *o, int lane) {
    return o->bits == 64 ? ((const uint64_t *)operand_at(w, o))[lane]
                         : ((const uint32_t *)operand_at(w, o))[lane];
}
