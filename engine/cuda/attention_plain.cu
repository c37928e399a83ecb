// Attention in f32, for f32 compute: a tile is one query. A block of 32 positions has a lane for each score,
// then lanes take dimensions and go through the positions in order. The fast road is attention.cu.
#include "engine/cuda/attention.cuh"

enum { DIM = HEAD_DIM_MAX, LANE_DIMS = DIM / WARP };

struct PlainShared {
    Known<1, DIM> warp[ATTENTION_WARPS], mine;
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

__device__ __forceinline__ float warp_most(float x) {
#pragma unroll
    for (int step = 16; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, step));
    return x;
}

// Positions [base, base + 32) into a warp's running softmax.
__device__ __forceinline__ void take_block(const Attention &a, const Tile &t, const float *q,
                                           const uint16_t *path, int base, float scale, Running *r,
                                           float sum[LANE_DIMS]) {
    int position = base + warp_lane();
    bool seen = position >= t.lowest && position <= t.highest, step = false;
    size_t at = seen ? key_at(a, t.kv, path, position, &step) : 0;
    float s =
        seen ? scale * score(q, (const float *)(step ? a.step_k : a.cache_k) + at, a.heads.pitch) : -INFINITY;
    float most = fmaxf(r->sum > 0 ? r->most : -INFINITY, warp_most(s));
    float old = r->sum > 0 ? exp2f(r->most - most) : 0, p = seen ? exp2f(s - most) : 0;
    *r = {most, r->sum * old + warp_sum(p)};
    const float *v = (const float *)(step ? a.step_v : a.cache_v) + at;
    uint32_t low = (uint32_t)(uintptr_t)v, high = (uint32_t)((uintptr_t)v >> 32);
    unsigned seen_lanes = __ballot_sync(ALL_LANES, seen);
#pragma unroll
    for (int i = 0; i < LANE_DIMS; i++) sum[i] *= old;
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
}

__global__ void __launch_bounds__(ATTENTION_WARPS *WARP, 1) attention_plain(Attention a, int first_tile) {
    SHARED(PlainShared, sm);
    let_next_begin();
    wait_for_launches();
    Tile t;
    if (!find_tile(a, first_tile + (int)blockIdx.z, (int)blockIdx.y, 1, &t)) return;
    int span = t.lowest / SPAN + (int)blockIdx.x, spans = t.highest / SPAN - t.lowest / SPAN + 1;
    if ((int)blockIdx.x >= spans) return;
    const float *q =
        (const float *)a.q +
        ((size_t)query_row(t, 0) * (size_t)a.heads.heads + (size_t)query_head(t, 0)) * (size_t)a.heads.pitch;
    const uint16_t *path = step_path(a.step, t.node_first);
    float scale = 1.4426950408889634f / sqrtf((float)a.heads.head_dim), sum[LANE_DIMS];
    Running r = {0, 0};
#pragma unroll
    for (int i = 0; i < LANE_DIMS; i++) sum[i] = 0;
    int from = span * SPAN + warp_number() * SUB;
    for (int base = from; base < from + SUB; base += WARP)
        if (base <= t.highest && base + WARP > t.lowest) take_block(a, t, q, path, base, scale, &r, sum);
    Known<1, DIM> *w = &sm->warp[warp_number()];
    if (warp_lane() == 0) w->running[0] = r;
#pragma unroll
    for (int i = 0; i < LANE_DIMS; i++) w->sum[0][i * WARP + warp_lane()] = sum[i];
    conclude(a, t, sm->warp, &sm->mine, &sm->is_last, (int)blockIdx.x, spans,
             (int)(blockIdx.z * gridDim.y + blockIdx.y));
}

size_t gpu_attention_plain_part(const Heads *h, int spans) {
    return (size_t)h->kv_heads * (size_t)spans * (sizeof(Known<1, DIM>) / sizeof(float));
}

void gpu_attention_plain(const Attention *a, int tiles, int first, int spans, void *stream) {
    dim3 grid((unsigned)spans, (unsigned)a->heads.kv_heads, (unsigned)tiles);
    LAUNCH_EARLY(attention_plain, grid, ATTENTION_WARPS * WARP, sizeof(PlainShared), stream, NULL, *a, first);
}
