// What the CUDA words that our kernels use mean on the host. `-include`d in front of each .cu by the build of
// the tests: the same sources that nvcc compiles run here, on any machine.
//
// One thread of the system runs one block at a time, and the block's threads take turns on stacks of their
// own. A turn ends where a thread waits for others: at __syncthreads, or at a collective of its warp. Which
// one goes on next is the caller's choice (simt_settings), so a missing barrier shows as bits that differ.
//
// It stops the program, with a line that says what and where, for
//   - an access beyond an allocation or beyond shared memory (guard pages), or inside a struct beyond an
//   array
//     (-fsanitize=bounds), or one that is not aligned (-fsanitize=alignment);
//   - threads of a warp in different collectives, or of a block at different barriers; one that never comes;
//   - asynchronous copies that a thread, or a block, leaves without waiting for; their targets are poison
//     until the wait;
//   - a launch that no device would take;
//   - a kernel that may begin early and reads what it may not, or leaves without having waited.
// New memory, shared memory at the start of each block, and what a copy will overwrite hold the poison byte.
// It cannot show fences, bank conflicts, registers, or how a tensor core rounds.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct SimtIndex {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

extern SimtIndex threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

// --- launching

typedef std::function<void()> SimtWork;
void simt_enqueue(void *stream, SimtWork work); // in runtime.cpp: streams run late, when someone waits
void simt_begin_early(const void *constant);    // of the next launch
void simt_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &thread);

// The arguments are taken now, as a device takes them; the kernel runs when the stream does.
template <typename... Parameters, typename... Arguments>
static inline void simt_put(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared, void *stream,
                            Arguments... arguments) {
    std::tuple<Parameters...> bound(arguments...);
    simt_enqueue(stream, [=] { simt_launch(grid, block, shared, [&] { std::apply(kernel, bound); }); });
}
#define LAUNCH(kernel, grid, block, shared, stream, ...) \
    simt_put((kernel), (grid), (block), (shared), (stream), __VA_ARGS__)

// It begins when the launch in front has ended, as any does here; but what it may not read before it waits is
// out of its reach until then (SimtSettings.early).
template <typename... Parameters, typename... Arguments>
static inline void simt_put_early(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                                  void *stream, const void *constant, Arguments... arguments) {
    std::tuple<Parameters...> bound(arguments...);
    simt_enqueue(stream, [=] {
        simt_begin_early(constant);
        simt_launch(grid, block, shared, [&] { std::apply(kernel, bound); });
    });
}
#define LAUNCH_EARLY(kernel, grid, block, shared, stream, constant, ...) \
    simt_put_early((kernel), (grid), (block), (shared), (stream), (constant), __VA_ARGS__)
void simt_wait_for_launches();

// A kernel's shared memory is one struct.
void *simt_shared(size_t bytes);
#define SHARED(T, name) T *name = (T *)simt_shared(sizeof(T))

// --- waiting for others

void simt_barrier(const char *place);
#define SIMT_TEXT(x)    #x
#define SIMT_PLACE(x)   __FILE__ ":" SIMT_TEXT(x)
#define __syncthreads() simt_barrier(SIMT_PLACE(__LINE__))

// A collective of all 32 lanes: the last to come does `op` for all. lanes: what each one passed.
typedef void SimtOp(void *const lanes[32]);
void simt_warp(SimtOp *op, void *lane);

struct SimtValue {
    uint32_t in, out;
    int source;
};
static inline void simt_shuffle(void *const lanes[32]) {
    for (int i = 0; i < 32; i++) {
        SimtValue *v = (SimtValue *)lanes[i];
        v->out = ((const SimtValue *)lanes[v->source & 31])->in;
    }
}
static inline void simt_ballot(void *const lanes[32]) {
    uint32_t votes = 0;
    for (int i = 0; i < 32; i++) votes |= (uint32_t)(((const SimtValue *)lanes[i])->in != 0) << i;
    for (int i = 0; i < 32; i++) ((SimtValue *)lanes[i])->out = votes;
}
// As five exchanges add: every lane takes the same sums of pairs.
static inline void simt_sum(void *const lanes[32]) {
    float x[32], pairs[32];
    for (int i = 0; i < 32; i++) memcpy(&x[i], &((const SimtValue *)lanes[i])->in, 4);
    for (int step = 16; step; step /= 2) {
        for (int i = 0; i < 32; i++) pairs[i] = x[i] + x[i ^ step];
        memcpy(x, pairs, sizeof x);
    }
    for (int i = 0; i < 32; i++) memcpy(&((SimtValue *)lanes[i])->out, &x[i], 4);
}
static inline void simt_meet(void *const *) {}

static inline int simt_lane() { return (int)(threadIdx.x % 32); }
template <typename T> static inline T simt_value(SimtOp *op, T value, int source) {
    static_assert(sizeof(T) == 4, "shuffles move words of 32 bits");
    SimtValue v = {0, 0, source};
    memcpy(&v.in, &value, 4);
    simt_warp(op, &v);
    memcpy(&value, &v.out, 4);
    return value;
}
template <typename T> static inline T simt_exchange(T value, int source) {
    return simt_value(simt_shuffle, value, source);
}
// Of a whole warp, with one wait instead of five.
static inline float simt_warp_sum(float x) { return simt_value(simt_sum, x, 0); }
template <typename T> static inline T __shfl_xor_sync(unsigned, T value, int mask) {
    return simt_exchange(value, simt_lane() ^ mask);
}
template <typename T> static inline T __shfl_sync(unsigned, T value, int source) {
    return simt_exchange(value, source);
}
static inline unsigned __ballot_sync(unsigned, int vote) {
    SimtValue v = {vote != 0, 0, 0};
    simt_warp(simt_ballot, &v);
    return v.out;
}
static inline void __syncwarp() { simt_warp(simt_meet, nullptr); }
static inline void __threadfence() {}
template <typename T> static inline T simt_atomic(T *p, T next) {
    T old = *p;
    *p = next;
    return old;
}
static inline unsigned atomicAdd(unsigned *p, unsigned v) { return simt_atomic(p, *p + v); }
static inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) {
    return simt_atomic(p, *p + v);
}
static inline unsigned atomicMin(unsigned *p, unsigned v) { return simt_atomic(p, v < *p ? v : *p); }
static inline unsigned atomicMax(unsigned *p, unsigned v) { return simt_atomic(p, v > *p ? v : *p); }

// --- asynchronous copies of 16 bytes: they land at the wait that needs them, not earlier

void simt_copy(void *to, const void *from); // NULL: zeros
void simt_prefetch(const void *global, int bytes);
void simt_copy_commit();
void simt_copy_wait(int groups_left);

// --- barriers in shared memory that count arrivals and bytes; copies of whole pieces, which land when
// someone waits for their barrier; multiplications of a warpgroup, which are done at the wait for their group

struct alignas(8) SimtBarrier {
    unsigned char phase, arrivals, left, open; // open: a mark
    int bytes;                                 // announced, not yet landed
};
void simt_barrier_open(SimtBarrier *b, int arrivals);
void simt_barrier_arrive(SimtBarrier *b, int bytes);
void simt_barrier_wait(SimtBarrier *b, int phase);
void simt_copy_bulk(void *to, const void *from, int bytes, SimtBarrier *b);

void simt_later(std::function<void()> work);
void simt_group_end();
void simt_groups_wait(int groups_left);
