// f16 in software, for every machine. Invariant: a conversion there and back returns the same bits, except
// for the payload of a NaN.
#include "engine/base/numbers.h"

#include <math.h>

const char *dtype_name(Dtype t) { return t == DTYPE_F32 ? "F32" : t == DTYPE_F16 ? "F16" : "BF16"; }

float f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31u, fraction = h & 1023u;
    float f;
    if (exponent == 0) {
        f = (float)fraction * 0x1p-24f; // zero and subnormals, exact
        return sign ? -f : f;
    }
    uint32_t u = sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
    memcpy(&f, &u, 4);
    return f;
}

uint16_t f32_to_f16(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return sign | 0x7e00u;
    if (u >= 0x477ff000u) return sign | 0x7c00u; // 65520 and above round to infinity
    if (u < 0x38800000u)
        return (uint16_t)(sign | (uint16_t)lrintf(fabsf(f) * 0x1p24f)); // subnormal: ties to even
    return (uint16_t)(sign | (u - 0x38000000u + 0xfffu + (u >> 13 & 1u)) >> 13);
}

float dtype_load(Dtype t, const void *data, size_t i) {
    float f;
    uint16_t h;
    if (t == DTYPE_F32) {
        memcpy(&f, (const unsigned char *)data + i * sizeof f, sizeof f);
        return f;
    }
    memcpy(&h, (const unsigned char *)data + i * sizeof h, sizeof h);
    return t == DTYPE_F16 ? f16_to_f32(h) : bf16_to_f32(h);
}
