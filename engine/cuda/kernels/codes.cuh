// Coded weights (tensor.h) on the device, in the order in which tensor cores want their values.
//
// 16 rows by 64 columns are the stage of a tile. Lane 4g + q of a warp finds the codes of its own operands of
// mma_16816 in one piece of 16 bytes, or of 8 bits in two:
//
//      4 bits   word k of the piece: columns 16k to 16k + 15; a[i] has nibbles i and i + 4
//      8 bits   words 2k and 2k + 1, of rows g and g + 8: bytes of columns 2q, 2q + 1, 2q + 8, 2q + 9
//
// A matrix has its codes, tile by tile along K, and then its scales: 8 words for each tile and group, word g
// with the scale of row g in its low half and of row g + 8 in the high one. Codes of 8 bits are stored with
// 128 added. Padding has scales of zero.
//
// Full scales are f32, 8 pieces of 16 bytes for each tile and group, or of 8 bits for 32 columns:
//
//      4 bits   piece g: scales of rows g and g + 8, then their lows
//      8 bits   piece g: scales of rows g and g + 8, then those of the next 16 columns; codes have 6 bits and
//               are stored with 32 added
//
// A value is rounded once, as tensor.h defines it. Of 4 bits (code - 8) * scale is taken as a bf16 pair of
// (code - 8) * high + (code - 8) * low, where high is bf16(scale) and low the rest: f16 has three more bits
// than bf16, so the second product is exact in bf16, and one fused operation rounds the sum. Of 8 bits it
// isn't exact: the code is put into the mantissa of 2^15, one fused operation in f32 takes 2^15 + 128 times
// the scale away, exactly, and the conversion of a pair rounds. Full ones go the same way, of 4 bits with
// one operation more, since a low can't take anything away exactly. Instructions a weight:
// results/gpu/log.md.
#pragma once
#include "engine/cuda/kernels/instructions.cuh"
#include "engine/cuda/kernels/product.h"

enum { CODE_STAGE = 64 }; // columns
// The forms of weights that kernels are instantiated for: the bits of codes whose scales are f16, the same
// with full scales, or 16 for values.
enum { FULL_4 = 5, FULL_8 = 9 };
static inline int matrix_form(const Matrix *m) { return m->bits ? m->bits + m->full : 16; }

// --- places

typedef struct CodePlace {
    size_t word; // of the matrix
    int shift;   // of the code in it; of 4 bits the next column's is 16 higher
} CodePlace;

__device__ __forceinline__ CodePlace code_place(const Matrix &m, int row, int column) {
    size_t stage = (size_t)(row / 16) * (size_t)(m.pitch / CODE_STAGE) + (size_t)(column / CODE_STAGE);
    int k = column % CODE_STAGE / 16, lane = row % 8 * 4 + column % 8 / 2;
    int down = row % 16 / 8, right = column % 16 / 8, next = column % 2;
    size_t piece = (stage * (size_t)(m.bits / 4) + (size_t)(m.bits == 8 ? k / 2 : 0)) * WARP + (size_t)lane;
    if (m.bits == 4) return {piece * 4 + (size_t)k, (right * 2 + down + next * 4) * 4};
    return {piece * 4 + (size_t)(k % 2 * 2 + down), (right * 2 + next) * 8};
}

// In halves of words, from the matrix's start; or in words of full ones, where a low is 2 behind.
__device__ __forceinline__ size_t scale_place(const Matrix &m, int row, int group) {
    int each = m.full && m.bits == 8 ? 2 : 1; // groups that share pieces
    size_t run = (size_t)(row / 16) * (size_t)(matrix_groups(&m) / each) + (size_t)(group / each);
    size_t piece = run * 8 + (size_t)(row % 8), down = (size_t)(row % 16 / 8);
    if (!m.full) return matrix_code_bytes(&m) / 2 + piece * 2 + down;
    return matrix_code_bytes(&m) / 4 + piece * 4 + (size_t)(group % each * 2) + down;
}

// The value at a place.
__device__ __forceinline__ float code_value(const Matrix &m, int row, int column) {
    CodePlace at = code_place(m, row, column);
    uint32_t code = ((const uint32_t *)m.data)[at.word] >> at.shift;
    size_t place = scale_place(m, row, column / m.group);
    const float *full = (const float *)m.data + (m.full ? place : 0);
    float scale = m.full ? *full : f16_f32(((const uint16_t *)m.data)[place]);
    float value = m.bits == 4 ? fmaf((float)(code & 15), scale, m.full ? full[2] : -8 * scale)
                              : (float)((int)(code & 255) - (m.full ? 32 : 128)) * scale;
    return bf16_f32(f32_bf16(value));
}

// --- operands. Scales are those of rows g and g + 8 in a group, as a lane uses them.

template <int BITS> struct Scales; // 16 bytes
template <> struct Scales<4> {
    uint32_t high[2], low[2]; // each twice
};
template <> struct Scales<8> {
    float scale[2], zero[2]; // zero: of the code 0 in the mantissa
};
template <> struct Scales<FULL_4> { float scale[2], low[2]; };
template <> struct Scales<FULL_8> {
    float scale[2][2]; // of 16 columns, and of the next 16
};

__device__ __forceinline__ void take_scales(Scales<4> *s, uint32_t word) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float scale = f16_f32((uint16_t)(word >> 16 * r));
        s->high[r] = half_pair(DTYPE_BF16, scale, scale);
        float low = scale - bits_f32(s->high[r] << 16);
        s->low[r] = half_pair(DTYPE_BF16, low, low);
    }
}

__device__ __forceinline__ void take_scales(Scales<8> *s, uint32_t word) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        s->scale[r] = f16_f32((uint16_t)(word >> 16 * r));
        s->zero[r] = -(32768.0f + 128) * s->scale[r];
    }
}

// Pieces of a tile's scales for a group (or 32 columns), and a lane's bytes of them, which begin at `at`.
template <int BITS> struct ScaleRun {
    enum { FULL = BITS < 16 ? BITS % 2 : 0, PIECES = FULL ? 8 : 2, EACH = FULL ? 16 : 4 };
};
template <int BITS> __device__ __forceinline__ void load_scales(Scales<BITS> *s, SharedAt at) {
    if constexpr (ScaleRun<BITS>::FULL) {
        uint4 piece = shared_piece(at);
        memcpy(s, &piece, sizeof piece);
    } else take_scales(s, shared_word(at));
}

// The operand of columns 16k to 16k + 15, from the lane's pieces of a stage.
__device__ __forceinline__ void decode(const Scales<4> &s, const uint4 piece[1], int k, uint32_t a[4]) {
    const uint32_t one = 0x3f803f80, less_136 = 0xc308c308; // bf16 pairs
    uint32_t word = k == 0 ? piece[0].x : k == 1 ? piece[0].y : k == 2 ? piece[0].z : piece[0].w;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t n = fma_pair(masked<0x000f000f, 0x43004300>(word >> 4 * i), one, less_136); // 128 + code
        a[i] = fma_pair(n, s.high[i % 2], fma_pair(n, s.low[i % 2], 0));
    }
}

// A code is a byte of the mantissa: of 2^15 the second, of 2^7 (less than 128) the third.
template <int BITS> __device__ __forceinline__ float mantissa_code(uint32_t word, int byte) {
    if (BITS == FULL_8) return bits_f32(permute_bytes(word, 0x43000000, 0x7044 | byte << 8));
    return bits_f32(permute_bytes(word, 0x47000000, 0x7404 | byte << 4));
}
__device__ __forceinline__ void words_of(const uint4 piece[2], int k, uint32_t word[2]) {
    const uint4 &own = piece[k / 2];
    word[0] = k % 2 ? own.z : own.x;
    word[1] = k % 2 ? own.w : own.y;
}

__device__ __forceinline__ void decode(const Scales<8> &s, const uint4 piece[2], int k, uint32_t a[4]) {
    uint32_t word[2];
    words_of(piece, k, word);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float x[2];
#pragma unroll
        for (int next = 0; next < 2; next++)
            x[next] = fmaf(mantissa_code<8>(word[i % 2], i / 2 * 2 + next), s.scale[i % 2], s.zero[i % 2]);
        a[i] = half_pair(DTYPE_BF16, x[0], x[1]);
    }
}

__device__ __forceinline__ void decode(const Scales<FULL_8> &s, const uint4 piece[2], int k, uint32_t a[4]) {
    uint32_t word[2];
    words_of(piece, k, word);
    const float *scale = s.scale[k % 2], zero[2] = {-160 * scale[0], -160 * scale[1]}; // 2^7 + 32
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float x[2];
#pragma unroll
        for (int next = 0; next < 2; next++)
            x[next] = fmaf(mantissa_code<FULL_8>(word[i % 2], i / 2 * 2 + next), scale[i % 2], zero[i % 2]);
        a[i] = half_pair(DTYPE_BF16, x[0], x[1]);
    }
}

// A nibble stays where it is in the mantissa, if it is in one of the lower five; the others move down first.
template <int AT> __device__ __forceinline__ float mantissa_nibble(uint32_t word) {
    const int at = AT > 16 ? AT - 12 : AT, power = 23 - at;
    return bits_f32(masked<15u << at, (uint32_t)(127 + power) << 23>(AT > 16 ? word >> 12 : word)) -
           (float)(1 << power);
}
__device__ __forceinline__ void decode(const Scales<FULL_4> &s, const uint4 piece[1], int k, uint32_t a[4]) {
    uint32_t word = k == 0 ? piece[0].x : k == 1 ? piece[0].y : k == 2 ? piece[0].z : piece[0].w;
    const float code[4][2] = {{mantissa_nibble<0>(word), mantissa_nibble<16>(word)},
                              {mantissa_nibble<4>(word), mantissa_nibble<20>(word)},
                              {mantissa_nibble<8>(word), mantissa_nibble<24>(word)},
                              {mantissa_nibble<12>(word), mantissa_nibble<28>(word)}};
#pragma unroll
    for (int i = 0; i < 4; i++)
        a[i] = half_pair(DTYPE_BF16, fmaf(code[i][0], s.scale[i % 2], s.low[i % 2]),
                         fmaf(code[i][1], s.scale[i % 2], s.low[i % 2]));
}
