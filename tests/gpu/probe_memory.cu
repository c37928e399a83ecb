// Reading by every way that a product might read, from memory and from L2; what an idle moment can be used
// for; latencies.
#include "tests/gpu/probe.cuh"

enum {
    THREADS = 256,
    WARPS = 4,
    STAGE = 128,
    RING_MOST = 64,
    BULK_THREADS = 32
}; // STAGE: pieces of 16 bytes

__global__ void code(unsigned *flags) {
    unsigned can = 0;
    if (HAS_WARPGROUPS) can |= (unsigned)CODE_WARPGROUPS;
    if (HOPPER) can |= (unsigned)CODE_HOPPER;
    if (threadIdx.x == 0) *flags = can;
}
void probe_code(unsigned *flags, void *stream) { LAUNCH(code, 1, WARP, 0, stream, flags); }

// --- loads

template <int DEPTH, bool CHUNKS>
__global__ void __launch_bounds__(THREADS)
    read_loads(const uint4 *data, size_t count, int passes, uint32_t *sink) {
    size_t chunk = count / gridDim.x, stride = THREADS * (CHUNKS ? (size_t)1 : (size_t)gridDim.x);
    size_t first = CHUNKS ? blockIdx.x * chunk + threadIdx.x : (size_t)blockIdx.x * THREADS + threadIdx.x;
    size_t end = CHUNKS ? (blockIdx.x + 1) * chunk : count;
    uint32_t seen = 0;
    for (int pass = 0; pass < passes; pass++)
        for (size_t i = first; i + (DEPTH - 1) * stride < end; i += DEPTH * stride) {
            uint4 v[DEPTH];
#pragma unroll
            for (int d = 0; d < DEPTH; d++) v[d] = data[i + (size_t)d * stride];
#pragma unroll
            for (int d = 0; d < DEPTH; d++) seen ^= v[d].x ^ v[d].y ^ v[d].z ^ v[d].w;
        }
    sink[(size_t)blockIdx.x * THREADS + threadIdx.x] = seen;
}

template <int DEPTH> static void loads(const Read *r, void *stream) {
    if (r->way == READ_CHUNKS)
        LAUNCH((read_loads<DEPTH, true>), (unsigned)r->blocks, THREADS, 0, stream, (const uint4 *)r->data,
               r->bytes / 16, r->passes, r->sink);
    else
        LAUNCH((read_loads<DEPTH, false>), (unsigned)r->blocks, THREADS, 0, stream, (const uint4 *)r->data,
               r->bytes / 16, r->passes, r->sink);
}

// --- copies of 2 KB, a ring a warp, as in product_narrow

template <int STAGES> struct Rings { uint4 piece[WARPS][STAGES][STAGE]; };
__device__ __forceinline__ void fetch(uint4 *to, const uint4 *from, bool leaving) {
#if HOPPER
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    if (leaving) {
        for (int i = warp_lane(); i < STAGE; i += WARP)
            asm volatile(
                "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(shared_address(to + i)),
                "l"(from + i), "l"(policy)
                : "memory");
        return;
    }
#endif
    (void)leaving;
#pragma unroll
    for (int i = 0; i < STAGE / WARP; i++)
        copy_async(to + i * WARP + warp_lane(), from + i * WARP + warp_lane());
}
template <int STAGES, bool LEAVING>
__global__ void __launch_bounds__(WARPS *WARP)
    read_warps(const uint4 *data, size_t count, int passes, uint32_t *sink) {
    SHARED(Rings<STAGES>, sm);
    size_t each = count / STAGE / (gridDim.x * WARPS); // stages of a warp
    const uint4 *own = data + (blockIdx.x * WARPS + (size_t)warp_number()) * each * STAGE;
    uint4(*ring)[STAGE] = sm->piece[warp_number()];
    size_t all = each * (size_t)passes, ahead = 0, next = 0; // ahead: fetched; next: its stage of `each`
    uint32_t seen = 0;
    int to = 0, from = 0;
    for (; ahead < STAGES - 1; ahead++, next = next + 1 == each ? 0 : next + 1) {
        if (ahead < all) fetch(ring[to++], own + next * STAGE, LEAVING);
        copy_commit();
    }
    for (size_t k = 0; k < all; k++, ahead++, next = next + 1 == each ? 0 : next + 1) {
        copy_wait<STAGES - 2>();
        seen ^= ring[from][warp_lane()].x;
        from = from + 1 == STAGES ? 0 : from + 1;
        if (ahead < all) fetch(ring[to], own + next * STAGE, LEAVING);
        to = to + 1 == STAGES ? 0 : to + 1;
        copy_commit();
    }
    copy_wait<0>();
    sink[blockIdx.x * WARPS * WARP + threadIdx.x] = seen;
}
template <int STAGES> static void warps(const Read *r, void *stream) {
    if (r->leaving)
        LAUNCH((read_warps<STAGES, true>), (unsigned)r->blocks, WARPS * WARP, sizeof(Rings<STAGES>), stream,
               (const uint4 *)r->data, r->bytes / 16, r->passes, r->sink);
    else
        LAUNCH((read_warps<STAGES, false>), (unsigned)r->blocks, WARPS * WARP, sizeof(Rings<STAGES>), stream,
               (const uint4 *)r->data, r->bytes / 16, r->passes, r->sink);
}

// --- bulk copies, which a cluster's blocks may share: each asks for its part of a piece, and all get it.
//
// Nobody reads the pieces, so a block may be a turn ahead of its neighbours and overwrite what they have;
// every byte is counted once by each block's barriers, whichever turn it belongs to, so all of them end.

__global__ void __launch_bounds__(BULK_THREADS)
    read_bulk(const unsigned char *data, size_t bytes, int passes, int piece, int depth, int share,
              bool leaving, uint32_t *sink) {
#if HOPPER
    SHARED(unsigned char, ring);
    __shared__ uint64_t full[RING_MOST];
    uint32_t rank = share > 1 ? cluster_rank() : 0;
    size_t streams = gridDim.x / (unsigned)share, each = bytes / (size_t)piece / streams;
    const unsigned char *own = data + blockIdx.x / (unsigned)share * each * (size_t)piece;
    if (threadIdx.x == 0)
        for (int i = 0; i < depth; i++) barrier_init(&full[i]);
    if (threadIdx.x == 0) barriers_visible();
    __syncthreads();
    if (share > 1) cluster_meet();
    if (threadIdx.x == 0) {
        uint64_t policy;
        asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
        uint32_t part = (uint32_t)piece / (uint32_t)share;
        size_t all = each * (size_t)passes, at = 0;
        int slot = 0;
        uint32_t turn = 0; // of the ring; counted, to keep divisions of 64 bits off the way
        for (size_t k = 0; k < all + (size_t)depth; k++, slot++) {
            if (slot == depth) slot = 0, turn++;
            if (turn > 0) barrier_await(&full[slot], (turn - 1) & 1);
            if (k >= all) continue;
            const unsigned char *from = own + at * (size_t)piece + rank * part;
            uint32_t to = shared_address(ring + (size_t)slot * (size_t)piece + rank * part),
                     bar = shared_address(&full[slot]);
            at = at + 1 == each ? 0 : at + 1;
            barrier_expect(&full[slot], (uint32_t)piece);
            if (share > 1)
                asm volatile(
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                    "[%0], [%1], %2, [%3], %4;" ::"r"(to),
                    "l"(from), "r"(part), "r"(bar), "h"((uint16_t)((1 << share) - 1))
                    : "memory");
            else if (leaving)
                asm volatile(
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                    "[%0], [%1], %2, [%3], %4;" ::"r"(to),
                    "l"(from), "r"(part), "r"(bar), "l"(policy)
                    : "memory");
            else
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                             "%2, [%3];" ::"r"(to),
                             "l"(from), "r"(part), "r"(bar)
                             : "memory");
        }
    }
    if (share > 1) cluster_meet(); // no block leaves while another writes to it
    if (threadIdx.x == 0) sink[blockIdx.x] = *(uint32_t *)ring;
#else
    (void)data, (void)bytes, (void)passes, (void)piece, (void)depth, (void)share, (void)leaving, (void)sink;
#endif
}

// --- all of them

size_t read_in_flight(const Read *r) {
    if (r->way == READ_BULK) return (size_t)r->depth * (size_t)r->piece;
    if (r->way == READ_WARPS) return (size_t)(r->depth - 1) * WARPS * STAGE * 16;
    return (size_t)r->depth * THREADS * 16;
}
size_t read_shared(const Read *r) {
    if (r->way == READ_BULK) return (size_t)r->depth * (size_t)r->piece;
    return r->way == READ_WARPS ? (size_t)r->depth * WARPS * STAGE * 16 : 0;
}
size_t read_bytes(const Read *r) {
    size_t unit = 16;
    if (r->way == READ_BULK) unit = (size_t)r->piece * (size_t)(r->blocks / r->share);
    if (r->way == READ_WARPS) unit = (size_t)WARPS * STAGE * 16 * (size_t)r->blocks;
    if (r->way == READ_STRIDE) unit = (size_t)r->blocks * THREADS * 16 * (size_t)r->depth;
    if (r->way == READ_CHUNKS) unit = (size_t)r->blocks * THREADS * 16 * (size_t)r->depth;
    return r->bytes / unit * unit * (size_t)r->passes * (size_t)(r->way == READ_BULK ? r->share : 1);
}
bool probe_read_way(const Read *r, void *stream) {
    if ((r->way == READ_BULK || r->leaving) && !(r->code & CODE_HOPPER)) return false;
    if (r->way == READ_BULK) {
        launch_clusters(read_bulk, r->blocks, BULK_THREADS, read_shared(r), r->share, stream,
                        (const unsigned char *)r->data, r->bytes, r->passes, r->piece, r->depth, r->share,
                        r->leaving, r->sink);
    } else if (r->way == READ_WARPS) {
        if (r->depth == 3) warps<3>(r, stream);
        else if (r->depth == 5) warps<5>(r, stream);
        else if (r->depth == 8) warps<8>(r, stream);
        else warps<12>(r, stream);
    } else if (r->depth == 1) loads<1>(r, stream);
    else if (r->depth == 2) loads<2>(r, stream);
    else if (r->depth == 4) loads<4>(r, stream);
    else if (r->depth == 8) loads<8>(r, stream);
    else loads<16>(r, stream);
    return true;
}

// --- an idle moment

__global__ void __launch_bounds__(THREADS)
    idle(int turns, const unsigned char *data, size_t ahead, uint32_t *sink) {
    float x = (float)threadIdx.x;
#if HOPPER
    size_t each = ahead / gridDim.x / 4096 * 4096;
    if (threadIdx.x < each / 4096)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], 4096;" ::"l"(data + blockIdx.x * each +
                                                                          threadIdx.x * 4096)
                     : "memory");
#else
    (void)data, (void)ahead;
#endif
    for (int i = 0; i < turns; i++) x = fmaf(x, 0.999f, 1.0f);
    sink[blockIdx.x * THREADS + threadIdx.x] = f32_bits(x);
}
bool probe_idle(int blocks, int turns, const void *data, size_t ahead, int code, uint32_t *sink,
                void *stream) {
    if (ahead && !(code & CODE_HOPPER)) return false;
    LAUNCH(idle, (unsigned)blocks, THREADS, 0, stream, turns, (const unsigned char *)data, ahead, sink);
    return true;
}

// --- latencies

enum { STRIDE = 33 * 32 }; // words from a load of the chain to the next: another line, and another page soon

__global__ void __launch_bounds__(THREADS) make_chain(uint32_t *data, uint32_t count) {
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS)
        data[i] = (uint32_t)(((uint64_t)i + STRIDE) % count);
}
void probe_chain(uint32_t *data, size_t bytes, void *stream) {
    LAUNCH(make_chain, 64, THREADS, 0, stream, data, (uint32_t)(bytes / 4));
}

template <int KIND>
__global__ void __launch_bounds__(THREADS)
    wait_chain(uint32_t *data, size_t bytes, int count, long long *clocks) {
    uint32_t at = 0;
    if (blockIdx.x > 0) { // WAIT_LOADED: the others read
        const uint4 *all = (const uint4 *)data;
        for (size_t i = (blockIdx.x - 1) * THREADS + threadIdx.x; i < bytes / 16;
             i += (gridDim.x - 1) * THREADS)
            at ^= all[i].x;
        if (at == 0x12345678) *clocks = 0;
        return;
    }
    if (threadIdx.x > 0) return;
#if HOPPER
    __shared__ uint64_t barrier;
    if (KIND == WAIT_MBARRIER) {
        barrier_init(&barrier);
        barriers_visible();
    }
    long long from = clock64();
#endif
    for (int i = 0; i < count; i++) {
        if (KIND == WAIT_LOAD || KIND == WAIT_LOADED) at = *(volatile uint32_t *)(data + at);
        if (KIND == WAIT_ATOMIC) at = atomicAdd(data + at % 2, 0u) & 1u;
        if (KIND == WAIT_FENCE) {
            data[i % 32] = (uint32_t)i;
            __threadfence();
        }
#if HOPPER
        if (KIND == WAIT_PROXY_FENCE) show_to_tensor_cores();
        if (KIND == WAIT_MBARRIER) {
            barrier_expect(&barrier, 0);
            barrier_await(&barrier, (uint32_t)i & 1);
        }
#endif
    }
#if HOPPER
    *clocks = clock64() - from + (at == 0x12345678);
#else
    *clocks = (long long)(at & 1);
#endif
}
bool probe_wait(WaitKind kind, uint32_t *data, size_t bytes, int count, int blocks, int code,
                long long *clocks, void *stream) {
    if (kind != WAIT_LOAD && kind != WAIT_ATOMIC && kind != WAIT_FENCE && !(code & CODE_HOPPER)) return false;
    unsigned grid = kind == WAIT_LOADED ? (unsigned)blocks : 1;
    if (kind == WAIT_LOAD)
        LAUNCH(wait_chain<WAIT_LOAD>, grid, THREADS, 0, stream, data, bytes, count, clocks);
    else if (kind == WAIT_LOADED)
        LAUNCH(wait_chain<WAIT_LOADED>, grid, THREADS, 0, stream, data, bytes, count, clocks);
    else if (kind == WAIT_ATOMIC)
        LAUNCH(wait_chain<WAIT_ATOMIC>, grid, THREADS, 0, stream, data, bytes, count, clocks);
    else if (kind == WAIT_FENCE)
        LAUNCH(wait_chain<WAIT_FENCE>, grid, THREADS, 0, stream, data, bytes, count, clocks);
    else if (kind == WAIT_PROXY_FENCE)
        LAUNCH(wait_chain<WAIT_PROXY_FENCE>, grid, THREADS, 0, stream, data, bytes, count, clocks);
    else LAUNCH(wait_chain<WAIT_MBARRIER>, grid, THREADS, 0, stream, data, bytes, count, clocks);
    return true;
}

// --- near and far: a card's L2 is in two halves, and a processor reaches one of them by the other

enum { DISTANCE_LOADS = 16, DISTANCE_ROUNDS = 8 };

// Each load's address needs the load before it. Blocks begin at different lines, so that few meet at one.
__global__ void distances(const uint32_t *data, size_t pitch, Distances *out) {
#if HOPPER
    Distances *own = out + blockIdx.x;
    uint32_t processor, at = 0;
    asm("mov.u32 %0, %%smid;" : "=r"(processor));
    own->processor = processor;
    for (int i = 0; i < DISTANCE_LINES; i++) {
        int line = (i + (int)blockIdx.x * 17) % DISTANCE_LINES;
        const volatile uint32_t *from = data + (size_t)line * (pitch / 4);
        long long least = 1 << 30;
        for (int round = 0; round < DISTANCE_ROUNDS; round++) {
            long long begun = clock64();
#pragma unroll
            for (int k = 0; k < DISTANCE_LOADS; k++) at = from[at];
            long long clocks = clock64() - begun + at;
            least = clocks < least ? clocks : least;
        }
        own->clocks[line] = (uint32_t)(least / DISTANCE_LOADS);
    }
#else
    (void)data, (void)pitch, (void)out;
#endif
}
bool probe_distances(const uint32_t *data, size_t pitch, int blocks, int code, Distances *out, void *stream) {
    if (!(code & CODE_HOPPER)) return false;
    LAUNCH(distances, (unsigned)blocks, 1, 0, stream, data, pitch, out);
    return true;
}
