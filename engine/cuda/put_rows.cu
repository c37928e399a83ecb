// Puts sums that are in memory: another library's, or a product's parts where the blocks of a launch cannot
// read one another's. See put.cuh. A thread has two neighbours of a row.
#include "engine/cuda/put.cuh"

enum { THREADS = 128 };

__global__ void __launch_bounds__(THREADS) put_rows(PutRows p) {
    let_next_begin();
    wait_for_launches();
    int row = p.first + (int)blockIdx.y, m = ((int)blockIdx.x * THREADS + (int)threadIdx.x) * 2;
    int count = p.rows->count, first_node = p.rows->first;
    if (row >= count || m >= p.outputs) return;
    const float *sums = p.sums + (size_t)blockIdx.y * (size_t)p.stride + (size_t)m;
    Place at = place_of(p.put, p.outputs, m);
    Ahead<1> ahead = {row, 0, 1, {0}, {{0, 0}}};
    look_ahead(ahead, p.put, at, p.rows, first_node);
    Pair part[PARTS_MAX];
#pragma unroll
    for (int i = 0; i < PARTS_MAX; i++, sums += p.part)
        if (i < p.parts) part[i] = {sums[0], at.both ? sums[1] : 0};
#pragma unroll
    for (int i = 1; i < PARTS_MAX; i++)
        if (i < p.parts) part[0] = add(part[0], part[i]);
    put_pairs(ahead, p.put, at, part);
}

void gpu_put_rows(const PutRows *p, int most, void *stream) {
    int pairs = (p->outputs + 1) / 2;
    dim3 grid((unsigned)(pairs + THREADS - 1) / THREADS, (unsigned)most);
    LAUNCH_EARLY(put_rows, grid, THREADS, 0, stream, NULL, *p);
}
