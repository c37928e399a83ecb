// Attention over a token tree: what both kernels share.
//
// A tile is a few queries (node, head) of one key head. Positions are cut at multiples of 16 into blocks, of
// SUB into parts, one a warp, of SPAN into spans, one a block of the grid. A query goes through the blocks of
// a part in ascending order, with a running maximum, sum and output; parts are merged in ascending order, and
// so are spans. What a query does not see leaves its numbers as they are, bit for bit. So a query's result
// depends on its position and on its keys alone: not on which of them are committed already, not on its
// neighbours in the tile.
//
//      position   0 ........ SUB ........ 2 SUB .. SPAN ......
//                 | warp 0   | warp 1     | ..     | the next block of the grid
//
// Where a node's position p stands: in its slot where p is committed, else in the step area, at the node of
// its path that has position p.
#pragma once
#include "engine/cuda/rows.cuh"

enum { SUB = 64, ATTENTION_WARPS = SPAN / SUB };

// softmax over some keys, unfinished: the values' weighted sum is beside it.
struct Running {
    float most, sum; // sum 0: no key yet
};

// b after a: the factors with which their sums are added up, and what both are together.
__device__ __forceinline__ Running merge(Running a, Running b, float *of_a, float *of_b) {
    *of_a = a.sum > 0, *of_b = b.sum > 0;
    if (b.sum == 0) return a;
    if (a.sum == 0) return b;
    float most = fmaxf(a.most, b.most);
    *of_a = exp2f(a.most - most), *of_b = exp2f(b.most - most);
    return {most, a.sum * *of_a + b.sum * *of_b};
}

// Sums x of parts with factors f, where a part without keys has the factor 0 and an undefined x.
__device__ __forceinline__ float merge_sums(float a, float of_a, float b, float of_b) {
    if (of_b == 0) return a;
    if (of_a == 0) return b;
    return a * of_a + b * of_b;
}

__device__ __forceinline__ int first_seen(const Attention &a, int position) {
    return a.window && position >= a.window ? position - a.window + 1 : 0;
}

// The queries of a tile: query i of it is number tile * rows + i in (row, head of the group) order.
struct Tile {
    int first, queries; // of them there are
    int kv, group;
    int lowest, highest; // positions that any of them sees
    int node_first, node_last;
};

__device__ __forceinline__ int query_row(const Tile &t, int i) { return (t.first + i) / t.group; }
__device__ __forceinline__ int query_head(const Tile &t, int i) {
    return t.kv * t.group + (t.first + i) % t.group;
}

// False where there is no query.
__device__ __forceinline__ bool find_tile(const Attention &a, int tile, int kv, int rows, Tile *t) {
    const StepNode *nodes = step_nodes(a.step);
    t->kv = kv;
    t->group = a.heads.heads / a.heads.kv_heads;
    t->first = tile * rows;
    int left = a.step->count * t->group - t->first;
    t->queries = left < rows ? left : rows;
    if (left <= 0) return false;
    t->node_first = a.step->first + query_row(*t, 0);
    t->node_last = a.step->first + query_row(*t, t->queries - 1);
    t->lowest = t->highest = nodes[t->node_first].position;
    for (int n = t->node_first + 1; n <= t->node_last; n++) {
        int p = nodes[n].position;
        if (p < t->lowest) t->lowest = p;
        if (p > t->highest) t->highest = p;
    }
    t->lowest = first_seen(a, t->lowest);
    return true;
}

// Element offset of the key and value at a position of a node's sequence; *step: in the step area.
__device__ __forceinline__ size_t key_at(const Attention &a, int kv, const uint16_t *path, int position,
                                         bool *step) {
    *step = position >= a.step->context;
    size_t area = (size_t)(*step ? a.area : a.slots);
    int i = *step ? path[position - a.step->context] : a.ring ? position % a.slots : position;
    return ((size_t)kv * area + (size_t)i) * (size_t)a.heads.pitch;
}

// --- from warps to spans to the end

// What a tile of ROWS queries knows of some positions: ROWS Runnings, then ROWS sums of DIM. The padding puts
// rows that a warp writes at once into different banks.
template <int ROWS, int DIM> struct Known {
    Running running[ROWS];
    float sum[ROWS][DIM + 4];
};

// Warps' parts into one span's, in ascending order; all threads of the block.
template <int ROWS, int DIM>
__device__ __forceinline__ void merge_parts(const Known<ROWS, DIM> *parts, size_t step, int count,
                                            const Tile &t, int dims, Known<ROWS, DIM> *to) {
    const int threads = ATTENTION_WARPS * WARP;
    for (int i = (int)threadIdx.x; i < t.queries * dims; i += threads) {
        int query = i / dims, d = i % dims;
        Running r = {0, 0};
        float sum = 0, of_a, of_b;
        for (int p = 0; p < count; p++) {
            const Known<ROWS, DIM> *part = (const Known<ROWS, DIM> *)((const char *)parts + (size_t)p * step);
            r = merge(r, part->running[query], &of_a, &of_b);
            sum = merge_sums(sum, of_a, part->sum[query][d], of_b);
        }
        to->sum[query][d] = sum;
        if (d == 0) to->running[query] = r;
    }
}

template <int ROWS, int DIM>
__device__ __forceinline__ void finish(const Attention &a, const Tile &t, const Known<ROWS, DIM> *k) {
    int dims = a.heads.head_dim;
    for (int i = (int)threadIdx.x; i < t.queries * dims; i += ATTENTION_WARPS * WARP) {
        int query = i / dims, d = i % dims;
        put_activation(a.to, query_row(t, query), query_head(t, query) * dims + d,
                       k->sum[query][d] / k->running[query].sum);
    }
}

// The warps' parts stand in shared memory. spans: those that the tile sees; this block had number `span`.
template <int ROWS, int DIM>
__device__ __forceinline__ void conclude(const Attention &a, const Tile &t, Known<ROWS, DIM> *warps,
                                         Known<ROWS, DIM> *mine, int *is_last, int span, int spans,
                                         int counter) {
    int dims = a.heads.head_dim;
    __syncthreads();
    if (spans == 1) {
        merge_parts(warps, sizeof *warps, ATTENTION_WARPS, t, dims, mine);
        __syncthreads();
        finish(a, t, mine);
        return;
    }
    Known<ROWS, DIM> *parts =
        (Known<ROWS, DIM> *)a.parts + ((size_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x;
    merge_parts(warps, sizeof *warps, ATTENTION_WARPS, t, dims, &parts[span]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        *is_last = atomicAdd(&a.done[counter], 1u) == (unsigned)spans - 1;
        if (*is_last) a.done[counter] = 0;
    }
    __syncthreads();
    __threadfence();
    if (!*is_last) return;
    merge_parts(parts, sizeof *parts, spans, t, dims, mine);
    __syncthreads();
    finish(a, t, mine);
}
