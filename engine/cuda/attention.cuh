// Attention over a token tree: what both kernels share.
//
// A block of the grid takes a span of a tile (step_rows.h) for some heads of one key head. What it knows of a
// query then is a Part: the largest score in the span, and by it the weights' sum and the values' weighted
// sum, taken in ascending order of positions. The last block of a tile to finish merges its spans, in
// ascending order. A position that a query does not see, its own tile's or another's, has the weight zero,
// and to add zero leaves a sum as it is, bit for bit. So a query's result depends on its position and on its
// keys alone: not on which of them are committed already, not on its neighbours in the tile.
#pragma once
#include "engine/cuda/rows.cuh"

template <int ROWS, int DIM> struct Part {
    float most[ROWS], sum[ROWS]; // most: -INFINITY where nothing is seen
    alignas(16) float values[ROWS][DIM];
};

// Scores are taken less the largest; less nothing, where there is none.
__device__ __forceinline__ float finite_most(float most) { return most > -INFINITY ? most : 0; }

__device__ __forceinline__ int first_seen(const Attention &a, int position) {
    return a.window && position >= a.window ? position - a.window + 1 : 0;
}

// Element offset of the key and value at a position: in its slot where it is committed, else in the step
// area, of the node that the path has there.
__device__ __forceinline__ size_t key_at(const Attention &a, int kv, int position, bool step, int node) {
    size_t area = (size_t)(step ? a.area : a.slots);
    int i = step ? node : a.ring ? position % a.slots : position;
    return ((size_t)kv * area + (size_t)i) * (size_t)a.heads.pitch;
}

// Dimensions d .. d + 3 of a query's parts [0, count): their values' sum, and *sum of their weights; *most.
template <int ROWS, int DIM>
__device__ __forceinline__ float4 merge(const Part<ROWS, DIM> *parts, int count, int query, int d,
                                        float *most, float *sum) {
    float4 all = {0, 0, 0, 0};
    *most = -INFINITY;
    *sum = 0;
#pragma unroll 4
    for (int p = 0; p < count; p++) *most = fmaxf(*most, parts[p].most[query]);
    float base = finite_most(*most);
#pragma unroll 4
    for (int p = 0; p < count; p++) {
        float factor = exp2_fast(parts[p].most[query] - base);
        float4 x = *(const float4 *)&parts[p].values[query][d];
        *sum += factor * parts[p].sum[query];
        all.x += factor * x.x;
        all.y += factor * x.y;
        all.z += factor * x.z;
        all.w += factor * x.w;
    }
    return all;
}

// Two neighbours of a head's outputs, at d and d + 1.
__device__ __forceinline__ void put_mixed(const Attention &a, int row, int head, int d, float x, float y) {
    int dims = a.heads.head_dim;
    if (d < dims) put_activations(a.to, row, head * dims + d, x, y, d + 1 < dims);
}

template <int ROWS, int DIM>
__device__ __forceinline__ void merge_to_end(const Attention &a, const Part<ROWS, DIM> *parts, int count,
                                             int query, int d, int row, int head) {
    float most, sum;
    float4 x = merge(parts, count, query, d, &most, &sum);
    float inverse = 1 / sum;
    put_mixed(a, row, head, d, x.x * inverse, x.y * inverse);
    put_mixed(a, row, head, d + 2, x.z * inverse, x.w * inverse);
}

// True in all threads of the block that is the last of `count` to come here: what the others wrote can be
// read.
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
