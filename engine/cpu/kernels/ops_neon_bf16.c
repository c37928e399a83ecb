// The lanes on NEON with products of bf16 pairs (from Arm v8.6 on: Neoverse V1, N2, V2); all else as neon.
#include "engine/cpu/kernels/ops.h"

#if defined(__aarch64__)
#include "engine/cpu/kernels/lane_ops.h"

const CpuOps cpu_ops_neon_bf16 = LANE_OPS("neon_bf16");
#endif
