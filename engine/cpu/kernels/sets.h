// Tables of kernel sets, slowest first, and the choice of one: for the engine's operations and for
// training's.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct KernelSet {
    const void *kernels;
    const char *const *name;
    bool (*available)(void); // on this processor
} KernelSet;

// What processors are asked, in code that every processor runs.
bool kernel_set_always(void);
bool kernel_set_avx2(void);
bool kernel_set_avx512(void);
bool kernel_set_avx512_bf16(void);
bool kernel_set_neon_bf16(void);

// The kernels of the best set that this processor has, or of the one named; NULL with e filled (the message
// lists them).
const void *kernel_set_find(const KernelSet *sets, size_t count, const char *name, Error *e);
