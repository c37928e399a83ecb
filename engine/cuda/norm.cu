// RMSNorm of rows of the residual stream, in the form that the next product reads. A block has a row.
//
// It stands between two products that stream weights, so what counts is how often one load waits for another:
// a thread has all of its numbers on their way at once, and asks for those of the weight before it may begin.
#include "engine/cuda/rows.cuh"

enum { THREADS = 256, HELD = 32 }; // HELD: numbers of a thread;
enum { AT_ONCE = THREADS * HELD }; // a wider row takes several turns

struct NormShared {
    float part[THREADS / WARP];
};

// Every THREADS'th number from `from` on; zeros after the row's end.
__device__ __forceinline__ void fetch(float held[HELD], const float *row, int from, int width) {
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        int at = from + (int)threadIdx.x + i * THREADS;
        held[i] = at < width ? row[at] : 0;
    }
}

// Sum of squares: a thread goes up the row, lanes and then warps are added in order. x keeps the last
// numbers.
__device__ __forceinline__ float sum_of_squares(NormShared *sm, float x[HELD], const float *row, int width) {
    float sum = 0;
    for (int from = 0; from < width; from += AT_ONCE) {
        fetch(x, row, from, width);
#pragma unroll
        for (int i = 0; i < HELD; i++) sum = fmaf(x[i], x[i], sum); // of zeros: what it was
    }
    sum = warp_sum(sum);
    if (warp_lane() == 0) sm->part[warp_number()] = sum;
    __syncthreads();
    float total = 0;
    for (int i = 0; i < THREADS / WARP; i++) total += sm->part[i];
    return total;
}

__global__ void __launch_bounds__(THREADS) norm_rows(Norm n) {
    SHARED(NormShared, sm);
    float x[HELD], weight[HELD];
    if (n.weight) fetch(weight, n.weight, 0, n.width);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x;
    if (row >= n.rows->count) return;
    const float *hidden = n.hidden + (size_t)row_node(n.rows, row) * (size_t)n.width;
    float scale = 1;
    if (n.weight) scale = 1 / sqrtf(sum_of_squares(sm, x, hidden, n.width) / (float)n.width + n.epsilon);
    for (int from = 0; from < n.width; from += AT_ONCE) {
        if (!n.weight || n.width > AT_ONCE) fetch(x, hidden, from, n.width);
        if (n.weight && from) fetch(weight, n.weight, from, n.width);
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            int at = from + (int)threadIdx.x + i * THREADS;
            if (at < n.width) put_activation(n.to, row, at, n.weight ? x[i] * scale * weight[i] : x[i]);
        }
    }
}

void gpu_norm(const Norm *n, int most, void *stream) {
    LAUNCH_EARLY(norm_rows, (unsigned)most, THREADS, sizeof(NormShared), stream, n->weight, *n);
}
