// What this processor can do and the system lets us use.
#pragma once
#include <stdbool.h>

// What stands between this process and the matrix tiles that a processor names (with bf16 products, beside
// avx512_bf16).
typedef enum {
    TILES_NONE,    // it names none
    TILES_UNSAVED, // the system does not save their registers
    TILES_DENIED,  // it does, but refuses them to this process
    TILES_GRANTED  // nothing
} TilesState;

typedef struct CpuFeatures {
    bool avx2;        // with FMA and f16c
    bool avx512;      // F, BW, DQ, VL
    bool avx512_bf16; // beside avx512
    bool neon_bf16;   // of a 64-bit Arm, which always has neon
    TilesState tiles;
} CpuFeatures;

// What processor and system answer, in their own bits: registers of CPUID by leaf, and XCR0, the registers
// that the system saves.
typedef struct CpuWords {
    unsigned leaf1_ecx, leaf7_ebx, leaf7_edx, leaf7_1_eax;
    unsigned saved;
} CpuWords;

// What the words say, taking for granted that tiles, where they are saved, are this process's too.
CpuFeatures cpu_features_of(const CpuWords *w);

// Asks the processor, and the system for the tiles' state (once granted it stays so for the whole process).
CpuFeatures cpu_features(void);
