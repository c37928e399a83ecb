// Attention in f32, for f32 compute: a tile is one node, and a block of the grid takes one head of it. A warp
// has 32 positions, a lane for each score; then lanes take dimensions and go through the positions in order.
// attention.cu is the fast kernel.
#include "engine/cuda/kernels/attention.cuh"

enum { WARPS = SPAN / WARP };

template <int DIM> struct PlainShared {
    Part<1, DIM> warp[WARPS];
    int is_last;
};

__device__ __forceinline__ float score(const float *q, const float *k, int dims) {
    float sum = 0;
    for (int d = 0; d < dims; d += 4) {
        float4 x = *(const float4 *)(q + d), y = *(const float4 *)(k + d); // the padding holds zeros
        sum = fmaf(x.x, y.x, sum);
        sum = fmaf(x.y, y.y, sum);
        sum = fmaf(x.z, y.z, sum);
        sum = fmaf(x.w, y.w, sum);
    }
    return sum;
}

// Takes one warp's positions. `at`: the lane's key and value, if `seen`.
template <int DIM>
__device__ __forceinline__ void take_positions(const Attention &a, const Tile *t, const float *q, bool seen,
                                               bool step, size_t at, Part<1, DIM> *to) {
    const int LANE_DIMS = DIM / WARP;
    const float *keys = (const float *)(step ? a.step_k : seen_cache(a, t, a.cache_k)) + at;
    float s = seen ? full_score(a, score(q, keys, a.heads.pitch)) : -INFINITY;
    float most = warp_most(s), p = exp2_fast(s - finite_most(most)), all = warp_sum(p), sum[LANE_DIMS];
    const float *v = (const float *)(step ? a.step_v : seen_cache(a, t, a.cache_v)) + at;
    uint32_t low = (uint32_t)(uintptr_t)v, high = (uint32_t)((uintptr_t)v >> 32);
    unsigned seen_lanes = __ballot_sync(ALL_LANES, seen);
#pragma unroll
    for (int i = 0; i < LANE_DIMS; i++) sum[i] = 0;
    for (int j = 0; j < WARP; j++) {
        float weight = __shfl_sync(ALL_LANES, p, j);
        uintptr_t row = __shfl_sync(ALL_LANES, low, j) | (uintptr_t)__shfl_sync(ALL_LANES, high, j) << 32;
        if (!(seen_lanes >> j & 1)) continue;
#pragma unroll
        for (int i = 0; i < LANE_DIMS; i++) {
            int d = i * WARP + warp_lane();
            if (d < a.heads.head_dim) sum[i] = fmaf(weight, ((const float *)row)[d], sum[i]);
        }
    }
    if (warp_lane() == 0) to->most[0] = most, to->sum[0] = all;
#pragma unroll
    for (int i = 0; i < LANE_DIMS; i++) to->values[0][i * WARP + warp_lane()] = sum[i];
}

template <int DIM>
__global__ void __launch_bounds__(WARPS *WARP, 1) attention_plain(Attention a, int first_tile) {
    typedef Part<1, DIM> PlainPart;
    typedef PlainShared<DIM> Shared;
    SHARED(Shared, sm);
    let_next_begin();
    wait_for_launches();
    const Tile *t = step_tiles(a.step) + first_tile + blockIdx.z;
    int head = (int)blockIdx.y, kv = head / (a.heads.heads / a.heads.kv_heads), row = t->row[0];
    int lowest = first_seen(a, t->highest); // of this layer: the tile's may be lower
    const Items all = items_of(lowest, t->highest, 0), warps = {0, 0, 0, WARPS};
    int span = all.first_span + (int)blockIdx.x;
    if (t->nodes == 0 || (int)blockIdx.x >= all.spans) return;
    int position = span * SPAN + (int)threadIdx.x;
    bool seen = position >= lowest && position <= t->highest, step = position >= t->context;
    size_t at = seen ? key_at(a, kv, position, step, step ? node_at(a, t, span, position) : 0) : 0;
    take_positions(a, t,
                   (const float *)a.q +
                       ((size_t)row * (size_t)a.heads.heads + (size_t)head) * (size_t)a.heads.pitch,
                   seen, step, at, &sm->warp[warp_number()]);
    __syncthreads();

    int counter = (int)(blockIdx.z * gridDim.y + blockIdx.y), d = (int)threadIdx.x * 4;
    PlainPart *parts = (PlainPart *)a.parts + (size_t)counter * gridDim.x, *own = &parts[blockIdx.x];
    const int query = 0;
    State x = empty_state();
    if (d < DIM) merge<1, WARPS>(sm->warp, warps, &query, &d, &x);
    if (all.spans == 1) {
        if (d < DIM) put_state(a, x, d, row, head);
        return;
    }
    if (d < DIM) *(float4 *)&own->values[0][d] = {x.x[0], x.x[1], x.x[2], x.x[3]};
    if (d == 0) own->most[0] = x.most, own->sum[0] = x.sum;
    if (!comes_last(&a.done[counter], all.spans, &sm->is_last) || d >= DIM) return;
    merge<1, 8>(parts, all, &query, &d, &x);
    put_state(a, x, d, row, head);
}

static bool is_wide(const Heads *h) { return h->head_dim > HEAD_DIM_USUAL; }

size_t gpu_attention_plain_part(const Heads *h, int spans) {
    size_t part = is_wide(h) ? sizeof(Part<1, HEAD_DIM_MAX>) : sizeof(Part<1, HEAD_DIM_USUAL>);
    return (size_t)h->heads * (size_t)spans * (part / sizeof(float));
}

template <int DIM> static void launch(const Attention *a, dim3 grid, int first, void *stream) {
    LAUNCH_EARLY(attention_plain<DIM>, grid, WARPS * WARP, sizeof(PlainShared<DIM>), stream, NULL, *a, first);
}

void gpu_attention_plain(const Attention *a, int tiles, int first, int spans, void *stream) {
    dim3 grid((unsigned)spans, (unsigned)a->heads.heads, (unsigned)tiles);
    if (is_wide(&a->heads)) launch<HEAD_DIM_MAX>(a, grid, first, stream);
    else launch<HEAD_DIM_USUAL>(a, grid, first, stream);
}
