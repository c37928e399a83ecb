// Shared by the kernels: the node of a row, the parts of a step, and the layouts of activations and weights.
#pragma once
#include "engine/cuda/kernels/codes.cuh"
#include "engine/cuda/kernels/kernels.h"

__device__ __forceinline__ int row_node(const RowList *rows, int row) {
    return rows->first >= 0 ? rows->first + row : rows->node[row];
}

__device__ __forceinline__ const Tile *step_tiles(const Step *s) { return (const Tile *)(s + 1); }
__device__ __forceinline__ const Turn *step_turns(const Step *s) {
    return (const Turn *)(step_tiles(s) + s->tiles);
}
__device__ __forceinline__ const StepNode *step_nodes(const Step *s) {
    return (const StepNode *)(step_turns(s) + s->turns);
}

// Packed order: block of 8 rows, block of 8 columns, row, column. ldmatrix reads a block as one 8x8 matrix of
// 128 bytes, and a stage of 64 columns is one run.
__device__ __forceinline__ size_t packed_at(int pitch, int row, int column) {
    return ((size_t)(row / 8) * (size_t)(pitch / 8) + (size_t)(column / 8)) * 64 +
           (size_t)(row % 8 * 8 + column % 8);
}

__device__ __forceinline__ bool is_overflow(Dtype format, uint16_t h) {
    return format == DTYPE_F16 && (h & 0x7fffu) == 0x7c00u;
}
__device__ __forceinline__ void record_overflow(const Overflow &overflow) {
    if (overflow.least) atomicMin(overflow.least, overflow.place);
}
// Rounds to bf16, or to f16, where an infinity is recorded.
__device__ __forceinline__ uint16_t round_half(Dtype format, const Overflow &overflow, float x) {
    uint16_t h = f32_half(format, x);
    if (is_overflow(format, h)) record_overflow(overflow);
    return h;
}

__device__ __forceinline__ void put_activation(const Activations &a, int row, int column, float x) {
    size_t at = (size_t)row * (size_t)a.pitch + (size_t)column;
    uint16_t h = a.dtype == DTYPE_F32 ? 0 : round_half(a.dtype, a.overflow, x);
    if (a.form == FORM_PACKED) ((uint16_t *)a.data)[packed_at(a.pitch, row, column)] = h;
    else if (a.form == FORM_ROWS) ((uint16_t *)a.data)[at] = h;
    else ((float *)a.data)[at] = a.dtype == DTYPE_F32 ? x : half_f32(a.dtype, h);
}

// Puts four columns from `column` on, a multiple of four, of a form in 16 bits.
template <Dtype FORMAT>
__device__ __forceinline__ void put_four(const Activations &a, int row, int column, float4 x) {
    size_t at = a.form == FORM_PACKED ? packed_at(a.pitch, row, column)
                                      : (size_t)row * (size_t)a.pitch + (size_t)column;
    uint32_t low = half_pair(FORMAT, x.x, x.y), high = half_pair(FORMAT, x.z, x.w);
    *(uint2 *)((uint16_t *)a.data + at) = {low, high};
    if (is_overflow(FORMAT, (uint16_t)low) || is_overflow(FORMAT, (uint16_t)(low >> 16)) ||
        is_overflow(FORMAT, (uint16_t)high) || is_overflow(FORMAT, (uint16_t)(high >> 16)))
        record_overflow(a.overflow);
}

// Puts N columns from `column` on, or the first `count` of them; N is 2 or 4. They are means of numbers of
// the format, so they don't overflow.
template <int N>
__device__ __forceinline__ void put_means(const Activations &a, int row, int column, const float x[N],
                                          int count) {
    if (count < N || column % N || a.form == FORM_PLAIN) {
        for (int i = 0; i < count && i < N; i++) put_activation(a, row, column + i, x[i]);
        return;
    }
    uint16_t *to =
        (uint16_t *)a.data + (a.form == FORM_PACKED ? packed_at(a.pitch, row, column)
                                                    : (size_t)row * (size_t)a.pitch + (size_t)column);
    uint32_t low = half_pair(a.dtype, x[0], x[1]);
    if (N == 2) *(uint32_t *)to = low;
    else *(uint2 *)to = {low, half_pair(a.dtype, x[N - 2], x[N - 1])};
}

// Returns element i of an array of that type.
__device__ __forceinline__ float load_number(Dtype dtype, const void *data, size_t i) {
    if (dtype == DTYPE_F32) return ((const float *)data)[i];
    return half_f32(dtype, ((const uint16_t *)data)[i]);
}

// Packed weights: tile of 16 rows, 16 columns, 8x8 matrix of the tile (rows 0 and 8 of columns 0, then of 8),
// row, column. So the four matrices of a lane's operand are one run of 512 bytes.
__device__ __forceinline__ size_t weight_at(int pitch, int row, int column) {
    size_t tile = (size_t)(row / 16) * (size_t)(pitch / 16) + (size_t)(column / 16);
    return (tile * 4 + (size_t)(column % 16 / 8 * 2 + row % 16 / 8)) * 64 +
           (size_t)(row % 8 * 8 + column % 8);
}

__device__ __forceinline__ float matrix_at(const Matrix &m, int row, int column) {
    if (m.bits) return code_value(m, row, column);
    size_t at = m.form == FORM_PACKED ? weight_at(m.pitch, row, column)
                                      : (size_t)row * (size_t)m.pitch + (size_t)column;
    return load_number(m.dtype, m.data, at);
}
