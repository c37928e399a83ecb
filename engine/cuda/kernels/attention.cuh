// Attention over a token tree: shared by both kernels.
//
// A block of the grid takes a span of a tile (kernels.h) for some heads of one key head. Its result for a
// query is a Part: the largest score in the span, and relative to it the sum of the weights and the weighted
// sum of the values, both in ascending order of positions. The last block of a tile to finish merges the
// spans, in ascending order. A position that a query doesn't see has weight zero, and adding zero leaves a
// sum unchanged, bit for bit. So a query's result depends only on its position and its keys: not on which of
// them are committed already, not on its neighbours in the tile.
#pragma once
#include "engine/cuda/kernels/rows.cuh"

template <int ROWS, int DIM> struct Part {
    float most[ROWS], sum[ROWS]; // most: -INFINITY if nothing is seen
    alignas(16) float values[ROWS][DIM];
};

__device__ __forceinline__ float warp_most(float x) {
#pragma unroll
    for (int step = 16; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, step));
    return x;
}

// Returns the largest score, which is subtracted from all; 0 if there is none.
__device__ __forceinline__ float finite_most(float most) { return most > -INFINITY ? most : 0; }

// A score for powers of two, of q . k.
__device__ __forceinline__ float full_score(const Attention &a, float x) {
    return a.scale * (a.inner != 0 ? tanhf(x * a.inner) : x);
}

__device__ __forceinline__ int first_seen(const Attention &a, int position) {
    return a.window && position >= a.window ? position - a.window + 1 : 0;
}

// The cache that a tile's nodes see.
__device__ __forceinline__ const void *seen_cache(const Attention &a, const Tile *t, const void *cache) {
    return (const char *)cache + (size_t)t->cache * a.cache_bytes;
}

// Returns the element offset of the key and value at a position: in its slot if committed, else in the step
// area, where the path's node is.
__device__ __forceinline__ size_t key_at(const Attention &a, int kv, int position, bool step, int node) {
    size_t area = (size_t)(step ? a.area : a.slots);
    int i = step ? node : a.ring ? position % a.slots : position;
    return ((size_t)kv * area + (size_t)i) * (size_t)a.heads.pitch;
}

// Returns the node of the path of a tile of one node, at a position of this step: a block of positions is one
// turn.
__device__ __forceinline__ int node_at(const Attention &a, const Tile *t, int span, int position) {
    int first = span * SPAN > t->lowest ? span * SPAN : block_of(t->lowest), context = t->context;
    if (first < context) first = block_of(context);
    int turn = t->turn[span - context / SPAN] + (position - first) / BLOCK;
    return t->first + step_turns(a.step)[turn].key[position % BLOCK];
}

// Merges dimensions d .. d + 3 of a query's parts [0, count): the values' sum, the weights' *sum, and *most.
// Eight, then four loads at a time are in flight.
template <int ROWS, int DIM>
__device__ __forceinline__ void merge(const Part<ROWS, DIM> *parts, int count, int query, int d, float to[4],
                                      float *most, float *sum) {
    *most = -INFINITY;
    *sum = to[0] = to[1] = to[2] = to[3] = 0;
    for (int p = 0; p < count; p += 8) {
        float x[8];
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = p + i < count ? parts[p + i].most[query] : -INFINITY;
#pragma unroll
        for (int i = 0; i < 8; i++) *most = fmaxf(*most, x[i]);
    }
    float base = finite_most(*most);
    for (int p = 0; p < count; p += 4) {
        float factor[4], all[4];
        float4 x[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const Part<ROWS, DIM> *part = &parts[p + i < count ? p + i : 0];
            factor[i] = part->most[query];
            all[i] = part->sum[query];
            x[i] = *(const float4 *)&part->values[query][d];
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float f = p + i < count ? exp2_fast(factor[i] - base) : 0;
            *sum += f * all[i];
            to[0] += f * x[i].x;
            to[1] += f * x[i].y;
            to[2] += f * x[i].z;
            to[3] += f * x[i].w;
        }
    }
}

template <int ROWS, int DIM>
__device__ __forceinline__ void merge_to_end(const Attention &a, const Part<ROWS, DIM> *parts, int count,
                                             int query, int d, int row, int head) {
    float most, sum, x[4];
    merge(parts, count, query, d, x, &most, &sum);
    float inverse = 1 / sum;
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] *= inverse;
    put_means<4>(a.to, row, head * a.heads.head_dim + d, x, a.heads.head_dim - d);
}

// Returns true in all threads of the last of `count` blocks to come here, which may read the others' writes.
__device__ __forceinline__ bool comes_last(unsigned *done, int count, int *is_last) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        *is_last = atomicAdd(done, 1u) == (unsigned)count - 1;
        if (*is_last) *done = 0;
    }
    __syncthreads();
    __threadfence();
    return *is_last;
}

// attention_plain.cu, for f32.
void gpu_attention_plain(const Attention *a, int tiles, int first, int spans, void *stream);
// attention_eager.cu, for scores in memory: as many tiles at a time as they have room for.
void gpu_attention_eager(const Attention *a, int tiles, void *stream);
size_t gpu_attention_plain_part(const Heads *h, int spans);
