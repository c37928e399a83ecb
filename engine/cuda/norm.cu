// RMSNorm of rows of the residual stream, in the form that the next product reads. A block has a row.
#include "engine/cuda/rows.cuh"

enum { THREADS = 256 };

struct NormShared {
    float part[THREADS / WARP];
};

// Sum of squares: threads stride over the row, lanes and then warps are added in order.
__device__ __forceinline__ float sum_of_squares(NormShared *sm, const float *x, int width) {
    float sum = 0;
    for (int i = (int)threadIdx.x; i < width; i += THREADS) sum = fmaf(x[i], x[i], sum);
    sum = warp_sum(sum);
    if (warp_lane() == 0) sm->part[warp_number()] = sum;
    __syncthreads();
    float total = 0;
    for (int i = 0; i < THREADS / WARP; i++) total += sm->part[i];
    return total;
}

__global__ void __launch_bounds__(THREADS) norm_rows(Norm n) {
    SHARED(NormShared, sm);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x;
    if (row >= n.rows->count) return;
    const float *x = n.hidden + (size_t)row_node(n.rows, row) * (size_t)n.width;
    float scale = n.weight ? 1 / sqrtf(sum_of_squares(sm, x, n.width) / (float)n.width + n.epsilon) : 1;
    for (int i = (int)threadIdx.x; i < n.width; i += THREADS)
        put_activation(n.to, row, i, n.weight ? x[i] * scale * n.weight[i] : x[i]);
}

void gpu_norm(const Norm *n, int most, void *stream) {
    LAUNCH_EARLY(norm_rows, (unsigned)most, THREADS, sizeof(NormShared), stream, NULL, *n);
}
