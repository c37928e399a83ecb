// The lanes on AVX2 with fused multiply-add.
#include "engine/cpu/kernels/ops.h"

#if defined(__x86_64__)
#include "engine/cpu/kernels/lane_ops.h"

const CpuOps cpu_ops_avx2 = LANE_OPS("avx2");
#endif
