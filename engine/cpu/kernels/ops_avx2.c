// The lanes on AVX2 with fused multiply-add.
#include "engine/cpu/kernels/ops.h"

#if defined(__x86_64__)
#include "engine/cpu/kernels/attend.h"
#include "engine/cpu/kernels/peak.h"
#include "engine/cpu/kernels/product.h"
#include "engine/cpu/kernels/rows.h"

const CpuOps cpu_ops_avx2 = {.name = "avx2",
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
