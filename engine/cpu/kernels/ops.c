// The kernel sets of this build, slowest first. The first ones run on any processor, so a search always finds
// one.
#include "engine/cpu/kernels/ops.h"

#include "engine/cpu/kernels/features.h"

#include <assert.h>
#include <string.h>

#define SET(ops, available) \
    { &ops, &ops.name, available }

static const KernelSet SETS[] = {
    SET(cpu_ops_reference, kernel_set_always),
    SET(cpu_ops_portable, kernel_set_always),
#if defined(__x86_64__)
    SET(cpu_ops_avx2, kernel_set_avx2),
    SET(cpu_ops_avx_vnni, kernel_set_avx_vnni),
    SET(cpu_ops_avx512, kernel_set_avx512),
    SET(cpu_ops_avx512_vnni, kernel_set_avx512_vnni),
    SET(cpu_ops_avx512_bf16, kernel_set_avx512_bf16),
    SET(cpu_ops_amx, tiles_usable),
#elif defined(__aarch64__)
    SET(cpu_ops_neon, kernel_set_always),
    SET(cpu_ops_neon_bf16, kernel_set_neon_bf16),
#endif
};
enum { SET_COUNT = sizeof SETS / sizeof *SETS };

size_t cpu_ops_count(void) { return SET_COUNT; }

const CpuOps *cpu_ops_at(size_t i, bool *available) {
    assert(i < SET_COUNT);
    if (available) *available = SETS[i].available();
    return SETS[i].kernels;
}

const CpuOps *cpu_ops_find(const char *name, Error *e) {
    const char *refused = name && strcmp(name, "amx") == 0 ? tiles_refused() : NULL;
    if (!refused) return kernel_set_find(SETS, SET_COUNT, name, e);
    error_input(e, "%s", refused);
    return NULL;
}
