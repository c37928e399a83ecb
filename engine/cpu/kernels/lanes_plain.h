// Sixteen lanes in C that any compiler lowers to the processor's vector unit; see lanes.h, which includes
// this if it has nothing better.
#pragma once
#include "engine/base/numbers.h"

enum { BLOCK_OUTPUTS = 2, BLOCK_ROWS = 1, BLOCK_QUERIES = 2 };
typedef float Quarter __attribute__((vector_size(16))); // the width of the smallest vector unit
typedef uint32_t QuarterBits __attribute__((vector_size(16)));
typedef struct {
    Quarter q[4];
} Lanes;

static inline Lanes lanes_load(const float *p) {
    Lanes x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline void lanes_store(float *p, Lanes x) { memcpy(p, &x, sizeof x); }
static inline Lanes lanes_set(float x) {
    Quarter q = {x, x, x, x};
    return (Lanes){{q, q, q, q}};
}
static inline Lanes lanes_mul(Lanes a, Lanes b) {
    for (int i = 0; i < 4; i++) a.q[i] *= b.q[i];
    return a;
}
static inline Lanes lanes_fma(Lanes a, Lanes b, Lanes c) { // rounded twice
    for (int i = 0; i < 4; i++) c.q[i] += a.q[i] * b.q[i];
    return c;
}
// Exponent and fraction are shifted into place and multiplied by 2^112: subnormals come out right by
// themselves, the largest exponent is set by hand.
static inline Quarter quarter_f16(const uint16_t *p) {
    uint16_t q[4];
    memcpy(q, p, sizeof q);
    QuarterBits h = {q[0], q[1], q[2], q[3]}, magnitude = h & 0x7fffu;
    Quarter x = (Quarter)(magnitude << 13) * 0x1p112f;
    QuarterBits special = (QuarterBits)(magnitude >= 0x7c00u) & 0x7f800000u;
    return (Quarter)((QuarterBits)x | special | (h & 0x8000u) << 16);
}
static inline Lanes lanes_f16(const uint16_t *p) {
    return (Lanes){{quarter_f16(p), quarter_f16(p + 4), quarter_f16(p + 8), quarter_f16(p + 12)}};
}
static inline QuarterBits quarter_bits(const uint16_t *p) {
    QuarterBits bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
}
static inline Lanes lanes_bf16_even(const uint16_t *p) {
    Lanes x;
    for (int i = 0; i < 4; i++) x.q[i] = (Quarter)(quarter_bits(p + 8 * i) << 16);
    return x;
}
static inline Lanes lanes_bf16_odd(const uint16_t *p) {
    Lanes x;
    for (int i = 0; i < 4; i++) x.q[i] = (Quarter)(quarter_bits(p + 8 * i) & 0xffff0000u);
    return x;
}
static inline float lanes_sum(Lanes x) {
    Quarter four = (x.q[0] + x.q[2]) + (x.q[1] + x.q[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
}
