// Attention over a token tree: shared by both kernels.
//
// A block of the grid takes a span of a tile (kernels.h) for some heads of one key head. Its result for a
// query is a Part: the largest score in the span, and relative to it the sum of the weights and the weighted
// sum of the values, both in ascending order of positions. The last block of a tile to finish merges the
// parts. A position that a query doesn't see has weight zero, and adding zero leaves a sum unchanged, bit for
// bit. So a query's result depends only on its position and its keys: not on which of them are committed
// already, not on its neighbours in the tile.
//
// Additions have one order, whichever block makes them. GROUP_SPANS spans are a group, counted from position
// zero. A group's state starts empty and takes its spans' parts from left to right, by `fold`; the whole
// takes its groups in the same way. A block of several tiles keeps a group's state in registers, others leave
// the parts of their spans in memory.
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

// The parts of a tile and some heads, in ascending order: of the groups that quads took, whose spans are
// [0, wide), then of single spans.
struct Items {
    int first_group, groups, first_span, spans;
};

__device__ __forceinline__ Items items_of(int lowest, int highest, int wide) {
    int first = lowest / SPAN, last = highest / SPAN, end = wide <= last ? wide : last + 1;
    Items i = {first / GROUP_SPANS, 0, first > wide ? first : wide, 0};
    if (end > first) i.groups = (end - 1) / GROUP_SPANS - i.first_group + 1;
    if (i.first_span <= last) i.spans = last + 1 - i.first_span;
    return i;
}
__device__ __forceinline__ int item_group(const Items &i, int item) {
    return item < i.groups ? i.first_group + item : (i.first_span + item - i.groups) / GROUP_SPANS;
}

// The factors of a state and of the part that is added to it, whose largest scores are these, and the state's
// new one.
struct Factors {
    float most, own, other;
};
__device__ __forceinline__ Factors factors_of(float most, float part) {
    float both = fmaxf(most, part), base = finite_most(both);
    return {both, exp2_fast(most - base), exp2_fast(part - base)};
}
// The step of a fold; one number of it.
__device__ __forceinline__ float fold_number(const Factors &f, float own, float other) {
    return fmaf(own, f.own, other * f.other);
}

// Four dimensions of a query.
struct State {
    float most, sum, x[4];
};
__device__ __forceinline__ State empty_state() { return {-INFINITY, 0, {0, 0, 0, 0}}; }
__device__ __forceinline__ void fold(State *s, const State &part) {
    Factors f = factors_of(s->most, part.most);
    s->most = f.most;
    s->sum = fold_number(f, s->sum, part.sum);
#pragma unroll
    for (int i = 0; i < 4; i++) s->x[i] = fold_number(f, s->x[i], part.x[i]);
}

// Merges dimensions d[i] .. d[i] + 3 of queries query[i]. N * AHEAD loads are in flight.
template <int N, int AHEAD, int ROWS, int DIM>
__device__ __forceinline__ void merge(const Part<ROWS, DIM> *parts, const Items &items, const int query[N],
                                      const int d[N], State all[N]) {
    State group[N];
    int count = items.groups + items.spans;
#pragma unroll
    for (int n = 0; n < N; n++) all[n] = group[n] = empty_state();
    for (int p = 0; p < count; p += AHEAD) {
        State part[N][AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const Part<ROWS, DIM> *from = &parts[p + i < count ? p + i : 0];
#pragma unroll
            for (int n = 0; n < N; n++) {
                float4 x = *(const float4 *)&from->values[query[n]][d[n]];
                part[n][i] = {from->most[query[n]], from->sum[query[n]], {x.x, x.y, x.z, x.w}};
            }
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (p + i >= count) break;
            bool begins = p + i > 0 && item_group(items, p + i) != item_group(items, p + i - 1);
#pragma unroll
            for (int n = 0; n < N; n++) {
                if (begins) {
                    fold(&all[n], group[n]);
                    group[n] = empty_state();
                }
                fold(&group[n], part[n][i]);
            }
        }
    }
#pragma unroll
    for (int n = 0; n < N; n++) fold(&all[n], group[n]);
}

// A mean. Minus zero becomes zero: a fold with a part of zeros does that, too.
__device__ __forceinline__ float mean_of(float x, float inverse) { return x * inverse + 0.0f; }

__device__ __forceinline__ void put_state(const Attention &a, const State &s, int d, int row, int head) {
    float inverse = 1 / s.sum, x[4];
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = mean_of(s.x[i], inverse);
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
