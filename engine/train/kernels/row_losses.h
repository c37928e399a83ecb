// The losses of one row of logits, forward and backward; part of each kernel set.
#pragma once
#include "engine/train/kernels/rows.h"

// The target's logit is taken before it is gone: the probability itself may be 0.
static inline float cross_entropy_forward(float *logits, int target, int n) {
    float highest = highest_of(logits, n), wanted = logits[target];
    float sum = exponentials(logits, 1.0f, highest, n);
    multiply(logits, 1.0f / sum, n);
    return logf(sum) + highest - wanted;
}

static inline void cross_entropy_backward(float *p, int target, float scale, int n) {
    multiply(p, scale, n);
    p[target] -= scale;
}

// wanted sums to one, so that the sum of -wanted log p is what the logits are normalised by, less their mean.
static inline float distillation_forward(float *logits, const float *wanted, int n) {
    float highest = highest_of(logits, n), mean = dot(logits, wanted, n);
    float sum = exponentials(logits, 1.0f, highest, n);
    multiply(logits, 1.0f / sum, n);
    return logf(sum) + highest - mean;
}

static inline void distillation_backward(float *p, const float *wanted, float scale, int n) {
    const Lanes by = lanes_set(scale), minus = lanes_set(-1);
    for (int i = 0; i < n; i += LANES) {
        Lanes apart = lanes_fma(lanes_take(wanted + i, n - i, 0), minus, lanes_take(p + i, n - i, 0));
        lanes_give(p + i, n - i, lanes_times(apart, by));
    }
}
