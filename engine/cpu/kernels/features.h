// What this processor can do and the system lets us use.
#pragma once
#include <stdbool.h>

typedef struct CpuFeatures {
    bool avx2;        // with FMA and f16c
    bool avx512;      // F, BW, DQ, VL
    bool avx512_bf16; // beside avx512
    bool amx;         // beside avx512_bf16, tiles with bf16 products; the system has granted their state
} CpuFeatures;

// Asks the processor, and the system for the tiles' state (once granted it stays so for the whole process).
CpuFeatures cpu_features(void);
