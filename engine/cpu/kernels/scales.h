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

enum { NESTS = SCALES / GROUPS_NESTED };
_Static_assert(2 * NESTS == LANES, "the halves of all nests are one vector");

static __attribute__((noinline)) void read_nests(const unsigned char *at, int count, GroupScales *out) {
    uint16_t halves[LANES] = {0};
    uint8_t factors[SCALES] = {0}, lows[SCALES] = {0};
    float of[LANES];
    for (int n = 0; n < count; n++) {
        const unsigned char *nest = at + (size_t)n * sizeof(ScaleNest);
        memcpy(&halves[n], nest + offsetof(ScaleNest, scale), sizeof *halves);
        memcpy(&halves[NESTS + n], nest + offsetof(ScaleNest, low), sizeof *halves);
        memcpy(factors + n * GROUPS_NESTED, nest + offsetof(ScaleNest, factor), GROUPS_NESTED);
        memcpy(lows + n * GROUPS_NESTED, nest + offsetof(ScaleNest, lows), GROUPS_NESTED);
    }
    lanes_store(of, lanes_f16(halves));
    for (int i = 0; i < count * GROUPS_NESTED; i++) {
        out->scale[i] = (float)factors[i];
        out->low[i] = (float)lows[i];
    }
    for (int n = 0; n < count; n++)
        for (int i = n * GROUPS_NESTED; i < (n + 1) * GROUPS_NESTED; i++) {
            out->scale[i] *= of[n];
            out->low[i] *= -of[NESTS + n];
        }
}

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

static __attribute__((noinline)) void read_times(const unsigned char *at, int count, GroupScales *out) {
    uint16_t halves[LANES] = {0};
    int8_t factors[LANES * GROUPS_TIMES]; // of our own: the loop is vectorised
    float of[LANES];
    for (int n = 0; n < count; n++) {
        const unsigned char *times = at + (size_t)n * sizeof(ScaleTimes);
        memcpy(&halves[n], times + offsetof(ScaleTimes, scale), sizeof *halves);
        memcpy(factors + n * GROUPS_TIMES, times + offsetof(ScaleTimes, factor), GROUPS_TIMES);
    }
    lanes_store(of, lanes_f16(halves));
    for (int n = 0; n < count; n++)
        for (int i = n * GROUPS_TIMES; i < (n + 1) * GROUPS_TIMES; i++) {
            // cppcheck-suppress uninitvar
            out->scale[i] = (float)factors[i] * of[n];
            out->low[i] = -32 * out->scale[i];
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
