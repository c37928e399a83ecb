// A pair of blocks that share what they fetch: each copies half of every stage to both, gives a stage's place
// back to both, and passes its sums to the other; with bugs to order.
//
//      out (CLUSTERS_BLOCKS, 32): the sum of in (STAGES, 2, 32) over stages, the second half twice, of both
//      blocks of a pair together; block b's counts b + 1 times
#include "tests/ptx/planted.h"

#include "tests/gpu/probe.cuh"

#include "engine/cuda/kernels/runtime.h"

enum { STAGES = CLUSTERS_ITEMS / 64, SLOTS = 2, HALF = 32, HALF_BYTES = HALF * 4, THREADS = 64 };

struct Shared {
    float in[SLOTS][2][HALF], passed[HALF];
    uint64_t full[SLOTS], empty[SLOTS];
};

#if HOPPER
__device__ __forceinline__ uint32_t place_in(uint32_t rank, const void *at) {
    uint32_t to;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(at)), "r"(rank));
    return to;
}
__device__ __forceinline__ void open_barrier(uint64_t *b, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count) : "memory");
}
__device__ __forceinline__ void arrive_at(uint32_t rank, uint64_t *b, bool wide) {
    if (wide)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(place_in(rank, b))
                     : "memory");
    else asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(place_in(rank, b)) : "memory");
}
__device__ __forceinline__ void wait_wide(uint64_t *b, uint32_t parity) {
    asm volatile("{\n\t.reg .pred done;\n\t"
                 "again:\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n\t"
                 "@!done bra again;\n\t}" ::"r"(shared_address(b)),
                 "r"(parity)
                 : "memory");
}
__device__ __forceinline__ void copy_to(uint32_t mask, void *to, const void *from, uint64_t *b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                 "l"(from), "r"((int)HALF_BYTES), "r"(shared_address(b)), "h"((uint16_t)mask)
                 : "memory");
}
__device__ __forceinline__ void copy_elsewhere(uint32_t to, const void *from, uint32_t b) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "l"(from), "r"((int)HALF_BYTES), "r"(b)
        : "memory");
}

__device__ void fetch(ClusterPlant plant, Shared *sm, const float *in, uint32_t rank) {
    uint32_t mask = plant == CLUSTERS_MASK ? 5 : plant == CLUSTERS_MASK_NONE ? 0 : 3;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in), "r"(CLUSTERS_ITEMS * 4));
    for (int k = 0; k < STAGES; k++) {
        int slot = k % SLOTS;
        uint32_t bytes = 2 * HALF_BYTES, parity = (uint32_t)(k / SLOTS - 1) & 1;
        const float *from = in + (k * 2 + (int)rank) * HALF;
        if (k >= SLOTS && plant == CLUSTERS_WAIT_SCOPE) barrier_await(&sm->empty[slot], parity);
        else if (k >= SLOTS) wait_wide(&sm->empty[slot], parity);
        if (plant == CLUSTERS_EXPECT && rank == 1) bytes -= HALF_BYTES;
        if (plant != CLUSTERS_EXPECT_NONE || rank == 0) barrier_expect(&sm->full[slot], bytes);
        if (plant == CLUSTERS_COUNTS_HERE)
            copy_elsewhere(place_in(rank ^ 1, sm->in[slot][rank]), from, shared_address(&sm->full[slot]));
        copy_to(mask, sm->in[slot][rank], from, &sm->full[slot]);
    }
}

__device__ float add_up(ClusterPlant plant, Shared *sm, uint32_t rank) {
    int lane = (int)threadIdx.x % WARP;
    float sum = 0;
    for (int k = 0; k < STAGES; k++) {
        int slot = k % SLOTS;
        barrier_await(&sm->full[slot], (uint32_t)(k / SLOTS) & 1);
        sum += sm->in[slot][0][lane] + 2 * sm->in[slot][1][lane];
        __syncwarp();
        if (lane) continue;
        arrive_at(rank, &sm->empty[slot], true);
        if (plant != CLUSTERS_EMPTY) arrive_at(rank ^ 1, &sm->empty[slot], plant != CLUSTERS_ARRIVE_SCOPE);
    }
    return sum;
}

__device__ void pass_on(ClusterPlant plant, Shared *sm, uint32_t rank, float sum) {
    uint32_t to = place_in(plant == CLUSTERS_MAP ? 2 : rank ^ 1, &sm->passed[threadIdx.x % WARP]);
    if (plant == CLUSTERS_STORE_HERE) asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(sum) : "memory");
    else asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(sum) : "memory");
}
__device__ void meet_once(ClusterPlant plant, bool last) {
    if (plant != (last ? CLUSTERS_WAIT_ALONE : CLUSTERS_PLANTS))
        asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    if (plant == (last ? CLUSTERS_TWICE : CLUSTERS_PLANTS))
        asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    if (plant == (last ? CLUSTERS_NO_WAIT : CLUSTERS_PLANTS)) return;
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

__device__ void work(ClusterPlant plant, const float *in, float *out) {
    SHARED(Shared, sm);
    uint32_t rank = cluster_rank();
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    float sum = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) {
            open_barrier(&sm->full[i], 1);
            open_barrier(&sm->empty[i], plant == CLUSTERS_EMPTY ? 1 : 2);
        }
        if (plant != CLUSTERS_INIT_SHOWN) barriers_visible();
    }
    __syncthreads();
    if (plant == CLUSTERS_STUCK && rank == 1 && warp == 0) barrier_await(&sm->empty[0], 0);
    if (plant != CLUSTERS_BEGIN) meet_once(plant, false);
    if (plant == CLUSTERS_LEFT && rank == 1) return;
    if (warp == 0 && lane == 0) fetch(plant, sm, in, rank);
    __syncwarp();
    if (warp == 1) {
        sum = add_up(plant, sm, rank);
        pass_on(plant, sm, rank, sum * (float)(blockIdx.x + 1));
    }
    if (plant != CLUSTERS_STORE && plant != CLUSTERS_END) meet_once(plant, true);
    if (warp == 1 && plant == CLUSTERS_END) out[blockIdx.x * HALF + lane] = sum;
    else if (warp == 1) out[blockIdx.x * HALF + lane] = sum * (float)(blockIdx.x + 1) + sm->passed[lane];
}
#endif

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(THREADS)
    pairs(ClusterPlant plant, const float *in, float *out) {
#if HOPPER
    work(plant, in, out);
#else
    (void)plant, (void)in, (void)out;
#endif
}
__global__ void __launch_bounds__(THREADS) pairs_by_launch(ClusterPlant plant, const float *in, float *out) {
#if HOPPER
    work(plant, in, out);
#else
    (void)plant, (void)in, (void)out;
#endif
}

void planted_clusters(ClusterPlant plant, bool by_launch, const float *in, float *out) {
    void *stream, *from, *to;
    size_t bytes = CLUSTERS_ITEMS * sizeof(float), out_bytes = CLUSTERS_BLOCKS * HALF * sizeof(float);
    gpu_stream_open(&stream);
    gpu_take(&from, bytes);
    gpu_take(&to, out_bytes);
    gpu_copy(from, in, bytes, stream);
    unsigned blocks = plant == CLUSTERS_ODD ? 3 : CLUSTERS_BLOCKS;
    if (by_launch)
        launch_clusters(pairs_by_launch, CLUSTERS_BLOCKS, THREADS, sizeof(Shared), 2, stream, plant,
                        (const float *)from, (float *)to);
    else LAUNCH(pairs, blocks, THREADS, sizeof(Shared), stream, plant, (const float *)from, (float *)to);
    if (gpu_launched()) out[0] = -1;
    else gpu_copy(out, to, out_bytes, stream);
    gpu_stream_wait(stream);
    gpu_give(from);
    gpu_give(to);
    gpu_stream_close(stream);
}
