// The sets of this build, slowest first; kernels.h describes what each of them holds. Which ones run here is
// asked of the processor each time, so nothing is kept between calls.
#include "engine/train/kernels/kernels.h"

#include "engine/cpu/kernels/features.h"

#define SET(kernels, available) \
    { &kernels, &kernels.name, available }

static const KernelSet SETS[] = {
    SET(train_kernels_portable, kernel_set_always),
#if defined(__x86_64__)
    SET(train_kernels_avx2, kernel_set_avx2),
    SET(train_kernels_avx512_bf16, kernel_set_avx512_bf16),
#elif defined(__aarch64__)
    SET(train_kernels_neon, kernel_set_always),
#endif
};
enum { SET_COUNT = sizeof SETS / sizeof *SETS };

size_t train_kernels_count(void) { return SET_COUNT; }

const TrainKernels *train_kernels_at(size_t i, bool *available) {
    if (available) *available = SETS[i].available();
    return SETS[i].kernels;
}

const TrainKernels *train_kernels_find(const char *name, Error *e) {
    return kernel_set_find(SETS, SET_COUNT, name, e);
}
