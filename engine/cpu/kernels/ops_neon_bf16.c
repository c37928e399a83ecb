// The lanes on NEON with products of bf16 pairs (from Arm v8.6 on: Neoverse V1, N2, V2); all else as neon.
#include "engine/cpu/kernels/ops.h"

#if defined(__aarch64__)
#include "engine/cpu/kernels/attend.h"
#include "engine/cpu/kernels/peak.h"
#include "engine/cpu/kernels/product.h"
#include "engine/cpu/kernels/rows.h"

const CpuOps cpu_ops_neon_bf16 = {.name = "neon_bf16",
                                  .pack_unit = 1,
                                  .packed_bytes = packed_bytes,
                                  .pack = pack,
                                  .matmul = matmul,
                                  .rmsnorm = rmsnorm,
                                  .rope = rope,
                                  .gate = gate,
                                  .attend = attend,
                                  .peak = peak};
#endif
