// The lanes on AVX-512 with products of bf16 pairs; everything else as on AVX-512.
#if defined(__x86_64__)
#include "engine/cpu/attend.h"
#include "engine/cpu/product.h"
#include "engine/cpu/rows.h"

// Products of pairs with sums in registers and nothing else: the ceiling (see peak.h).
static double peak_pairs(long rounds) {
    enum { SUMS = 20 };
    Lanes sum[SUMS], factor = lanes_set(0.3f), term = lanes_set(0.7f);
    float total = 0;
#pragma GCC unroll 24
    for (int i = 0; i < SUMS; i++) sum[i] = lanes_set((float)i);
    for (long n = 0; n < rounds; n++) {
#pragma GCC unroll 24
        for (int i = 0; i < SUMS; i++) sum[i] = lanes_pairs(factor, term, sum[i]);
    }
    for (int i = 0; i < SUMS; i++) total += lanes_sum(sum[i]);
    volatile float kept = total; // or there would be nothing to compute
    (void)kept;
    return 2.0 * LANE_PAIRS * SUMS * (double)rounds;
}

const CpuOps cpu_ops_avx512_bf16 = {.name = "avx512_bf16",
                                    .pack_unit = 1,
                                    .packed_bytes = packed_bytes,
                                    .pack = pack,
                                    .matmul = matmul,
                                    .rmsnorm = rmsnorm,
                                    .rope = rope,
                                    .gate = gate,
                                    .attend = attend,
                                    .peak = peak_pairs};
#endif
