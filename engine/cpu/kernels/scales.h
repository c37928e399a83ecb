// The scales of coded weights (engine/model/tensor.h), read for kernels; part of each kernel set.
#pragma once
#include "engine/cpu/kernels/lanes.h"
#include "engine/cpu/kernels/ops.h"

enum { SCALES = 64 }; // groups whose scales are read at a time

// `low` is the group's low (engine/model/tensor.h) or, for 8 bits, -CODE_BASE times its scale; for 6, -32.
typedef struct GroupScales {
    float scale[SCALES + LANES], low[SCALES + LANES]; // with room for zeros
} GroupScales;
#define CODE_BASE (0x1p15f + 128)

// --- a group's bytes become floats in registers: gathered on the stack first, they'd be read as a vector,
// which has to wait until the stores of its parts retire; that took a fifth of a token's time

static inline float half_at(const unsigned char *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
#if defined(__F16C__)
    return _cvtsh_ss(half);
#else
    return f16_to_f32(half);
#endif
}

typedef int32_t EightInts __attribute__((vector_size(32)));
typedef uint32_t EightBits __attribute__((vector_size(32)));
typedef float EightFloats __attribute__((vector_size(32)));

INLINE void scale_eight(const unsigned char *p, bool is_signed, float factor, float *out) {
    const EightBits up = {24, 16, 8, 0, 24, 16, 8, 0}, down = {0, 8, 16, 24, 0, 8, 16, 24};
    uint32_t a, b;
    memcpy(&a, p, sizeof a);
    memcpy(&b, p + sizeof a, sizeof b);
    EightBits bytes = {a, a, a, a, b, b, b, b};
    EightInts whole = is_signed ? (EightInts)(bytes << up) >> 24 : (EightInts)(bytes >> down & 255);
    EightFloats x = __builtin_convertvector(whole, EightFloats) * factor;
    memcpy(out, &x, sizeof x);
}

static __attribute__((noinline)) void read_nests(const unsigned char *at, int count, GroupScales *out) {
    for (int n = 0; n < count; n++, at += sizeof(ScaleNest)) {
        float scale = half_at(at + offsetof(ScaleNest, scale)), low = half_at(at + offsetof(ScaleNest, low));
        scale_eight(at + offsetof(ScaleNest, factor), false, scale, out->scale + n * GROUPS_NESTED);
        scale_eight(at + offsetof(ScaleNest, lows), false, -low, out->low + n * GROUPS_NESTED);
    }
}

static __attribute__((noinline)) void read_times(const unsigned char *at, int count, GroupScales *out) {
    for (int n = 0; n < count; n++, at += sizeof(ScaleTimes)) {
        const unsigned char *factor = at + offsetof(ScaleTimes, factor);
        float of = half_at(at + offsetof(ScaleTimes, scale)), *scale = out->scale + n * GROUPS_TIMES;
        scale_eight(factor, true, of, scale);
        scale_eight(factor + 8, true, of, scale + 8);
        for (int i = 0; i < GROUPS_TIMES; i++) out->low[n * GROUPS_TIMES + i] = -32 * scale[i];
    }
}
_Static_assert(GROUPS_NESTED == 8 && GROUPS_TIMES == 16, "eights");

// --- other forms

INLINE void read_halves(const unsigned char *at, int count, float below, GroupScales *out) {
    uint16_t last[SCALES] = {0};
    if (count < SCALES) at = memcpy(last, at, (size_t)count * sizeof *last);
    for (int i = 0; i < count; i += LANES) {
        Lanes scale = lanes_f16((const uint16_t *)(const void *)at + i);
        lanes_store(out->scale + i, scale);
        lanes_store(out->low + i, lanes_mul(scale, lanes_set(below)));
    }
}

// Two f16 a group.
static __attribute__((noinline)) void read_half_pairs(const unsigned char *at, int count, GroupScales *out) {
    for (int i = 0; i < count; i += LANES / 2) {
        uint16_t last[LANES] = {0};
        float both[LANES];
        const unsigned char *from = at + (size_t)i * 4;
        if (count - i < LANES / 2) from = memcpy(last, from, (size_t)(count - i) * 4);
        lanes_store(both, lanes_f16((const uint16_t *)(const void *)from));
        for (int k = 0; k < LANES / 2; k++) {
            out->scale[i + k] = both[2 * k];
            out->low[i + k] = both[2 * k + 1];
        }
    }
}

INLINE void read_pairs(const unsigned char *at, int count, float *restrict scale, float *restrict low) {
    for (int i = 0; i < count; i++) {
        memcpy(&scale[i], at + (size_t)i * sizeof(ScalePair), sizeof *scale);
        memcpy(&low[i], at + (size_t)i * sizeof(ScalePair) + sizeof *scale, sizeof *low);
    }
}

// Groups [first, first + count) of a row, count <= SCALES; first is a multiple of SCALES.
INLINE void read_scales(const Tensor *w, const unsigned char *of_row, int first, int count,
                        GroupScales *out) {
    int bits = w->codes.bits;
    float below = bits == 8 ? -CODE_BASE : -(float)(1 << (bits - 1));
    switch (w->codes.kind) {
    case SCALES_F16: read_halves(of_row + (size_t)first * sizeof(uint16_t), count, below, out); break;
    case SCALES_F32:
        for (int i = 0; i < count; i++) {
            memcpy(&out->scale[i], of_row + (size_t)(first + i) * sizeof(float), sizeof(float));
            out->low[i] = below * out->scale[i];
        }
        break;
    case SCALES_PAIRS:
        of_row += (size_t)first * sizeof(ScalePair);
        for (int i = 0; count >= LANES && i < count; i += LANES) { // the last ones again, not beyond them
            int from = i + LANES < count ? i : count - LANES;
            read_pairs(of_row + (size_t)from * sizeof(ScalePair), LANES, out->scale + from, out->low + from);
        }
        if (count < LANES) read_pairs(of_row, count, out->scale, out->low);
        break;
    case SCALES_NESTED:
        read_nests(of_row + (size_t)(first / GROUPS_NESTED) * sizeof(ScaleNest), count / GROUPS_NESTED, out);
        break;
    case SCALES_HALVES: read_half_pairs(of_row + (size_t)first * 2 * sizeof(uint16_t), count, out); break;
    case SCALES_TIMES:
        read_times(of_row + (size_t)(first / GROUPS_TIMES) * sizeof(ScaleTimes), count / GROUPS_TIMES, out);
        break;
    }
}

INLINE bool around_middle(const Tensor *w) {
    return w->codes.kind == SCALES_F16 || w->codes.kind == SCALES_F32;
}
