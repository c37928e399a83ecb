// Sampling of a row of logits, a block a row: temperature, top-k, top-p, the chances of given tokens, and a
// draw from the rest. It samples as engine/core/sampler.c does, with sums that any order of adding leaves
// equal:
//
//      mass of a token = exp((logit - highest) / temperature) in units of 2^-44, rounded to a whole number
//
// so a row's numbers don't depend on threads, blocks, or the other rows of the step. A token below half a
// unit (31.2 temperatures under the highest) has no mass. The sum over 2^19 tokens fits 64 bits.
//
// The cuts of top-k and top-p are found without sorting (keep), and a place in the order of ids by dividing
// the vocabulary 16 ways at a time (find): each takes a few sweeps over a row that is in L2. The latency of
// loads bounds a sweep, so each thread has BATCH of them in flight.
#include "engine/cuda/kernels/outputs.h"
#include "engine/cuda/kernels/rows.cuh"

enum { THREADS = 512, WARPS = THREADS / WARP, BATCH = 8 };
enum { BINS = 256, LANE_BINS = BINS / WARP, BINS_A_UNIT = 8 };

typedef unsigned long long Mass;

struct DrawShared {
    float highest[WARPS];
    Mass sum[WARPS]; // of a part of the vocabulary each
    Mass bin[BINS];  // the largest logits first
    Mass rest, held; // of the chosen bin: the mass needed from it, the mass in it
    int chosen;      // the bin's number; -1: all bins together don't suffice
    unsigned low, high;
};

// A row and its kept tokens: keys above `key`, and of those equal to it the ids up to `last`.
struct Row {
    const float *logits;
    int vocab;
    float highest;
    double inverse; // 1 / temperature
    unsigned key;
    int last;
    const int *tried; // (tried_count): tokens that a draw leaves out
    int tried_count;
};

// --- numbers

// Returns whole numbers in the order of floats; both zeros are equal. A NaN may be anywhere: it has no mass.
__device__ __forceinline__ unsigned key_of(float x) {
    unsigned bits = f32_bits(x + 0.0f);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float logit_of(unsigned key) {
    return bits_f32(key >> 31 ? key & 0x7fffffffu : ~key);
}

// Returns how far x is below the highest, in temperatures.
__device__ __forceinline__ double depth_of(const Row &row, float x) {
    return x == row.highest ? 0 : ((double)row.highest - (double)x) * row.inverse;
}

static const double UNITS = 0x1p44;  // the mass of the highest
static const double DEEPEST = 31.25; // deeper tokens have no mass

__device__ __forceinline__ Mass mass_of(const Row &row, float x) {
    if (!(x > -INFINITY)) return 0;
    double depth = depth_of(row, x);
    return depth < DEEPEST ? (Mass)(exp(-depth) * UNITS + 0.5) : 0;
}

// Returns the mass of a token with that logit; 0 if it isn't kept.
__device__ __forceinline__ Mass kept_mass(const Row &row, int id, float x) {
    unsigned key = key_of(x);
    return key > row.key || (key == row.key && id <= row.last) ? mass_of(row, x) : 0;
}

__device__ __forceinline__ bool was_tried(const Row &row, int id) {
    for (int i = 0; i < row.tried_count; i++)
        if (row.tried[i] == id) return true;
    return false;
}

// --- sums

// Loads the logits of id, id + step, ..; those from `to` on have no mass.
__device__ __forceinline__ void load(const Row &row, int id, int step, int to, float x[BATCH]) {
#pragma unroll
    for (int i = 0; i < BATCH; i++) x[i] = id + i * step < to ? row.logits[id + i * step] : -INFINITY;
}

__device__ __forceinline__ Mass shuffle(Mass x, int lane) {
    unsigned low = __shfl_sync(ALL_LANES, (unsigned)x, lane),
             high = __shfl_sync(ALL_LANES, (unsigned)(x >> 32), lane);
    return (Mass)high << 32 | low;
}

__device__ __forceinline__ Mass warp_total(Mass x) {
#pragma unroll
    for (int step = 16; step; step /= 2) x += shuffle(x, warp_lane() ^ step);
    return x;
}

__device__ __forceinline__ float block_highest(DrawShared *sm, const Row &row) {
    float best = -INFINITY;
    for (int id = (int)threadIdx.x; id < row.vocab; id += THREADS * BATCH) {
        float x[BATCH];
        load(row, id, THREADS, row.vocab, x);
#pragma unroll
        for (int i = 0; i < BATCH; i++) best = fmaxf(best, x[i]);
    }
#pragma unroll
    for (int step = 16; step; step /= 2) best = fmaxf(best, __shfl_xor_sync(ALL_LANES, best, step));
    if (warp_lane() == 0) sm->highest[warp_number()] = best;
    __syncthreads();
    best = sm->highest[0];
    for (int i = 1; i < WARPS; i++) best = fmaxf(best, sm->highest[i]);
    return best;
}

// --- a place in the order of ids

// What a token counts: 1 if its key is the last one kept, or its mass unless it was tried.
typedef enum { COUNT_EQUALS, COUNT_MASS } Counted;

__device__ __forceinline__ Mass counted(const Row &row, Counted what, int id, float x) {
    if (what == COUNT_EQUALS) return key_of(x) == row.key;
    Mass mass = kept_mass(row, id, x);
    return mass && was_tried(row, id) ? 0 : mass;
}

__device__ __forceinline__ int part_length(int from, int to) { return (to - from + WARPS - 1) / WARPS; }

// Writes the sums of WARPS equal parts of [from, to) to sm->sum.
__device__ __forceinline__ void sum_parts(DrawShared *sm, const Row &row, Counted what, int from, int to) {
    int length = part_length(from, to), first = from + warp_number() * length,
        end = first + length < to ? first + length : to;
    Mass sum = 0;
    __syncthreads(); // the previous sums have been read
    for (int id = first + warp_lane(); id < end; id += WARP * BATCH) {
        float x[BATCH];
        load(row, id, WARP, end, x);
#pragma unroll
        for (int i = 0; i < BATCH; i++) sum += counted(row, what, id + i * WARP, x[i]);
    }
    sum = warp_total(sum);
    if (warp_lane() == 0) sm->sum[warp_number()] = sum;
    __syncthreads();
}

__device__ __forceinline__ Mass total_of_parts(const DrawShared *sm) {
    Mass total = 0;
    for (int i = 0; i < WARPS; i++) total += sm->sum[i];
    return total;
}

// Narrows [from, to) to the part in which the running sum exceeds *target, and subtracts the parts before it.
__device__ __forceinline__ void choose_part(const DrawShared *sm, int *from, int *to, Mass *target) {
    int part = 0, length = part_length(*from, *to);
    while (part < WARPS - 1 && *target >= sm->sum[part]) *target -= sm->sum[part++];
    *from += part * length;
    if (*to > *from + length) *to = *from + length;
}

// Returns the id at which the running sum exceeds target, which is less than the sum over [from, to).
__device__ __forceinline__ int find(DrawShared *sm, const Row &row, Counted what, Mass target, int from,
                                    int to) {
    while (to - from > 1) {
        sum_parts(sm, row, what, from, to);
        choose_part(sm, &from, &to, &target);
    }
    return from;
}

// --- a place in the order of logits

typedef enum { CUT_TOKENS, CUT_MASS } Cut;

__device__ __forceinline__ int depth_bin(const Row &row, float x) {
    return (int)(depth_of(row, x) * BINS_A_UNIT);
}

__device__ __forceinline__ void clear_bins(DrawShared *sm) {
    if (threadIdx.x < BINS) sm->bin[threadIdx.x] = 0;
    __syncthreads();
}

__device__ __forceinline__ void put_in_bin(DrawShared *sm, Cut cut, int bin, Mass mass) {
    atomicAdd(&sm->bin[bin], cut == CUT_TOKENS ? (Mass)1 : mass);
}

// Chooses the bin in which the running sum reaches `need`, at least 1.
__device__ __forceinline__ void choose_bin(DrawShared *sm, Mass need) {
    __syncthreads();
    if (warp_number() == 0) {
        int lane = warp_lane(), bin = lane * LANE_BINS;
        Mass own = 0;
        for (int i = 0; i < LANE_BINS; i++) own += sm->bin[bin + i];
        Mass upto = own;
#pragma unroll
        for (int step = 1; step < WARP; step *= 2) {
            Mass below = shuffle(upto, lane - step);
            if (lane >= step) upto += below;
        }
        Mass before = upto - own;
        if (before < need && need <= upto) {
            for (; before + sm->bin[bin] < need; bin++) before += sm->bin[bin];
            sm->chosen = bin;
            sm->rest = need - before;
            sm->held = sm->bin[bin];
        }
        if (lane == WARP - 1 && upto < need) sm->chosen = -1;
    }
    __syncthreads();
}

// Bins of depth come first, because logits spread over them: finds the keys that bound the bin of `need`.
__device__ __forceinline__ bool find_depth(DrawShared *sm, const Row &row, Cut cut, Mass need) {
    clear_bins(sm);
    for (int id = (int)threadIdx.x; id < row.vocab; id += THREADS * BATCH) {
        float x[BATCH];
        load(row, id, THREADS, row.vocab, x);
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            Mass mass = kept_mass(row, id + i * THREADS, x[i]);
            if (mass) put_in_bin(sm, cut, depth_bin(row, x[i]), mass);
        }
    }
    if (threadIdx.x == 0) {
        sm->low = ~0u;
        sm->high = 0;
    }
    choose_bin(sm, need);
    if (sm->chosen < 0) return false;
    for (int id = (int)threadIdx.x; id < row.vocab; id += THREADS * BATCH) {
        float x[BATCH];
        load(row, id, THREADS, row.vocab, x);
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            bool there =
                x[i] > -INFINITY && depth_of(row, x[i]) < DEEPEST && depth_bin(row, x[i]) == sm->chosen;
            if (!there || !kept_mass(row, id + i * THREADS, x[i])) continue;
            atomicMin(&sm->low, key_of(x[i]));
            atomicMax(&sm->high, key_of(x[i]));
        }
    }
    __syncthreads();
    return true;
}

// Then bins of keys, each sweep 256 times finer: returns the key at which the running sum reaches `need`.
__device__ __forceinline__ unsigned find_key(DrawShared *sm, const Row &row, Cut cut, Mass need) {
    for (unsigned low = sm->low, high = sm->high;;) {
        int shift = 0;
        while ((high - low) >> shift >= BINS) shift++;
        clear_bins(sm);
        for (int id = (int)threadIdx.x; id < row.vocab; id += THREADS * BATCH) {
            float x[BATCH];
            load(row, id, THREADS, row.vocab, x);
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                unsigned key = key_of(x[i]);
                if (key < low || key > high) continue;
                Mass mass = kept_mass(row, id + i * THREADS, x[i]);
                if (mass) put_in_bin(sm, cut, (int)((high - key) >> shift), mass);
            }
        }
        choose_bin(sm, need);
        need = sm->rest;
        high -= (unsigned)sm->chosen << shift;
        if (shift == 0) return high;
        unsigned least = high - ((1u << shift) - 1);
        if (least > low) low = least;
    }
}

// Keeps the fewest tokens, largest logits first and lowest ids among equals, that reach `need`, at least 1,
// in number or in mass; all tokens if they don't reach it.
__device__ __forceinline__ void keep(DrawShared *sm, Row &row, Cut cut, Mass need) {
    if (!find_depth(sm, row, cut, need)) return;
    unsigned key = find_key(sm, row, cut, sm->rest);
    Mass one = cut == CUT_TOKENS ? 1 : mass_of(row, logit_of(key)), stay = (sm->rest + one - 1) / one,
         equal = sm->held / one;
    if (key != row.key) row.last = row.vocab;
    row.key = key;
    if (stay < equal) row.last = find(sm, row, COUNT_EQUALS, stay - 1, 0, row.vocab);
}

// --- the kernel

__device__ __forceinline__ Mass share_of(double share, Mass total) {
    return (Mass)ceil(share * (double)total);
}

__device__ __forceinline__ void filter(DrawShared *sm, Row &row, const DrawAsks *asks) {
    if (asks->top_k > 0 && asks->top_k < row.vocab) keep(sm, row, CUT_TOKENS, (Mass)asks->top_k);
    if (asks->top_p >= 1) return;
    sum_parts(sm, row, COUNT_MASS, 0, row.vocab);
    Mass need = share_of(asks->top_p, total_of_parts(sm));
    keep(sm, row, CUT_MASS, need ? need : 1);
}

__device__ __forceinline__ double chance_of(const Row &row, Mass total, int id) {
    return total && id < row.vocab ? (double)kept_mass(row, id, row.logits[id]) / (double)total : 0;
}

// Starts from the sums of all parts: subtracts the tried tokens, then draws.
__device__ __forceinline__ int draw_rest(DrawShared *sm, Row &row, double u) {
    int from = 0, to = row.vocab, length = part_length(from, to);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < row.tried_count; i += THREADS)
        if (row.tried[i] < to)
            atomicAdd(&sm->sum[row.tried[i] / length],
                      0 - kept_mass(row, row.tried[i], row.logits[row.tried[i]]));
    __syncthreads();
    Mass left = total_of_parts(sm), target = (Mass)(u * (double)left);
    if (left == 0) return -1;
    if (target >= left) target = left - 1;
    choose_part(sm, &from, &to, &target);
    return find(sm, row, COUNT_MASS, target, from, to);
}

__device__ __forceinline__ Row whole_row(DrawShared *sm, const float *logits, int vocab, double inverse) {
    Row row = {logits, vocab, 0, inverse, 0, 0, NULL, 0};
    row.highest = block_highest(sm, row);
    return row;
}

// Returns the sum of all tokens' masses at temperature 1; the likeliest one's is UNITS.
__device__ __forceinline__ Mass whole_mass(DrawShared *sm, const float *logits, int vocab) {
    Row row = whole_row(sm, logits, vocab, 1);
    sum_parts(sm, row, COUNT_MASS, 0, row.vocab);
    return total_of_parts(sm);
}

__global__ void __launch_bounds__(THREADS, 1) draw(Draw d) {
    SHARED(DrawShared, sm);
    let_next_begin();
    wait_for_launches();
    int number = d.row + (int)blockIdx.x;
    const DrawAsks *asks = d.asks;
    if (number >= d.rows->count) return;
    const int *tokens = asks->token + asks->first[number];
    int count = asks->first[number + 1] - asks->first[number];
    const float *logits = d.logits + (size_t)number * (size_t)d.stride;
    if (d.confidence) {
        Mass all = whole_mass(sm, logits, asks->real);
        if (threadIdx.x == 0) d.confidence[number] = all ? UNITS / (double)all : 0;
    }
    Row row = whole_row(sm, logits, asks->vocab, asks->inverse);
    filter(sm, row, asks);
    sum_parts(sm, row, COUNT_MASS, 0, row.vocab);
    Mass total = total_of_parts(sm);
    for (int i = (int)threadIdx.x; i < count; i += THREADS)
        d.chance[asks->first[number] + i] = chance_of(row, total, tokens[i]);
    for (int id = (int)threadIdx.x; d.p && id < row.vocab; id += THREADS)
        d.p[id] = (float)chance_of(row, total, id);
    row.tried = tokens;
    row.tried_count = count;
    int drawn = draw_rest(sm, row, asks->u[number]);
    if (threadIdx.x == 0) d.drawn[number] = drawn;
}

__global__ void __launch_bounds__(THREADS, 1) log_sums(LogSums l) {
    SHARED(DrawShared, sm);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x;
    if (row >= l.rows->count) return;
    Mass all = whole_mass(sm, l.logits + (size_t)row * (size_t)l.stride, l.real);
    if (threadIdx.x == 0) l.log_sum[row] = (float)shared_log((double)all / UNITS);
}

void gpu_log_sums(const LogSums *l, int most, void *stream) {
    LAUNCH_EARLY(log_sums, (unsigned)most, THREADS, sizeof(DrawShared), stream, NULL, *l);
}

void gpu_draw(const Draw *d, int most, void *stream) {
    LAUNCH_EARLY(draw, (unsigned)most, THREADS, sizeof(DrawShared), stream, NULL, *d);
}
