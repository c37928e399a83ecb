// The choice of experts, the slots of rows that chose them, and the sum of their outputs (experts.h). A row's
// numbers depend on its own logits only; where its slots are depends on the others.
#include "engine/cuda/kernels/experts.h"
#include "engine/cuda/kernels/rows.cuh"

enum { SORT_THREADS = EXPERTS_MAX, GATHER_THREADS = 128, MIX_THREADS = 256 };

// --- choice: a warp has a row

struct ChooseShared {
    double sum[WARP];
    float logit[EXPERTS_MAX]; // NaN as +INFINITY
    bool taken[EXPERTS_MAX];
    int best[CHOSEN_MAX];
};

// Takes the largest logit that is left, of equals the first.
__device__ __forceinline__ int take_best(ChooseShared *sm, int count) {
    float most = -INFINITY;
    int best = EXPERTS_MAX;
    for (int e = warp_lane(); e < count; e += WARP) {
        if (sm->taken[e] || (best < EXPERTS_MAX && sm->logit[e] <= most)) continue;
        most = sm->logit[e];
        best = e;
    }
#pragma unroll
    for (int step = 16; step; step /= 2) {
        float other = __shfl_xor_sync(ALL_LANES, most, step);
        int at = __shfl_xor_sync(ALL_LANES, best, step);
        if (at == EXPERTS_MAX || (best < EXPERTS_MAX && (other < most || (other == most && at > best))))
            continue;
        most = other;
        best = at;
    }
    __syncwarp();
    if (warp_lane() == 0) sm->taken[best] = true;
    __syncwarp();
    return best;
}

__device__ __forceinline__ double sum_of_lanes(ChooseShared *sm, double x) {
    double sum = 0;
    sm->sum[warp_lane()] = x;
    __syncwarp();
    for (int i = 0; i < WARP; i++) sum += sm->sum[i];
    return sum;
}

__global__ void __launch_bounds__(WARP) choose(Choose c) {
    SHARED(ChooseShared, sm);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x, count = c.experts.count, chosen = c.experts.chosen;
    if (row >= c.rows->count) return;
    const float *logits = c.logits + (size_t)row * (size_t)c.stride;
    float highest = -INFINITY;
    for (int e = warp_lane(); e < count; e += WARP) {
        float x = logits[e];
        sm->logit[e] = x == x ? x : INFINITY;
        sm->taken[e] = false;
        highest = fmaxf(highest, sm->logit[e]);
    }
#pragma unroll
    for (int step = 16; step; step /= 2) highest = fmaxf(highest, __shfl_xor_sync(ALL_LANES, highest, step));
    __syncwarp();
    for (int i = 0; i < chosen; i++) {
        int best = take_best(sm, count);
        if (warp_lane() == 0) sm->best[i] = best;
    }
    __syncwarp();
    double sum = 0;
    for (int e = warp_lane(); e < count; e += WARP)
        if (sm->taken[e] || !c.experts.renormalised) sum += exp((double)logits[e] - (double)highest);
    sum = sum_of_lanes(sm, sum);
    for (int i = warp_lane(); i < chosen; i += WARP) {
        int own = sm->best[i], before = 0;
        for (int k = 0; k < chosen; k++) before += sm->best[k] < own;
        c.expert[row * chosen + before] = own;
        c.weight[row * chosen + before] = (float)(exp((double)logits[own] - (double)highest) / sum);
    }
}

void gpu_choose(const Choose *c, int most, void *stream) {
    LAUNCH_EARLY(choose, (unsigned)most, WARP, sizeof(ChooseShared), stream, NULL, *c);
}

// --- slots: one block, of which a thread has an expert

struct SortShared {
    int count[EXPERTS_MAX];
};

__global__ void __launch_bounds__(SORT_THREADS) sort_rows(Sort s) {
    SHARED(SortShared, sm);
    let_next_begin();
    wait_for_launches();
    int own = (int)threadIdx.x, choices = s.rows->count * s.experts.chosen, count = 0, first = 0;
    bool there = own < s.experts.count;
    for (int i = 0; i < choices && there; i++) count += s.expert[i] == own;
    sm->count[own] = count;
    __syncthreads();
    if (!there) return;
    for (int e = 0; e < own; e++) first += (sm->count[e] + 7) / 8 * 8;
    s.slices[own] = {first, count};
    for (int i = 0; i < choices && count; i++)
        if (s.expert[i] == own) s.slot[i] = first++;
}

void gpu_sort(const Sort *s, void *stream) {
    unsigned threads = (unsigned)(s->experts.count + WARP - 1) / WARP * WARP;
    LAUNCH_EARLY(sort_rows, 1, threads, sizeof(SortShared), stream, NULL, *s);
}

// --- a block copies a row to one of its slots, 16 bytes at a time

__global__ void __launch_bounds__(GATHER_THREADS) gather(Gather g) {
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x;
    if (row >= g.rows->count) return;
    int slot = g.slot[row * g.chosen + (int)blockIdx.y];
    if (g.to.form == FORM_PACKED) {
        for (int i = (int)threadIdx.x; i < g.to.pitch / 8; i += GATHER_THREADS)
            *(uint4 *)((uint16_t *)g.to.data + packed_at(g.to.pitch, slot, i * 8)) =
                *(const uint4 *)((const uint16_t *)g.from.data + packed_at(g.from.pitch, row, i * 8));
        return;
    }
    const uint4 *from = (const uint4 *)((const float *)g.from.data + (size_t)row * (size_t)g.from.pitch);
    uint4 *to = (uint4 *)((float *)g.to.data + (size_t)slot * (size_t)g.to.pitch);
    for (int i = (int)threadIdx.x; i < g.to.pitch / 4; i += GATHER_THREADS) to[i] = from[i];
}

void gpu_gather(const Gather *g, int most, void *stream) {
    LAUNCH_EARLY(gather, dim3((unsigned)most, (unsigned)g->chosen), GATHER_THREADS, 0, stream, NULL, *g);
}

// --- sums

__global__ void __launch_bounds__(MIX_THREADS) mix(Mix m) {
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.y, i = (int)(blockIdx.x * MIX_THREADS + threadIdx.x), chosen = m.experts.chosen;
    if (row >= m.rows->count || i >= m.width) return;
    float *own = m.sums + (size_t)row * (size_t)m.width + (size_t)i, sum = 0, shared = 1;
    if (m.logits) shared = (float)(1 / (1 + exp(-(double)m.logits[(size_t)row * (size_t)m.stride])));
    if (m.experts.shared_width) sum = shared * *own;
    for (int k = 0; k < chosen; k++) {
        size_t slot = (size_t)m.slot[row * chosen + k];
        sum += m.weight[row * chosen + k] * m.outputs[slot * (size_t)m.width + (size_t)i];
    }
    if (!m.hidden) *own = sum;
    else m.hidden[(size_t)row_node(m.rows, row) * (size_t)m.width + (size_t)i] += m.scale * sum;
}

void gpu_mix(const Mix *m, int most, void *stream) {
    dim3 grid((unsigned)(m->width + MIX_THREADS - 1) / MIX_THREADS, (unsigned)most);
    LAUNCH_EARLY(mix, grid, MIX_THREADS, 0, stream, NULL, *m);
}
