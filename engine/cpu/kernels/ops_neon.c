// The lanes on NEON, which every 64-bit Arm has.
#include "engine/cpu/kernels/ops.h"

#if defined(__aarch64__)
#include "engine/cpu/kernels/lane_ops.h"

const CpuOps cpu_ops_neon = LANE_OPS("neon");
#endif
