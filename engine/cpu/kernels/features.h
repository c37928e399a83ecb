// The features of this processor that the system lets us use, and the choice of a kernel set by them.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

// --- features

// Whether this process can use the matrix tiles that a processor has (with bf16 products, besides
// avx512_bf16).
typedef enum {
    TILES_NONE,    // the processor has none
    TILES_UNSAVED, // the system doesn't save their registers
    TILES_DENIED,  // the system saves them, but denies them to this process
    TILES_GRANTED
} TilesState;

typedef struct CpuFeatures {
    bool avx2;        // with FMA and f16c
    bool avx_vnni;    // besides avx2
    bool avx512;      // F, BW, DQ, VL
    bool avx512_vnni; // besides avx512
    bool avx512_bf16; // besides avx512
    bool neon_bf16;   // on a 64-bit Arm, which always has neon
    TilesState tiles;
} CpuFeatures;

// The processor's and the system's own bits: registers of CPUID by leaf, and XCR0, the registers that the
// system saves.
typedef struct CpuWords {
    unsigned leaf1_ecx, leaf7_ebx, leaf7_ecx, leaf7_edx, leaf7_1_eax;
    unsigned saved;
} CpuWords;

// The features in these bits. Tiles that the system saves are taken to be granted.
CpuFeatures cpu_features_of(const CpuWords *w);

// This processor's features. Requests the tiles from the system, which grants them to the whole process for
// good.
CpuFeatures cpu_features(void);

// --- a check in a process of its own, which its instructions may kill without killing ours
//
// A signal handler would have to be the whole process's for a moment, with other threads running. A copy of
// the process has one thread, and its exit status is the result. It takes 0.1 ms, and per GB of the process's
// own memory 0.6 ms more with huge pages, 34 with small ones (Zen 4, 2026-11-22).

typedef enum {
    TRIAL_PASSED,
    TRIAL_FAILED, // the check returned false
    TRIAL_KILLED, // the process died
    TRIAL_NOT_RUN // the process could not be started, or its end was not reported
} Trial;

// The check must not take locks or memory: other threads may own locks, and they don't exist in the copy.
Trial trial_run(bool (*check)(void));

// --- tiles

// Whether the kernels on matrix tiles are used here. Asks the system, then tries the tiles themselves: a
// virtual machine may report tiles that don't work.
bool tiles_usable(void);

// One line: the missing part, and the fix. NULL if tiles are used, or if the processor has none.
const char *tiles_refused(void);

// The same for a given state. tried: the result of a trial of tiles that are granted.
const char *tiles_refusal(TilesState state, Trial tried);

// --- kernel sets: for the engine's operations and for training's

// A row of a table of kernel sets, slowest first.
typedef struct KernelSet {
    const void *kernels;
    const char *const *name;
    bool (*available)(void); // on this processor
} KernelSet;

// Values of `available`, compiled for any processor.
bool kernel_set_always(void);
bool kernel_set_avx2(void);
bool kernel_set_avx_vnni(void);
bool kernel_set_avx512(void);
bool kernel_set_avx512_vnni(void);
bool kernel_set_avx512_bf16(void);
bool kernel_set_neon_bf16(void);

// The kernels of the set with this name or, if name is NULL or empty, of the best set on this processor.
// NULL, with e filled, if there isn't such a set (the message lists them all).
const void *kernel_set_find(const KernelSet *sets, size_t count, const char *name, Error *e);
