// Multiply-adds as fast as they go: sums in registers and nothing else; part of each kernel set. What comes
// out is the ceiling that products are held against. Where the set multiplies pairs of bf16, only products of
// bf16 with bf16 do.
#pragma once
#include "engine/cpu/kernels/lanes.h"
#include "engine/cpu/kernels/ops.h"

enum { PEAK_BLOCK = BLOCK_OUTPUTS * BLOCK_ROWS };

// Enough independent sums to cover the latency of a multiply-add on two units.
INLINE double peak_lanes(bool pairs, long rounds) {
    enum { SUMS = PEAK_BLOCK > 12 ? 20 : BLOCK_OUTPUTS > 1 && BLOCK_ROWS > 1 ? 6 : 3 };
    Lanes sum[SUMS], factor = lanes_set(0.3f), term = lanes_set(0.7f);
    float total = 0, start[LANES];
#pragma GCC unroll 24
    for (int i = 0; i < SUMS; i++) {
        for (int j = 0; j < LANES; j++) start[j] = (float)(i * LANES + j); // of equals one would be computed
        sum[i] = lanes_load(start);
    }
    for (long n = 0; n < rounds; n++) {
#pragma GCC unroll 24
        for (int i = 0; i < SUMS; i++)
            sum[i] = pairs ? lanes_pairs(factor, term, sum[i]) : lanes_fma(sum[i], factor, term);
    }
    for (int i = 0; i < SUMS; i++) total += lanes_sum(sum[i]);
    volatile float kept = total; // or there would be nothing to compute
    (void)kept;
    return 2.0 * (pairs ? LANE_PAIRS : LANES) * SUMS * (double)rounds;
}

static inline double peak(Compute compute, long rounds) {
    return HAS_PAIRS && compute == COMPUTE_BF16 ? peak_lanes(true, rounds) : peak_lanes(false, rounds);
}
