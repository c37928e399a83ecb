// Conversions between the three float formats of weights. bf16 and f16 are passed as uint16_t.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum { DTYPE_F32, DTYPE_F16, DTYPE_BF16 } Dtype;

static inline size_t dtype_size(Dtype t) { return t == DTYPE_F32 ? 4 : 2; }
const char *dtype_name(Dtype t); // "F32", "F16", "BF16", as safetensors writes them

static inline float bf16_to_f32(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

// Nearest, ties to even; a NaN stays a NaN (its payload is cut, its quiet bit set).
static inline uint16_t f32_to_bf16(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline float bf16_round(float f) { return bf16_to_f32(f32_to_bf16(f)); }

float f16_to_f32(uint16_t h);

// Nearest, ties to even; 65520 and above become infinity, and a NaN becomes the quiet NaN of its sign.
uint16_t f32_to_f16(float f);

// f16_to_f32(f32_to_f16(f)) without a branch, so that compilers can vectorise loops of it.
static inline float f16_round(float f) {
    uint32_t u, sign, small;
    memcpy(&u, &f, 4);
    sign = u & 0x80000000u;
    u &= 0x7fffffffu;
    float low;
    memcpy(&low, &u, 4);
    low = (low + 0.5f) - 0.5f; // below 2^-14, f16 has the spacing of floats near 0.5
    memcpy(&small, &low, 4);
    uint32_t normal = (u + 0xfffu + (u >> 13 & 1u)) & ~0x1fffu;
    uint32_t out = u < 0x38800000u ? small : normal >= 0x47800000u ? 0x7f800000u : normal;
    out = (u > 0x7f800000u ? 0x7fc00000u : out) | sign;
    memcpy(&f, &out, 4);
    return f;
}

static inline float dtype_round(Dtype t, float f) {
    return t == DTYPE_F32 ? f : t == DTYPE_F16 ? f16_round(f) : bf16_round(f);
}

// Element i of an array of type t; data may have any alignment.
float dtype_load(Dtype t, const void *data, size_t i);
