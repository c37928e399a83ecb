// Weights into the order in which products read them.
//
// Packed, for mma: a 16x16 tile is what a warp's lanes hold as the operand `a`, 16 bytes a lane, lanes one
// after another; tiles of 16 rows one after another along K. So a lane's operand is one load, and a warp's
// weights of a stage are one run of 2 KB for each 16 rows.
#include "engine/cuda/rows.cuh"

enum { THREADS = 256 };

__device__ __forceinline__ void put_number(Dtype dtype, void *data, size_t i, float x) {
    if (dtype == DTYPE_F32) ((float *)data)[i] = x;
    else ((uint16_t *)data)[i] = f32_half(dtype, x); // from the same format: the same bits
}

__global__ void __launch_bounds__(THREADS) pack(Pack p) {
    size_t n = (size_t)p.rows * (size_t)p.columns, stride = (size_t)gridDim.x * THREADS;
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += stride) {
        int row = pack_row(p.first + (int)(i / (size_t)p.columns), p.base, p.stride, p.head, p.pairs);
        int column = (int)(i % (size_t)p.columns);
        size_t at = p.to.form == FORM_PACKED ? fragment_at(p.to.pitch, row, column)
                                             : (size_t)row * (size_t)p.to.pitch + (size_t)column;
        put_number(p.to.dtype, p.to.data, at, load_number(p.dtype, p.from, i));
    }
}

void gpu_pack(const Pack *p, void *stream) {
    const size_t most = 1024;
    size_t blocks = ((size_t)p->rows * (size_t)p->columns + THREADS - 1) / THREADS;
    LAUNCH(pack, (unsigned)(blocks < most ? blocks : most), THREADS, 0, stream, *p);
}

size_t gpu_matrix_bytes(const Matrix *m) {
    int tiles = (m->rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    int low = (m->rows + LOW_TILE_ROWS - 1) / LOW_TILE_ROWS * LOW_TILE_ROWS;
    int rows = m->form != FORM_PACKED ? m->rows : tiles > low ? tiles : low;
    return (size_t)rows * (size_t)m->pitch * dtype_size(m->dtype);
}
