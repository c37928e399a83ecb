// RMSNorm of each head's q and k; then rotation and the write, as after any product of q, k and v. A warp has
// a head of a row, those of v too, which are only written.
//
// A head is 512 bytes, and rows of them are few: what counts is one load's latency, so a lane has all of its
// numbers on their way at once, and those of the weight before it may begin.
#include "engine/cuda/put.cuh"

enum { THREADS = 128, WARPS = THREADS / WARP, HELD = HEAD_DIM_MAX / 2 / WARP }; // HELD: pairs of a lane

// Every WARP'th pair of a head; zeros after its end.
__device__ __forceinline__ void fetch(Pair held[HELD], const float *head, int pairs) {
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        int at = warp_lane() + i * WARP;
        held[i] = at < pairs ? ((const Pair *)head)[at] : Pair{0, 0};
    }
}

// Of the sum, a lane goes up the head; then lanes are added in order.
__device__ __forceinline__ void norm(Pair x[HELD], const Pair weight[HELD], int n, float epsilon) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < HELD; i++) sum = fmaf(x[i].y, x[i].y, fmaf(x[i].x, x[i].x, sum));
    float scale = 1 / sqrtf(warp_sum(sum) / (float)n + epsilon);
#pragma unroll
    for (int i = 0; i < HELD; i++) x[i] = {x[i].x * scale * weight[i].x, x[i].y * scale * weight[i].y};
}

__global__ void __launch_bounds__(THREADS) norm_heads(NormHeads n) {
    const Heads &h = n.put.heads;
    int head = (int)blockIdx.x * WARPS + warp_number(), row = (int)blockIdx.y, pairs = h.head_dim / 2;
    int normed = h.heads + h.kv_heads, all = normed + h.kv_heads;
    Pair x[HELD], weight[HELD];
    fetch(weight, n.weight + (head < h.heads ? 0 : h.head_dim), head < normed ? pairs : 0);
    let_next_begin();
    wait_for_launches();
    if (head >= all || row >= n.rows->count) return;
    fetch(x, n.sums + ((size_t)row * (size_t)all + (size_t)head) * (size_t)h.head_dim, pairs);
    if (head < normed) norm(x, weight, h.head_dim, n.epsilon);
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        int at = warp_lane() + i * WARP;
        if (at < pairs) put_pair(n.put, place_in_head(n.put, head, at), n.rows, row, x[i]);
    }
}

void gpu_norm_heads(const NormHeads *n, int most, void *stream) {
    int heads = n->put.heads.heads + 2 * n->put.heads.kv_heads;
    dim3 grid((unsigned)(heads + WARPS - 1) / WARPS, (unsigned)most);
    LAUNCH_EARLY(norm_heads, grid, THREADS, 0, stream, n->weight, *n);
}
