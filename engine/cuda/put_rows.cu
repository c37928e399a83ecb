// What becomes of sums that another library made: see put.cuh. A thread has two neighbours of a row.
#include "engine/cuda/put.cuh"

enum { THREADS = 128 };

__global__ void __launch_bounds__(THREADS) put_rows(PutRows p) {
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.y, m = ((int)blockIdx.x * THREADS + (int)threadIdx.x) * 2;
    if (row >= p.rows->count || m >= p.outputs) return;
    const float *sums = p.sums + (size_t)row * (size_t)p.stride + (size_t)m;
    put_pair(p.put, p.rows, p.outputs, row, m, sums[0], m + 1 < p.outputs ? sums[1] : 0);
}

void gpu_put_rows(const PutRows *p, int most, void *stream) {
    int pairs = (p->outputs + 1) / 2;
    dim3 grid((unsigned)(pairs + THREADS - 1) / THREADS, (unsigned)most);
    LAUNCH_EARLY(put_rows, grid, THREADS, 0, stream, NULL, *p);
}
