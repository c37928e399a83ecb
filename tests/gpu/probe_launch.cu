// What lies between launches: gaps in a graph, instructions that have to be fetched, barriers of blocks.
#include "tests/gpu/probe.cuh"

enum { THREADS = 128, ACROSS = 8 };

__global__ void __launch_bounds__(THREADS) nothing(uint32_t *sink) {
    wait_for_launches();
    let_next_begin();
    if (threadIdx.x == 0 && blockIdx.x == 0) sink[0]++;
}
void probe_nothing(int blocks, size_t shared, bool early, const void *constant, uint32_t *sink,
                   void *stream) {
    (void)constant; // the shim's
    if (early) LAUNCH_EARLY(nothing, (unsigned)blocks, THREADS, shared, stream, constant, sink);
    else LAUNCH(nothing, (unsigned)blocks, THREADS, shared, stream, sink);
}

// An instruction has 16 bytes.
const int STRAIGHT_KB[STRAIGHT_SIZES] = {4, 16, 64, 128, 256};
template <int KB> __global__ void __launch_bounds__(WARP) straight(float *sink) {
    float sum[ACROSS], x = 0.999f + 1e-6f * (float)threadIdx.x, y = 1.0009f - x;
#pragma unroll
    for (int i = 0; i < ACROSS; i++) sum[i] = x + (float)i;
#pragma unroll
    for (int i = 0; i < KB * 64; i++) sum[i % ACROSS] = fmaf(sum[i % ACROSS], x, y);
    for (int i = 1; i < ACROSS; i++) sum[0] += sum[i];
    sink[blockIdx.x * WARP + threadIdx.x] = sum[0];
}
void probe_straight(int size, int blocks, float *sink, void *stream) {
    unsigned grid = (unsigned)blocks;
    if (size == 0) LAUNCH(straight<4>, grid, WARP, 0, stream, sink);
    else if (size == 1) LAUNCH(straight<16>, grid, WARP, 0, stream, sink);
    else if (size == 2) LAUNCH(straight<64>, grid, WARP, 0, stream, sink);
    else if (size == 3) LAUNCH(straight<128>, grid, WARP, 0, stream, sink);
    else LAUNCH(straight<256>, grid, WARP, 0, stream, sink);
}

// All blocks must be on the card at once: one a processor. The counter is zero at first.
__global__ void __launch_bounds__(THREADS) meet(int kind, int rounds, unsigned *counter) {
#if HOPPER
    __shared__ uint32_t word;
    word = 0;
    if (kind == MEET_REMOTE) cluster_meet();
    for (int r = 0; r < rounds; r++)
        if (kind == MEET_GRID) {
            __syncthreads();
            if (threadIdx.x == 0) {
                __threadfence();
                atomicAdd(counter, 1u);
                while (*(volatile unsigned *)counter < (unsigned)(r + 1) * gridDim.x) {}
                __threadfence();
            }
            __syncthreads();
        } else if (kind == MEET_REMOTE) {
            uint32_t at, x;
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                         : "=r"(at)
                         : "r"(shared_address(&word)), "r"(cluster_rank() ^ 1));
            asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(at + (word & 0)) : "memory");
            word = x;
        } else cluster_meet();
    if (kind == MEET_REMOTE) cluster_meet();
#else
    (void)kind, (void)rounds, (void)counter;
#endif
}
bool probe_meet(MeetKind kind, int rounds, int blocks, int code, unsigned *counter, void *stream) {
    if (!(code & CODE_HOPPER)) return false;
    int cluster = kind == MEET_GRID ? 1 : kind == MEET_FOUR ? 4 : 2;
    launch_clusters(meet, blocks, THREADS, 0, cluster, stream, (int)kind, rounds, counter);
    return true;
}
