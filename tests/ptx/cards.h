// The constants of all that is reckoned for a card, and where each comes from. None was measured here, and
// none is changed to suit a result: a card's own measurements (results/gpu) replace them.
//
// Cycles are one set for all cards: the latencies of 8.0, 8.9 and 9.0 differ by less than the error of what
// is made of them (+-40% on a path). The machine adds them up along each warp (run.c).
//
// [1] Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, arXiv 2402.13499 (A100, RTX
// 4090
//     and H100 side by side): L1 38 to 43 cycles, shared memory 29 to 30, L2 262 to 273, memory 466 to 542;
//     mma.sync 33 cycles, 62% of the data sheet on the H100, nearly all of it on the others; a load from
//     another block of a cluster 180 cycles, a third less than L2. Not yet read against it.
// [2] Abdelkhalik et al., Demystifying the Nvidia Ampere Architecture, arXiv 2208.11174: dependent arithmetic
// takes 4
//     cycles. Not yet read against it.
// [3] Read off this engine's machine code for 9.0 (nvdisasm), and the numbers of the first reckoning made
// from it. [lead] Plausible and unpublished, or published without a number that fits: the first to be
// measured.
#pragma once

enum {
    WINDOW = 32
};     // instructions of a basic block that may pass one that waits: how far ptxas moves loads [lead]
enum { // cycles until a result can be used
    QUICK_CYCLES = 4,          // of most arithmetic [2]
    WIDE_CYCLES = 8,           // of doubles, and of products of 64 bits [lead]
    SLOW_CYCLES = 20,          // of exponentials, reciprocals, conversions [lead]
    DIVISION_CYCLES = 60,      // of what machine code does in many instructions [lead]
    PARAM_CYCLES = 8,          // of a launch's argument [lead]
    SHUFFLE_CYCLES = 25,       // [1]
    VOTE_CYCLES = 12,          // [lead]
    MATRIX_CYCLES = 33,        // of ldmatrix without conflicts [1]
    MMA_CYCLES = 33,           // [1]
    SHARED_CYCLES = 30,        // [1]
    WAVE_CYCLES = 2,           // of each pass of the 32 banks [3]
    L1_CYCLES = 35,            // [1]
    L2_CYCLES = 270,           // [1]; an asynchronous copy's too
    MEMORY_CYCLES = 480,       // the first bytes of a launch that reads memory [1]
    ATOMIC_CYCLES = 540,       // in L2: there and back twice [lead]
    SHARED_ATOMIC_CYCLES = 60, // [lead]
    REMOTE_CYCLES = 200,       // of a load from another block of a cluster: 180 [1], and its way there [lead]
    MAP_CYCLES = 20,           // of such an address [lead]

    // that a warp stands still
    BRANCH_CYCLES = 6,    // [lead]
    BARRIER_CYCLES = 20,  // of a block, after its last warp [lead]
    CLUSTER_CYCLES = 200, // of a cluster's barrier, after its last block [lead: a remote trip]
    WARP_SYNC_CYCLES = 4, // [lead]
    FENCE_CYCLES = 500,   // MEMBAR.SC.GPU, which empties L1 [3, lead]
};

// A card beyond the bandwidth, operations and processors of its data sheet, which are in
// configs/hardware/NAME.json.
typedef struct Card {
    const char *name, *sheet; // sheet: of configs/hardware
    int capability;           // 80, 89, 90
    double clock_hz;          // under load
    int shared_kb;            // that a block can have
    int processor_shared_kb;  // that all blocks of a processor have; each takes 1 KB more than it asks for
    int processor_threads, processor_blocks;
    double mma_share;   // of the sheet's operations that mma.sync reaches
    double l2_bytes_s;  // from L2 to all processors
    double launch_s;    // from the end of a kernel to the first instruction of the next
    double dependent_s; // the same where the next was launched early and waits; 0: it can't be
} Card;

// Shared memory, threads, blocks, registers: CUDA C++ Programming Guide, table of compute capabilities.
// Clocks: the boost clock of the data sheet for A100 and RTX 4090; 1.755 GHz is what an H100's 1.98 falls to
// under load [3]. L2: 5.5 to 5.7 TB/s measured on an H100 PCIe (chipsandcheese.com, 2023-07), which its clock
// brings to 5.5 at least; the A100's and the RTX 4090's likewise [lead]. launch_s: 1.5 us between kernels of
// a recorded step [lead]; 0.7 where blocks stand ready and wait [lead].
static const Card CARDS[] = {
    {"a100", "a100-80gb", 80, 1.410e9, 163, 164, 2048, 32, 0.95, 4.4e12, 1.5e-6, 0},
    {"h100", "h100", 90, 1.755e9, 227, 228, 2048, 32, 0.62, 5.5e12, 1.5e-6, 0.7e-6},
    {"h200", "h200", 90, 1.755e9, 227, 228, 2048, 32, 0.62, 5.5e12, 1.5e-6, 0.7e-6},
    {"rtx4090", "rtx4090", 89, 2.520e9, 99, 100, 1536, 24, 0.95, 5.0e12, 1.5e-6, 0},
};
enum { CARDS_COUNT = sizeof CARDS / sizeof *CARDS, PROCESSOR_REGISTERS = 65536 };

// No contention: units, L2 and memory serve every warp at once, up to their rates. A path may take this much
// longer, and verdicts on goals count with it.
static const double PATH_ERROR = 0.4;
// Bytes a cycle that one processor gets from L2, however few ask: 64 by the A100's whitepaper, of which seven
// tenths are reached [lead].
static const double PORT_BYTES = 0.7 * 64;
