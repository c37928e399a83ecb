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
// Eight, then four at a time are asked for together.
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
