// Sixteen lanes on the four-lane registers that every 64-bit Arm has; see lanes.h, which includes this.
#pragma once
#if defined(__aarch64__)
#include "engine/base/numbers.h"

#include <arm_neon.h>

enum { BLOCK_OUTPUTS = 2, BLOCK_ROWS = 2, BLOCK_QUERIES = 4 };
typedef struct {
    float32x4_t q[4];
} Lanes;

static inline Lanes lanes_set(float x) {
    float32x4_t q = vdupq_n_f32(x);
    return (Lanes){{q, q, q, q}};
}
static inline Lanes lanes_load(const float *p) {
    return (Lanes){{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}
static inline void lanes_store(float *p, Lanes x) {
    for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, x.q[i]);
}
static inline Lanes lanes_mul(Lanes a, Lanes b) {
    for (int i = 0; i < 4; i++) a.q[i] = vmulq_f32(a.q[i], b.q[i]);
    return a;
}
static inline Lanes lanes_fma(Lanes a, Lanes b, Lanes c) {
    for (int i = 0; i < 4; i++) c.q[i] = vfmaq_f32(c.q[i], a.q[i], b.q[i]);
    return c;
}
static inline Lanes lanes_f16(const uint16_t *p) {
    Lanes x;
    for (int i = 0; i < 4; i++) x.q[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i)));
    return x;
}
static inline uint32x4_t pairs_of_8(const uint16_t *p) { return vreinterpretq_u32_u16(vld1q_u16(p)); }
static inline Lanes lanes_bf16_even(const uint16_t *p) {
    Lanes x;
    for (int i = 0; i < 4; i++) x.q[i] = vreinterpretq_f32_u32(vshlq_n_u32(pairs_of_8(p + 8 * i), 16));
    return x;
}
static inline Lanes lanes_bf16_odd(const uint16_t *p) {
    Lanes x;
    uint32x4_t high = vdupq_n_u32(0xffff0000u);
    for (int i = 0; i < 4; i++) x.q[i] = vreinterpretq_f32_u32(vandq_u32(pairs_of_8(p + 8 * i), high));
    return x;
}

static inline float lanes_sum(Lanes x) {
    float32x4_t four = vaddq_f32(vaddq_f32(x.q[0], x.q[2]), vaddq_f32(x.q[1], x.q[3]));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
// sum + a . b of the two bf16 in each lane, 32 neighbours as they are: without shifts and masks.
enum { HAS_PAIRS = 1 };
static inline Lanes lanes_pairs(Lanes a, Lanes b, Lanes sum) {
    for (int i = 0; i < 4; i++)
        sum.q[i] = vbfdotq_f32(sum.q[i], vreinterpretq_bf16_f32(a.q[i]), vreinterpretq_bf16_f32(b.q[i]));
    return sum;
}
#endif
#endif
