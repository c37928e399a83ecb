// Unpacks the blocks of GGUF's quantised formats, as codes and scales (tensor.h).
//
//      Q8_0  32 codes of 8 bits, a scale          Q4_0  32 codes of 4 bits, a scale
//      Q5_0  32 codes of 5 bits, a scale          Q4_1, Q5_1  as these, with a low
//      Q4_K, Q5_K  8 x 32 codes; scale and low of each 32 are 6 bits times one f16 of the 256
//      Q6_K  16 x 16 codes of 6 bits; the scale of each 16 is 8 bits times one f16 of the 256
//      Q3_K  16 x 16 codes of 3 bits, scales of 6; unpacked as Q6_K
//      IQ4_NL, IQ4_XS  4 bits name one of sixteen levels of 8; unpacked as codes of 8 bits, with scales as
//                      Q8_0, or of 6 bits for each 32 as Q6_K
//
// The values are those that ggml computes, rounded to bf16. Codes and scales take as many bytes as in the
// file (nested scales 20 for 16), but those of the last two lines more.
//
// A function for each format gives the codes of one block, and its scales as Tensor has them.
#include "engine/model/tensor.h"

#include <assert.h>
#include <string.h>

enum { SMALL = 32, LARGE = 256, PARTS = 8 };

// The low halves of 16 bytes, then the high ones.
static void halves(const uint8_t *bytes, size_t n, int8_t *codes) {
    for (size_t i = 0; i < n; i++) {
        codes[i] = bytes[i] & 15;
        codes[i + n] = (int8_t)(bytes[i] >> 4);
    }
}

// A fifth bit for each of 32 codes, bit i of four bytes.
static void add_fifth(const uint8_t *bits, int8_t *codes) {
    for (int i = 0; i < SMALL; i++) codes[i] = (int8_t)(codes[i] | (bits[i / 8] >> i % 8 & 1) << 4);
}

static void unpack_q8_0(const uint8_t *block, int8_t *codes, void *scales) {
    memcpy(scales, block, 2);
    memcpy(codes, block + 2, SMALL);
}

static void unpack_q4_0(const uint8_t *block, int8_t *codes, void *scales) {
    memcpy(scales, block, 2);
    halves(block + 2, SMALL / 2, codes);
}

static void unpack_q4_1(const uint8_t *block, int8_t *codes, void *scales) {
    memcpy(scales, block, 4);
    halves(block + 4, SMALL / 2, codes);
}

static void unpack_q5_0(const uint8_t *block, int8_t *codes, void *scales) {
    memcpy(scales, block, 2);
    halves(block + 6, SMALL / 2, codes);
    add_fifth(block + 2, codes);
}

static void unpack_q5_1(const uint8_t *block, int8_t *codes, void *scales) {
    memcpy(scales, block, 4);
    halves(block + 8, SMALL / 2, codes);
    add_fifth(block + 4, codes);
}

// Twelve bytes hold eight scales and eight lows of 6 bits: four of each with their upper bits to spare for
// those of the other four, the rest of which is in the last four bytes.
static ScaleNest nest_of(const uint8_t *block) {
    const uint8_t *s = block + 4;
    ScaleNest n;
    memcpy(&n.scale, block, 2);
    memcpy(&n.low, block + 2, 2);
    for (int i = 0; i < PARTS / 2; i++) {
        n.factor[i] = s[i] & 63;
        n.lows[i] = s[i + 4] & 63;
        n.factor[i + 4] = (uint8_t)((s[i + 8] & 15) | (s[i] >> 2 & 48));
        n.lows[i + 4] = (uint8_t)(s[i + 8] >> 4 | (s[i + 4] >> 2 & 48));
    }
    return n;
}

static void unpack_q4_k(const uint8_t *block, int8_t *codes, void *scales) {
    ScaleNest nest = nest_of(block);
    memcpy(scales, &nest, sizeof nest);
    for (size_t i = 0; i < PARTS; i += 2) halves(block + 16 + i * 16, SMALL, codes + i * SMALL);
}

static void unpack_q5_k(const uint8_t *block, int8_t *codes, void *scales) {
    ScaleNest nest = nest_of(block);
    memcpy(scales, &nest, sizeof nest);
    for (size_t i = 0; i < PARTS; i++) {
        if (i % 2 == 0) halves(block + 48 + i * 16, SMALL, codes + i * SMALL);
        for (size_t k = 0; k < SMALL; k++)
            codes[i * SMALL + k] = (int8_t)(codes[i * SMALL + k] | (block[16 + k] >> i & 1) << 4);
    }
}

// 128 codes at a time: 64 bytes of lower halves, 32 bytes with two more bits for four codes each.
static void unpack_q6_k(const uint8_t *block, int8_t *codes, void *scales) {
    memcpy(scales, block + 208, 2);
    memcpy((unsigned char *)scales + 2, block + 192, GROUPS_TIMES);
    for (size_t part = 0; part < PARTS; part++) {
        size_t half = part / 4, low = part % 4 / 2 * 4, high = part % 4 * 2;
        const uint8_t *lows = block + half * 64 + part % 2 * 32, *highs = block + 128 + half * 32;
        for (size_t k = 0; k < SMALL; k++)
            codes[part * SMALL + k] = (int8_t)(((lows[k] >> low & 15) | (highs[k] >> high & 3) << 4) - 32);
    }
}

// A code of 3 bits is a quarter of a byte, less 4 unless its bit in the first 32 bytes is set. A scale's
// lower four bits are half a byte, its upper two a quarter.
static void unpack_q3_k(const uint8_t *block, int8_t *codes, void *scales) {
    const uint8_t *lows = block + 96, *uppers = block + 104;
    ScaleTimes times;
    memcpy(&times.scale, block + 108, 2);
    for (int i = 0; i < GROUPS_TIMES; i++)
        times.factor[i] =
            (int8_t)(((lows[i % 8] >> i / 8 * 4 & 15) | (uppers[i % 4] >> i / 4 * 2 & 3) << 4) - 32);
    memcpy(scales, &times, sizeof times);
    for (size_t part = 0; part < PARTS; part++)
        for (size_t k = 0; k < SMALL; k++)
            codes[part * SMALL + k] = (int8_t)((block[32 + part / 4 * 32 + k] >> part % 4 * 2 & 3) -
                                               (block[k] >> part & 1 ? 0 : 4));
}

// Sixteen levels, dense around 0 as weights are.
static void levels(const uint8_t *bytes, int8_t *codes) {
    static const int8_t LEVELS[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    halves(bytes, SMALL / 2, codes);
    for (int i = 0; i < SMALL; i++) codes[i] = LEVELS[codes[i]];
}

static void unpack_iq4_nl(const uint8_t *block, int8_t *codes, void *scales) {
    memcpy(scales, block, 2);
    levels(block + 2, codes);
}

static void unpack_iq4_xs(const uint8_t *block, int8_t *codes, void *scales) {
    const uint8_t *uppers = block + 2, *lows = block + 4;
    ScaleTimes times;
    memcpy(&times.scale, block, 2);
    for (size_t part = 0; part < PARTS; part++) {
        int low = lows[part / 2] >> part % 2 * 4 & 15, upper = uppers[part / 4] >> part % 4 * 2 & 3;
        times.factor[part * 2] = times.factor[part * 2 + 1] = (int8_t)((low | upper << 4) - 32);
        levels(block + 8 + part * SMALL / 2, codes + part * SMALL);
    }
    memcpy(scales, &times, sizeof times);
}

static const BlockFormat FORMATS[] = {
    {"Q8_0", SMALL, 34, {8, 32, SCALES_F16, NULL}, unpack_q8_0},
    {"Q4_0", SMALL, 18, {4, 32, SCALES_F16, NULL}, unpack_q4_0},
    {"Q4_1", SMALL, 20, {4, 32, SCALES_HALVES, NULL}, unpack_q4_1},
    {"Q5_0", SMALL, 22, {5, 32, SCALES_F16, NULL}, unpack_q5_0},
    {"Q5_1", SMALL, 24, {5, 32, SCALES_HALVES, NULL}, unpack_q5_1},
    {"Q4_K", LARGE, 144, {4, 32, SCALES_NESTED, NULL}, unpack_q4_k},
    {"Q5_K", LARGE, 176, {5, 32, SCALES_NESTED, NULL}, unpack_q5_k},
    {"Q6_K", LARGE, 210, {6, 16, SCALES_TIMES, NULL}, unpack_q6_k},
    {"Q3_K", LARGE, 110, {6, 16, SCALES_TIMES, NULL}, unpack_q3_k},
    {"IQ4_NL", SMALL, 18, {8, 32, SCALES_F16, NULL}, unpack_iq4_nl},
    {"IQ4_XS", LARGE, 136, {8, 16, SCALES_TIMES, NULL}, unpack_iq4_xs},
};

const BlockFormat *block_format(const char *name) {
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
        if (strcmp(FORMATS[i].name, name) == 0) return &FORMATS[i];
    return NULL;
}

void block_row(const BlockFormat *f, const uint8_t *blocks, int columns, void *codes, void *scales) {
    Tensor one = {.columns = f->numbers, .codes = f->codes};
    size_t numbers = (size_t)f->numbers, scale_bytes = tensor_row_scale_bytes(&one);
    int8_t unpacked[LARGE];
    assert(columns % f->numbers == 0);
    for (size_t i = 0; i < (size_t)columns / numbers; i++) {
        f->unpack(blocks + i * (size_t)f->bytes, unpacked, (unsigned char *)scales + i * scale_bytes);
        codes_store(f->codes.bits, unpacked, i * numbers, numbers, columns, codes);
    }
}
