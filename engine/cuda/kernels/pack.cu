// Weights into the order in which products read them.
//
// Packed (weight_at): tiles of 16 rows are one after another along K, so a warp's weights of a stage are one
// run of 2 KB for each 16 rows. Codes (codes.cuh) are in the same order, in runs of 1 KB or 512 bytes.
#include "engine/base/random.h"
#include "engine/cuda/kernels/rows.cuh"
#include "engine/cuda/kernels/runtime.h"

enum { PACK_THREADS = 256 };

__device__ __forceinline__ int packed_row(const Pack &p, size_t row) {
    return pack_row(p.first + (int)row, p.base, p.stride, p.head, p.pairs);
}

__device__ __forceinline__ void put_number(Dtype dtype, void *data, size_t i, float x) {
    if (dtype == DTYPE_F32) ((float *)data)[i] = x;
    else ((uint16_t *)data)[i] = f32_half(dtype, x); // the same format keeps its bits
}

__global__ void __launch_bounds__(PACK_THREADS) pack(Pack p) {
    size_t n = (size_t)p.rows * (size_t)p.columns, stride = (size_t)gridDim.x * PACK_THREADS;
    for (size_t i = (size_t)blockIdx.x * PACK_THREADS + threadIdx.x; i < n; i += stride) {
        int row = packed_row(p, i / (size_t)p.columns);
        int column = (int)(i % (size_t)p.columns);
        size_t at = p.to.form == FORM_PACKED ? weight_at(p.to.pitch, row, column)
                                             : (size_t)row * (size_t)p.to.pitch + (size_t)column;
        put_number(p.to.dtype, p.to.data, at, load_number(p.dtype, p.from, i));
    }
}

// A thread has bytes of codes, and scales. A word of 4 bits has codes of two rows, which may come from two
// tensors: each adds its own to zeros.
__global__ void __launch_bounds__(PACK_THREADS) pack_codes(Pack p) {
    size_t first = (size_t)blockIdx.x * PACK_THREADS + threadIdx.x, step = (size_t)gridDim.x * PACK_THREADS;
    size_t row_bytes = (size_t)p.columns * (size_t)p.to.bits / 8, groups = (size_t)(p.columns / p.to.group);
    int each = 8 / p.to.bits;
    for (size_t i = first; i < (size_t)p.rows * row_bytes; i += step) {
        CodePlace at = code_place(p.to, packed_row(p, i / row_bytes), (int)(i % row_bytes) * each);
        uint32_t byte = ((const uint8_t *)p.from)[i];
        uint32_t code =
            p.to.bits == 8 ? (byte + (p.to.full ? 32 : 128)) & 255 : (byte & 15) | byte >> 4 << 16;
        atomicAdd((unsigned *)p.to.data + at.word, code << at.shift);
    }
    for (size_t i = first; i < (size_t)p.rows * groups; i += step) {
        size_t at = scale_place(p.to, packed_row(p, i / groups), (int)(i % groups));
        if (!p.to.full) ((uint16_t *)p.to.data)[at] = ((const uint16_t *)p.scales)[i];
        else if (p.to.bits == 8) ((float *)p.to.data)[at] = ((const float *)p.scales)[i];
        else {
            ((float *)p.to.data)[at] = ((const float *)p.scales)[2 * i];
            ((float *)p.to.data)[at + 2] = ((const float *)p.scales)[2 * i + 1];
        }
    }
}

__global__ void __launch_bounds__(PACK_THREADS) numbers(Numbers n) {
    size_t step = (size_t)gridDim.x * PACK_THREADS;
    for (size_t i = (size_t)blockIdx.x * PACK_THREADS + threadIdx.x; i < n.count; i += step) {
        size_t at = n.first + i;
        if (n.bytes) {
            ((uint8_t *)n.to)[i] = (uint8_t)(random_at(n.seed, n.stream, at / 8) >> at % 8 * 8);
            continue;
        }
        uint64_t bits = random_at(n.seed, n.stream, at / 4) >> at % 4 * 16;
        float u = ((float)(int)(bits & 0xffff) + 0.5f) * 0x1p-15f - 1.0f;
        put_number(n.dtype, n.to, i, n.centre + n.spread * u);
    }
}

void gpu_numbers(const Numbers *n, void *stream) {
    const size_t most = 4096;
    size_t blocks = (n->count + PACK_THREADS - 1) / PACK_THREADS;
    LAUNCH(numbers, (unsigned)(blocks < most ? blocks : most), PACK_THREADS, 0, stream, *n);
}

void gpu_pack(const Pack *p, void *stream) {
    const size_t most = 1024;
    size_t blocks = ((size_t)p->rows * (size_t)p->columns + PACK_THREADS - 1) / PACK_THREADS;
    unsigned grid = (unsigned)(blocks < most ? blocks : most);
    if (p->to.bits) LAUNCH(pack_codes, grid, PACK_THREADS, 0, stream, *p);
    else LAUNCH(pack, grid, PACK_THREADS, 0, stream, *p);
}

size_t gpu_matrix_bytes(const Matrix *m) {
    if (m->bits)
        return matrix_code_bytes(m) + (size_t)(m->rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS *
                                          (size_t)matrix_groups(m) * matrix_scale_bytes(m);
    int rows = m->form != FORM_PACKED ? m->rows : (m->rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    return (size_t)rows * (size_t)m->pitch * dtype_size(m->dtype);
}
