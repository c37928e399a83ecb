// The lanes on NEON, which every 64-bit Arm has.
#include "engine/cpu/kernels/ops.h"

#if defined(__aarch64__)
#include "engine/cpu/kernels/attend.h"
#include "engine/cpu/kernels/peak.h"
#include "engine/cpu/kernels/product.h"
#include "engine/cpu/kernels/rows.h"

const CpuOps cpu_ops_neon = {.name = "neon",
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
