// The latencies by which the machine adds up paths (run.c), and where each comes from. One set for all cards:
// those of 8.0, 8.9 and 9.0 differ by less than the error of a path, some 40%. Instructions cost nothing to
// fetch here, which on a card they do (results/gpu/log.md): compare two versions of a kernel by these paths,
// and time neither.
//
// [1] Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, arXiv 2402.13499 (A100, RTX
//     4090 and H100 side by side): L1 38 to 43 cycles, shared memory 29 to 30, L2 262 to 273;
//     mma.sync 33 cycles. Not yet read against it.
// [2] Abdelkhalik et al., Demystifying the Nvidia Ampere Architecture, arXiv 2208.11174: dependent
//     arithmetic takes 4 cycles. Not yet read against it.
// [3] Read off this engine's machine code for 9.0 (nvdisasm).
// [4] An H100, by tests/gpu/probe.c, 2026-11-28 (results/gpu).
// [lead] Plausible and unpublished, or published without a number that fits.
#pragma once

enum {
    WINDOW = 32
}; // instructions of a basic block that may pass one that waits: how far ptxas moves loads [lead]
enum { PROCESSOR_REGISTERS = 65536 };
enum {                         // cycles until a result can be used
    QUICK_CYCLES = 4,          // of most arithmetic [2]
    WIDE_CYCLES = 8,           // of doubles, and of products of 64 bits [lead]
    SLOW_CYCLES = 20,          // of exponentials, reciprocals, conversions [lead]
    DIVISION_CYCLES = 60,      // of what machine code does in many instructions [lead]
    PARAM_CYCLES = 8,          // of a launch's argument [lead]
    SHUFFLE_CYCLES = 25,       // [1]
    VOTE_CYCLES = 12,          // [lead]
    MATRIX_CYCLES = 33,        // of ldmatrix without conflicts [1]
    MMA_CYCLES = 33,           // [1]
    WGMMA_CYCLES = 60,         // of a group's wait, behind the time that the tensor cores take [lead]
    SHARED_CYCLES = 30,        // [1]
    WAVE_CYCLES = 2,           // of each pass of the 32 banks [3]
    L1_CYCLES = 35,            // [1]
    L2_CYCLES = 270,           // [1]; an asynchronous copy's too. [4]: 264 to 291, near and far
    ATOMIC_CYCLES = 330,       // in L2 [4]
    SHARED_ATOMIC_CYCLES = 60, // [lead]

    // that a warp stands still
    BRANCH_CYCLES = 6,       // [lead]
    BARRIER_CYCLES = 20,     // of a block, after its last warp [lead]
    WARP_SYNC_CYCLES = 4,    // [lead]
    PROXY_FENCE_CYCLES = 20, // [lead]
    FENCE_CYCLES = 680,      // MEMBAR.SC.GPU, which empties L1 [3], behind a store [4]
};
