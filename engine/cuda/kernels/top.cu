// The best k of a row of logits. Up to TOP_SLICES blocks have a slice of the vocabulary each; the last of a
// row to finish merges their results. Round i finds the best of the tokens that come after round i - 1's:
// larger logits come first, lower ids among equals. NaN counts as +INFINITY (HEAD_BAD).
#include "engine/cuda/kernels/outputs.h"
#include "engine/cuda/kernels/rows.cuh"

enum { THREADS = 256, SLICE_LEAST = 2048 };

struct Best {
    float logit;
    int id; // -1: none
};

struct TopShared {
    Best best[THREADS / WARP];
    int is_last;
};

// Returns whether a comes before b.
__device__ __forceinline__ bool before(Best a, Best b) {
    if (a.id < 0 || b.id < 0) return a.id >= 0;
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

__device__ __forceinline__ Best best_of_warp(Best b) {
#pragma unroll
    for (int step = 16; step; step /= 2) {
        Best other = {__shfl_xor_sync(ALL_LANES, b.logit, step), __shfl_xor_sync(ALL_LANES, b.id, step)};
        if (before(other, b)) b = other;
    }
    return b;
}

__device__ __forceinline__ Best best_of_block(TopShared *sm, Best b) {
    b = best_of_warp(b);
    if (warp_lane() == 0) sm->best[warp_number()] = b;
    __syncthreads();
    b = sm->best[0];
    for (int i = 1; i < THREADS / WARP; i++)
        if (before(sm->best[i], b)) b = sm->best[i];
    __syncthreads();
    return b;
}

// Finds the k best of n candidates; if ids is NULL, candidate i has id from + i. Missing ones get id -1.
__device__ __forceinline__ void rank(TopShared *sm, const float *logits, const int *ids, int from, int n,
                                     int k, int *to_id, float *to_logit) {
    Best last = {INFINITY, -1};
    for (int round = 0; round < k; round++) {
        Best mine = {0, -1};
        for (int i = (int)threadIdx.x; i < n; i += THREADS) {
            float x = logits[i];
            Best b = {x == x ? x : INFINITY, ids ? ids[i] : from + i};
            if (b.id >= 0 && (round == 0 || before(last, b)) && before(b, mine)) mine = b;
        }
        last = best_of_block(sm, mine);
        if (threadIdx.x == 0) {
            to_id[round] = last.id;
            to_logit[round] = last.id < 0 ? -INFINITY : last.logit;
        }
        if (last.id >= 0) continue;
        for (int i = round + 1 + (int)threadIdx.x; i < k; i += THREADS) {
            to_id[i] = -1;
            to_logit[i] = -INFINITY;
        }
        break;
    }
}

__global__ void __launch_bounds__(THREADS) top(Top t) {
    SHARED(TopShared, sm);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.y, slice = (int)blockIdx.x;
    if (row >= t.rows->count) return;
    int slices = (int)gridDim.x, from = (int)((long)t.real * slice / slices),
        to = (int)((long)t.real * (slice + 1) / slices);
    size_t of_row = (size_t)row * TOP_SLICES * (size_t)t.k, at = of_row + (size_t)(slice * t.k);
    rank(sm, t.logits + (size_t)row * (size_t)t.stride + from, NULL, from, to - from, t.k, t.slice_id + at,
         t.slice_logit + at);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        sm->is_last = atomicAdd(&t.done[row], 1u) == gridDim.x - 1;
        if (sm->is_last) t.done[row] = 0;
    }
    __syncthreads();
    __threadfence();
    if (!sm->is_last) return;
    int *id = t.id + (size_t)row * (size_t)t.k;
    rank(sm, t.slice_logit + of_row, t.slice_id + of_row, 0, slices * t.k, t.k, id,
         t.logit + (size_t)row * (size_t)t.k);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < t.k; i += THREADS)
        if (id[i] < 0) id[i] = 0; // as on the CPU: id 0 with -INFINITY
}

void gpu_top(const Top *t, int most, void *stream) {
    int slices = (t->real + SLICE_LEAST - 1) / SLICE_LEAST;
    dim3 grid((unsigned)(slices < TOP_SLICES ? slices : TOP_SLICES), (unsigned)most);
    LAUNCH_EARLY(top, grid, THREADS, sizeof(TopShared), stream, NULL, *t);
}

// --- only the best. A thread starts all of its loads at once, of up to 32,768 logits a row.

enum { LOADS = 8 };

__global__ void __launch_bounds__(THREADS) likeliest(Likeliest l) {
    SHARED(TopShared, sm);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.y, slice = (int)blockIdx.x;
    if (row >= l.rows->count) return;
    int from = (int)((long)l.real * slice / BEST_SLICES),
        to = (int)((long)l.real * (slice + 1) / BEST_SLICES);
    const float *logits = l.logits + (size_t)row * (size_t)l.stride;
    Best best = {0, -1};
#pragma unroll 1
    for (int i = from + (int)threadIdx.x; i < to; i += THREADS * LOADS) {
        float x[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++) x[k] = i + k * THREADS < to ? logits[i + k * THREADS] : -INFINITY;
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            Best b = {x[k] == x[k] ? x[k] : INFINITY, i + k * THREADS < to ? i + k * THREADS : -1};
            if (before(b, best)) best = b;
        }
    }
    best = best_of_block(sm, best);
    if (threadIdx.x == 0)
        l.keys[row * BEST_SLICES + slice] = best.id < 0 ? 0 : likeliest_key(best.logit, best.id);
}

void gpu_likeliest(const Likeliest *l, int most, void *stream) {
    LAUNCH_EARLY(likeliest, dim3(BEST_SLICES, (unsigned)most), THREADS, sizeof(TopShared), stream, NULL, *l);
}

// --- a level of a dynamic tree, by one block: a guess's place is the number of guesses before it

struct GrowShared {
    float score[GROW_MOST * GROW_MOST];
    int chosen[GROW_MOST];
};

__device__ __forceinline__ int grown_node(const Grow &g, int level, int i) {
    return level == 0 ? g.end : g.end + 1 + (level - 1) * g.k + i;
}

// Fills a turn's keys with the ancestors of its node, the i-th of the level.
__device__ __forceinline__ void name_path(const Grow &g, Turn *turn, int i) {
    for (int level = g.level; level > 1;) {
        i = g.above[--level * g.k + i];
        int at = g.position + level - turn->base;
        if (at < 0) break;
        if (at < BLOCK) turn->key[at] = (uint16_t)grown_node(g, level, i);
    }
}

__global__ void __launch_bounds__(THREADS) grow(Grow g) {
    SHARED(GrowShared, sm);
    int count = (g.level == 1 ? 1 : g.k) * g.k, self = (int)threadIdx.x, row = (g.level - 1) * g.k + self;
    for (int i = self; i < count; i += THREADS) {
        int parent = i / g.k;
        float above = g.level == 1 ? 0 : g.score[(g.level - 2) * g.k + parent];
        sm->score[i] = above + log_chance(g.logit[i], g.logit[parent * g.k], g.log_sum[parent]);
    }
    if (self < g.k) sm->chosen[self] = self; // where scores aren't numbers, places are missing
    __syncthreads();
    for (int i = self; i < count; i += THREADS) {
        int place = 0;
        for (int k = 0; k < count; k++) place += guess_before(sm->score[k], k, sm->score[i], i);
        if (place < g.k) sm->chosen[place] = i;
    }
    __syncthreads();
    if (self < g.k) {
        int guess = sm->chosen[self], id = g.id[guess];
        StepNode *node = (StepNode *)step_nodes(g.step) + self;
        g.score[row] = sm->score[guess];
        g.above[row] = guess / g.k;
        node->token = g.names ? g.names[id] : id;
        node->parent = g.first + grown_node(g, g.level - 1, guess / g.k);
    }
    __syncthreads();
    for (const Tile *t = step_tiles(g.step); t < step_tiles(g.step) + g.step->tiles; t++)
        for (int i = t->turn[0] + self; i < t->turn[STEP_SPANS]; i += THREADS) {
            Turn *turn = (Turn *)step_turns(g.step) + i;
            int node = 0; // the only one, where a turn has any of these positions
            while (!(turn->nodes >> node & 1)) node++;
            name_path(g, turn, t->row[node]);
        }
}

void gpu_grow(const Grow *g, void *stream) { LAUNCH(grow, 1, THREADS, sizeof(GrowShared), stream, *g); }
