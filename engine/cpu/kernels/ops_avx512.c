// The lanes on AVX-512.
#include "engine/cpu/kernels/ops.h"

#if defined(__x86_64__)
#include "engine/cpu/kernels/lane_ops.h"

const CpuOps cpu_ops_avx512 = LANE_OPS("avx512");
#endif
