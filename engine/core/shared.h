// Code that the host and a GPU share, so that both compute the same bits: only additions, multiplications and
// divisions, which round the same way everywhere.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define HOST_AND_DEVICE __host__ __device__
#else
#define HOST_AND_DEVICE
#endif

// Keys of logits, in the order of (logit, lower ids first); -0 is 0.
HOST_AND_DEVICE static inline uint64_t likeliest_key(float logit, int id) {
    uint32_t bits;
    if (logit == 0) logit = 0;
    memcpy(&bits, &logit, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~id;
}
HOST_AND_DEVICE static inline int likeliest_id(uint64_t key) { return (int)~(uint32_t)key; }
HOST_AND_DEVICE static inline float likeliest_logit(uint64_t key) {
    uint32_t bits = (uint32_t)(key >> 32);
    float logit;
    bits = bits >> 31 ? bits & 0x7fffffffu : ~bits;
    memcpy(&logit, &bits, sizeof logit);
    return logit;
}

// ln x for x >= 1 (0 for less), within 1e-15: of 2^n y the series of y in (y - 1) / (y + 1), up to 0.2.
HOST_AND_DEVICE static inline double shared_log(double x) {
    double n = 0, sum = 0;
    if (!(x > 1)) return 0;
    for (; x >= 1.5; x *= 0.5) n++;
    double s = (x - 1) / (x + 1);
    for (int k = 25; k > 0; k -= 2) sum = sum * (s * s) + 1.0 / k;
    return n * 0.693147180559945309417 + 2 * s * sum;
}

// ln p of a token, of its logit, its row's largest, and ln of the row's sum of e^(logit - the largest).
HOST_AND_DEVICE static inline float log_chance(float logit, float largest, float log_sum) {
    return logit - largest - log_sum;
}

// The order of a draft's guesses: the larger score first (a sum of ln p along a path), the earlier of equals.
HOST_AND_DEVICE static inline bool guess_before(float score, int at, float other, int other_at) {
    return score > other || (score == other && at < other_at);
}
