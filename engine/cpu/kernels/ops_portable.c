// The lanes in plain C: what any processor runs, and what other sets fall back to.
#define LANES_PLAIN
#include "engine/cpu/kernels/attend.h"

#include "engine/cpu/kernels/peak.h"
#include "engine/cpu/kernels/product.h"
#include "engine/cpu/kernels/rows.h"

const CpuOps cpu_ops_portable = {.name = "portable",
                                 .pack_unit = 1,
                                 .packed_bytes = packed_bytes,
                                 .pack = pack,
                                 .matmul = matmul,
                                 .rmsnorm = rmsnorm,
                                 .rope = rope,
                                 .gate = gate,
                                 .attend = attend,
                                 .peak = peak};
