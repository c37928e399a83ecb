// An attention that isn't fused, as PyTorch's eager one: three kernels, with the scores in memory between
// them. A tile is one node. Its numbers depend on its position and keys alone, as in attention.cuh: every sum
// goes over positions in an order that only they decide.
//
//      scores (heads, length)    a thread for a position: q times key, 16 bytes at a time
//      weights                   in their place: softmax, rounded to the format of the values
//      means (heads, head_dim)   a warp for every eighth block of positions, a lane for 4 neighbouring
//                                dimensions; then the warps in order
#include "engine/cuda/kernels/attention.cuh"

enum { THREADS = 256, WARPS = THREADS / WARP, WIDE = 8, DIMS = HEAD_DIM_USUAL / WARP };

// A tile's scores for a head.
__device__ __forceinline__ float *scores_of(const Attention &a, int head) {
    return a.scores + ((size_t)blockIdx.z * (size_t)a.heads.heads + (size_t)head) * (size_t)a.length;
}

__device__ __forceinline__ int kv_head(const Attention &a, int head) {
    return head / (a.heads.heads / a.heads.kv_heads);
}

// Where the key and value at a position are: in a cache or the step's area, element *at.
__device__ __forceinline__ const void *find_key(const Attention &a, const Tile *t, int kv, int position,
                                                const void *cache, const void *area, size_t *at) {
    bool step = position >= t->context;
    *at = key_at(a, kv, position, step, step ? node_at(a, t, position / SPAN, position) : 0);
    return step ? area : seen_cache(a, t, cache);
}

// Loads N numbers of 16 bits, 8 or 16 bytes; or 4 of f32, followed by zeros. A head's pitch is a
// multiple of 16 bytes.
template <int N>
__device__ __forceinline__ void load_wide(Dtype dtype, const void *data, size_t at, float x[N]) {
    alignas(16) uint32_t pair[N / 2];
    if (dtype == DTYPE_F32) {
        float4 v = *(const float4 *)((const float *)data + at), zeros = {0, 0, 0, 0};
        *(float4 *)x = v;
        if (N > 4) *(float4 *)(x + N - 4) = zeros;
        return;
    }
    const uint16_t *from = (const uint16_t *)data + at;
    if (N == WIDE) *(uint4 *)pair = *(const uint4 *)from;
    else *(uint2 *)pair = *(const uint2 *)from;
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = half_f32(dtype, (uint16_t)(pair[i / 2] >> i % 2 * 16));
}

// The padding of q and of keys holds zeros, which change no sum.
__device__ __forceinline__ float score(const Attention &a, size_t q, const void *keys, size_t key) {
    float sum = 0;
    alignas(16) float x[WIDE], y[WIDE];
    int step = a.heads.dtype == DTYPE_F32 ? WIDE / 2 : WIDE;
    for (int d = 0; d < a.heads.pitch; d += step) {
        load_wide<WIDE>(a.heads.dtype, a.q, q + (size_t)d, x);
        load_wide<WIDE>(a.heads.dtype, keys, key + (size_t)d, y);
#pragma unroll
        for (int i = 0; i < WIDE; i++) sum = fmaf(x[i], y[i], sum);
    }
    return sum;
}

__global__ void __launch_bounds__(THREADS) eager_scores(Attention a, int first_tile) {
    let_next_begin();
    wait_for_launches();
    const Tile *t = step_tiles(a.step) + first_tile + blockIdx.z;
    int head = (int)blockIdx.y, position = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (t->nodes == 0 || position < first_seen(a, t->highest) || position > t->highest) return;
    size_t at, q = ((size_t)t->row[0] * (size_t)a.heads.heads + (size_t)head) * (size_t)a.heads.pitch;
    const void *keys = find_key(a, t, kv_head(a, head), position, a.cache_k, a.step_k, &at);
    scores_of(a, head)[position] = full_score(a, score(a, q, keys, at));
}

struct EagerShared {
    float one[WARPS];
    float means[WARPS][HEAD_DIM_MAX];
};

__device__ __forceinline__ float over_warps(EagerShared *sm, float x, bool most) {
    x = most ? warp_most(x) : warp_sum(x);
    if (warp_lane() == 0) sm->one[warp_number()] = x;
    __syncthreads();
    float all = sm->one[0];
    for (int w = 1; w < WARPS; w++) all = most ? fmaxf(all, sm->one[w]) : all + sm->one[w];
    __syncthreads();
    return all;
}

__device__ __forceinline__ float rounded(Dtype dtype, float x) {
    return dtype == DTYPE_F32 ? x : half_f32(dtype, f32_half(dtype, x));
}

// A thread has the positions that are equal to its number modulo THREADS.
__global__ void __launch_bounds__(THREADS) eager_softmax(Attention a, int first_tile) {
    SHARED(EagerShared, sm);
    let_next_begin();
    wait_for_launches();
    const Tile *t = step_tiles(a.step) + first_tile + blockIdx.z;
    if (t->nodes == 0) return;
    float *score = scores_of(a, (int)blockIdx.y), most = -INFINITY, sum = 0;
    int lowest = first_seen(a, t->highest), begin = lowest / THREADS * THREADS + (int)threadIdx.x;
    if (begin < lowest) begin += THREADS;
    for (int p = begin; p <= t->highest; p += THREADS) most = fmaxf(most, score[p]);
    most = finite_most(over_warps(sm, most, true));
    for (int p = begin; p <= t->highest; p += THREADS) sum += exp2_fast(score[p] - most);
    float inverse = 1 / over_warps(sm, sum, false);
    for (int p = begin; p <= t->highest; p += THREADS)
        score[p] = rounded(a.heads.dtype, exp2_fast(score[p] - most) * inverse);
}

__global__ void __launch_bounds__(THREADS) eager_means(Attention a, int first_tile) {
    SHARED(EagerShared, sm);
    let_next_begin();
    wait_for_launches();
    const Tile *t = step_tiles(a.step) + first_tile + blockIdx.z;
    if (t->nodes == 0) return;
    int head = (int)blockIdx.y, kv = kv_head(a, head), dims = a.heads.head_dim;
    const float *weight = scores_of(a, head);
    int lowest = first_seen(a, t->highest);
    for (int dim = warp_lane() * DIMS; dim < HEAD_DIM_MAX; dim += HEAD_DIM_USUAL) {
        float sum[DIMS] = {0, 0, 0, 0};
        for (int base = block_of(lowest); base <= t->highest; base += BLOCK) {
            if (base / BLOCK % WARPS != warp_number()) continue;
            int first = base > lowest ? base : lowest,
                last = base + BLOCK - 1 < t->highest ? base + BLOCK - 1 : t->highest;
            for (int p = first; p <= last && dim < dims; p++) {
                alignas(16) float x[DIMS];
                size_t at;
                const void *values = find_key(a, t, kv, p, a.cache_v, a.step_v, &at);
                load_wide<DIMS>(a.heads.dtype, values, at + (size_t)dim, x);
#pragma unroll
                for (int i = 0; i < DIMS; i++) sum[i] = fmaf(weight[p], x[i], sum[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < DIMS; i++) sm->means[warp_number()][dim + i] = sum[i];
    }
    __syncthreads();
    for (int d = (int)threadIdx.x; d < dims; d += THREADS) {
        float all = 0;
        for (int w = 0; w < WARPS; w++) all += sm->means[w][d];
        put_activation(a.to, t->row[0], head * dims + d, all);
    }
}

void gpu_attention_eager(const Attention *a, int tiles, void *stream) {
    size_t room = a->scores_floats / ((size_t)a->heads.heads * (size_t)a->length);
    int at_once = room < 65535 ? (int)room : 65535;
    for (int first = 0; first < tiles; first += at_once) {
        unsigned n = (unsigned)(tiles - first < at_once ? tiles - first : at_once),
                 heads = (unsigned)a->heads.heads, blocks = (unsigned)((a->length + THREADS - 1) / THREADS);
        LAUNCH_EARLY(eager_scores, dim3(blocks, heads, n), THREADS, 0, stream, NULL, *a, first);
        LAUNCH_EARLY(eager_softmax, dim3(1, heads, n), THREADS, sizeof(EagerShared), stream, NULL, *a, first);
        LAUNCH_EARLY(eager_means, dim3(1, heads, n), THREADS, sizeof(EagerShared), stream, NULL, *a, first);
    }
}
