// Probes of a card's ceilings: reading memory, and multiplying in registers, by tensor cores and by fused
// multiply-adds of f32, which products of f32 weights or activations consist of.
#include "engine/cuda/kernels/rows.cuh"

enum { THREADS = 256, CHAINS = 8, UNROLLED = 8 };

// 16 bytes a thread at a time, four loads in flight.
__global__ void __launch_bounds__(THREADS) probe_read(const uint4 *data, size_t count, uint32_t *sink) {
    size_t stride = (size_t)gridDim.x * THREADS, i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    uint32_t seen = 0;
    for (; i + 3 * stride < count; i += 4 * stride) {
        uint4 a = data[i], b = data[i + stride], c = data[i + 2 * stride], d = data[i + 3 * stride];
        seen ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
    }
    for (; i < count; i += stride) seen ^= data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;
    sink[(size_t)blockIdx.x * THREADS + threadIdx.x] = seen;
}

void gpu_probe_read(const void *data, size_t bytes, int blocks, uint32_t *sink, void *stream) {
    LAUNCH(probe_read, (unsigned)blocks, THREADS, 0, stream, (const uint4 *)data, bytes / sizeof(uint4),
           sink);
}

// Independent chains of mma on operands that are not zero (zeros draw less power and run faster).
__global__ void __launch_bounds__(THREADS) probe_mma(int rounds, float *sink) {
    float sum[CHAINS][4];
    uint32_t a[4], seed = 0x3f80u + threadIdx.x % 97;
    for (int i = 0; i < 4; i++) a[i] = (seed + (uint32_t)i) | 0xbf90u << 16;
#pragma unroll
    for (int i = 0; i < CHAINS * 4; i++) sum[i / 4][i % 4] = (float)i;
    for (int r = 0; r < rounds; r++)
#pragma unroll
        for (int i = 0; i < CHAINS; i++) mma_16816<DTYPE_BF16>(sum[i], a, a[i % 4], a[(i + 1) % 4]);
    float total = 0;
#pragma unroll
    for (int i = 0; i < CHAINS * 4; i++) total += sum[i / 4][i % 4];
    sink[(size_t)blockIdx.x * THREADS + threadIdx.x] = total;
}

double gpu_probe_mma(int rounds, int blocks, float *sink, void *stream) {
    LAUNCH(probe_mma, (unsigned)blocks, THREADS, 0, stream, rounds, sink);
    return 2.0 * 16 * 8 * 16 * CHAINS * (THREADS / WARP) * (double)rounds * (double)blocks;
}

// The same by wgmma, from shared memory, by two warpgroups a block, as product.cu multiplies. Sums of code
// that lacks it stay zero.
enum { WIDE = 128, DEEP = 64, ROWS = 64 };
struct ProbeTiles {
    uint16_t a[THREADS / 128][DEEP / 8][ROWS / 8][64], b[WIDE / 8][DEEP / 8][64];
};
__global__ void __launch_bounds__(THREADS) probe_wgmma(int rounds, float *sink) {
    SHARED(ProbeTiles, sm);
    float sum[WIDE / 8][4], total = 0;
    uint32_t *all = (uint32_t *)sm;
    for (int i = (int)threadIdx.x; i < (int)(sizeof *sm / 4); i += THREADS)
        all[i] = (0x3f80u + (uint32_t)i % 97) | 0xbf90u << 16;
    if (HAS_WARPGROUPS) show_to_tensor_cores();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < WIDE / 2; i++) sum[i / 4][i % 4] = 0;
    for (int r = 0; r < rounds; r++) {
        warpgroup_begin<WIDE>(sum);
#pragma unroll
        for (int k = 0; k < DEEP / 8; k += 2)
            warpgroup_mma<DTYPE_BF16, WIDE>(sum, sm->a[threadIdx.x / 128][k], sizeof sm->a[0][0], sm->b[0][k],
                                            sizeof sm->b[0]);
        warpgroup_end<WIDE>(sum);
    }
#pragma unroll
    for (int i = 0; i < WIDE / 2; i++) total += fabsf(sum[i / 4][i % 4]);
    sink[(size_t)blockIdx.x * THREADS + threadIdx.x] = total;
}

double gpu_probe_wgmma(int rounds, int blocks, float *sink, void *stream) {
    LAUNCH(probe_wgmma, (unsigned)blocks, THREADS, sizeof(ProbeTiles), stream, rounds, sink);
    return 2.0 * ROWS * WIDE * DEEP * (THREADS / 128) * (double)rounds * (double)blocks;
}

// Chains that stay near 1. A turn of the loop has UNROLLED links, so that its counter costs little.
__global__ void __launch_bounds__(THREADS) probe_fma(int rounds, float *sink) {
    float sum[CHAINS], x = 0.999f + 1e-6f * (float)threadIdx.x, y = 1.0009f - x;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) sum[i] = 1 + 0.1f * (float)i;
    for (int r = 0; r < rounds; r++)
#pragma unroll
        for (int i = 0; i < CHAINS * UNROLLED; i++) sum[i % CHAINS] = fmaf(sum[i % CHAINS], x, y);
    float total = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) total += sum[i];
    sink[(size_t)blockIdx.x * THREADS + threadIdx.x] = total;
}

double gpu_probe_fma(int rounds, int blocks, float *sink, void *stream) {
    LAUNCH(probe_fma, (unsigned)blocks, THREADS, 0, stream, rounds, sink);
    return 2.0 * CHAINS * UNROLLED * THREADS * (double)rounds * (double)blocks;
}
