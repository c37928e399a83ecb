// Multiply-adds as fast as they go: sums in registers and nothing else; part of each kernel set. What comes
// out is the ceiling that products are held against.
#pragma once
#include "engine/cpu/lanes.h"

// Enough independent sums to cover the latency of a multiply-add on two units.
static inline double peak(long rounds) {
    enum { SUMS = BLOCK_OUTPUTS * BLOCK_ROWS > 12 ? 20 : BLOCK_OUTPUTS > 1 && BLOCK_ROWS > 1 ? 6 : 3 };
    Lanes sum[SUMS], factor = lanes_set(0.999f), term = lanes_set(0.001f);
    float total = 0;
#pragma GCC unroll 24
    for (int i = 0; i < SUMS; i++) sum[i] = lanes_set((float)i);
    for (long n = 0; n < rounds; n++) {
#pragma GCC unroll 24
        for (int i = 0; i < SUMS; i++) sum[i] = lanes_fma(sum[i], factor, term);
    }
    for (int i = 0; i < SUMS; i++) total += lanes_sum(sum[i]);
    volatile float kept = total; // or there would be nothing to compute
    (void)kept;
    return 2.0 * LANES * SUMS * (double)rounds;
}
