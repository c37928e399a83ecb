// Coded weights by their definition: what kernels are compared with.
#include "engine/model/tensor.h"

#include <math.h>
#include <string.h>

static size_t groups_of(const Tensor *t) { return (size_t)(t->columns / t->codes.group); }

size_t tensor_row_bytes(const Tensor *t) {
    size_t columns = (size_t)t->columns;
    return t->codes.bits ? columns * (size_t)t->codes.bits / 8 : columns * dtype_size(t->dtype);
}

size_t tensor_row_scale_bytes(const Tensor *t) {
    if (!t->codes.bits) return 0;
    switch (t->codes.kind) {
    case SCALES_F16: return groups_of(t) * sizeof(uint16_t);
    case SCALES_F32: return groups_of(t) * sizeof(float);
    case SCALES_PAIRS: return groups_of(t) * sizeof(ScalePair);
    case SCALES_NESTED: return groups_of(t) / GROUPS_NESTED * sizeof(ScaleNest);
    case SCALES_HALVES: return groups_of(t) * 2 * sizeof(uint16_t);
    case SCALES_TIMES: return groups_of(t) / GROUPS_TIMES * sizeof(ScaleTimes);
    }
    return 0;
}

Tensor tensor_rows(const Tensor *t, int first, int count) {
    Tensor part = *t;
    part.data = (const unsigned char *)t->data + (size_t)first * tensor_row_bytes(t);
    part.rows = count;
    if (t->codes.bits)
        part.codes.scales =
            (const unsigned char *)t->codes.scales + (size_t)first * tensor_row_scale_bytes(t);
    return part;
}

ScalePair tensor_scale(const Tensor *t, size_t row, size_t group) {
    const unsigned char *of_row = (const unsigned char *)t->codes.scales + row * tensor_row_scale_bytes(t);
    ScalePair pair = {0, 0};
    ScaleNest nest;
    ScaleTimes times;
    switch (t->codes.kind) {
    case SCALES_F16:
    case SCALES_F32:
        pair.scale = dtype_load(t->codes.kind == SCALES_F16 ? DTYPE_F16 : DTYPE_F32, of_row, group);
        pair.low = codes_lowered(t->codes.bits) ? -pair.scale * (float)(1 << (t->codes.bits - 1)) : 0;
        break;
    case SCALES_PAIRS: memcpy(&pair, of_row + group * sizeof pair, sizeof pair); break;
    case SCALES_NESTED:
        memcpy(&nest, of_row + group / GROUPS_NESTED * sizeof nest, sizeof nest);
        pair.scale = f16_to_f32(nest.scale) * (float)nest.factor[group % GROUPS_NESTED];
        pair.low = -(f16_to_f32(nest.low) * (float)nest.lows[group % GROUPS_NESTED]);
        break;
    case SCALES_HALVES:
        pair.scale = dtype_load(DTYPE_F16, of_row, 2 * group);
        pair.low = dtype_load(DTYPE_F16, of_row, 2 * group + 1);
        break;
    case SCALES_TIMES:
        memcpy(&times, of_row + group / GROUPS_TIMES * sizeof times, sizeof times);
        pair.scale = f16_to_f32(times.scale) * (float)times.factor[group % GROUPS_TIMES];
        break;
    }
    return pair;
}

int tensor_code(const Tensor *t, size_t row, size_t column) {
    const unsigned char *codes = (const unsigned char *)t->data + row * tensor_row_bytes(t);
    int bits = t->codes.bits;
    if (bits == 8) return (int8_t)codes[column];
    if (!codes_planes(bits)) return codes[column / 2] >> 4 * (column % 2) & 15;
    size_t at = column % PLANE_BLOCK, upper = (size_t)bits - PLANE_BITS, bytes = PLANE_BLOCK / 8 * upper;
    const unsigned char *uppers = codes + t->columns / 2 + column / PLANE_BLOCK * bytes;
    int low = codes[column / PLANE_BLOCK * 16 + at % 16] >> at / 16 * PLANE_BITS & 15;
    int high = uppers[at % bytes] >> at / bytes * upper & ((1 << upper) - 1);
    return low + (high << PLANE_BITS) - (bits == 6 ? 32 : 0);
}

void codes_store(int bits, const int8_t *codes, size_t from, size_t count, int columns, void *row) {
    uint8_t *out = (uint8_t *)row + from * (size_t)(codes_planes(bits) ? PLANE_BITS : bits) / 8;
    size_t upper = (size_t)bits - PLANE_BITS, bytes = PLANE_BLOCK / 8 * upper;
    uint8_t *uppers = (uint8_t *)row + (size_t)columns / 2 + from / PLANE_BLOCK * bytes;
    if (bits == 8) memcpy(out, codes, count);
    for (size_t k = 0; bits == 4 && k < count; k += 2) out[k / 2] = (uint8_t)(codes[k] | codes[k + 1] << 4);
    for (size_t b = 0; codes_planes(bits) && b < count / PLANE_BLOCK; b++, out += 16, uppers += bytes) {
        uint8_t own[PLANE_BLOCK];
        for (size_t k = 0; k < PLANE_BLOCK; k++) own[k] = (uint8_t)(*codes++ + (bits == 6 ? 32 : 0));
        for (size_t k = 0; k < 16; k++) out[k] = (uint8_t)((own[k] & 15) | own[k + 16] << PLANE_BITS);
        memset(uppers, 0, bytes);
        for (size_t k = 0; k < PLANE_BLOCK; k++)
            uppers[k % bytes] |= (uint8_t)(own[k] >> PLANE_BITS << k / bytes * upper);
    }
}

static float exact(const Tensor *t, size_t row, size_t column, ScalePair pair) {
    float product = (float)tensor_code(t, row, column) * pair.scale;
    return codes_lowered(t->codes.bits) ? product + pair.low : product;
}

static float decoded(const Tensor *t, size_t row, size_t column, ScalePair pair) {
    return bf16_round(exact(t, row, column, pair));
}

float tensor_value(const Tensor *t, size_t row, size_t column) {
    if (!t->codes.bits) return dtype_load(t->dtype, t->data, row * (size_t)t->columns + column);
    return decoded(t, row, column, tensor_scale(t, row, column / (size_t)t->codes.group));
}

void tensor_decode_row(const Tensor *t, size_t row, uint16_t *out) {
    size_t group = (size_t)t->codes.group;
    for (size_t g = 0; g < groups_of(t); g++) {
        ScalePair pair = tensor_scale(t, row, g);
        for (size_t k = g * group; k < (g + 1) * group; k++) out[k] = f32_to_bf16(decoded(t, row, k, pair));
    }
}

void tensor_exact_row(const Tensor *t, size_t row, float *out) {
    size_t group = (size_t)t->codes.group;
    for (size_t g = 0; g < groups_of(t); g++) {
        ScalePair pair = tensor_scale(t, row, g);
        for (size_t k = g * group; k < (g + 1) * group; k++) out[k] = exact(t, row, k, pair);
    }
}

void tensor_row(const Tensor *t, size_t row, float *out) {
    if (t->codes.bits) tensor_exact_row(t, row, out);
    for (size_t k = 0; k < (size_t)t->columns; k++)
        out[k] = t->codes.bits ? bf16_round(out[k]) : tensor_value(t, row, k);
}

static bool f16_finite(uint16_t bits) { return (bits & 0x7c00u) != 0x7c00u; }

static bool group_finite(const Tensor *t, size_t i) {
    const unsigned char *scales = t->codes.scales;
    uint16_t half;
    float f32;
    ScalePair pair;
    ScaleNest nest;
    uint16_t two[2];
    switch (t->codes.kind) {
    case SCALES_F16: memcpy(&half, scales + i * sizeof half, sizeof half); return f16_finite(half);
    case SCALES_F32: memcpy(&f32, scales + i * sizeof f32, sizeof f32); return isfinite(f32);
    case SCALES_PAIRS:
        memcpy(&pair, scales + i * sizeof pair, sizeof pair);
        return isfinite(pair.scale) && isfinite(pair.low);
    case SCALES_NESTED: // no product of a finite f16 with 6 bits is infinite
        memcpy(&nest, scales + i / GROUPS_NESTED * sizeof nest, sizeof nest);
        return f16_finite(nest.scale) && f16_finite(nest.low);
    case SCALES_HALVES:
        memcpy(two, scales + i * sizeof two, sizeof two);
        return f16_finite(two[0]) && f16_finite(two[1]);
    case SCALES_TIMES:
        memcpy(&half, scales + i / GROUPS_TIMES * sizeof(ScaleTimes), sizeof half);
        return f16_finite(half);
    }
    return false;
}

// The scales of rows lie one after another, and so do those of groups.
size_t tensor_bad_scale(const Tensor *t) {
    size_t all = (size_t)t->rows * groups_of(t), step = 1;
    if (t->codes.kind == SCALES_NESTED) step = GROUPS_NESTED;
    if (t->codes.kind == SCALES_TIMES) step = GROUPS_TIMES;
    for (size_t i = 0; i < all; i += step)
        if (!group_finite(t, i)) return i;
    return all;
}
