// Every operation in lanes, and the row of the table that they make; each ops_*.c that is made of lanes alone
// includes it under its own compiler flags.
#pragma once
#include "engine/cpu/kernels/attend.h"
#include "engine/cpu/kernels/peak.h"
#include "engine/cpu/kernels/product.h"
#include "engine/cpu/kernels/rows.h"

#define LANE_OPS(set)                                                                              \
    {                                                                                              \
        .name = set, .pack_unit = 1, .packed_bytes = packed_bytes, .pack = pack, .matmul = matmul, \
        .rmsnorm = rmsnorm, .rope = rope, .gate = gate, .attend = attend, .peak = peak             \
    }
