// Probes of a card's ceilings: reading memory, and multiplying in registers, by tensor cores and by fused
// multiply-adds of f32, which products of f32 weights or activations consist of. And a comparison of wgmma's
// bits with mma.sync's, on which exactness rests.
#include "engine/cuda/kernels/rows.cuh"
#include "engine/cuda/kernels/warpgroups.cuh"

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
    show_to_tensor_cores();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < WIDE / 2; i++) sum[i / 4][i % 4] = 0;
#if HAS_WARPGROUPS
    for (int r = 0; r < rounds; r++) {
        hold_sums<WIDE>(sum);
        groups_begin();
#pragma unroll
        for (int k = 0; k < DEEP / 8; k += 2)
            group_mma<DTYPE_BF16, WIDE>(sum, operand(sm->a[threadIdx.x / 128][k], sizeof sm->a[0][0], 128),
                                        operand(sm->b[0][k], 128, sizeof sm->b[0]));
        group_end();
        groups_end<WIDE>(sum);
    }
#else
    (void)rounds;
#endif
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

// --- wgmma's bits against mma.sync's: a block for each kind of multiplication that products use, 64 rows of
// a chain of COMPARED_K. Of many columns some are compared: they don't see one another.

enum { COMPARED_K = 256, COMPARED_PAIRS = 4, COMPARED_THREADS = 128 }; // pairs of blocks of 8 columns
#if HAS_WARPGROUPS
struct ComparedTiles {
    uint16_t a[2][ROWS / 8][64], b[256 / 8][2][64];
};

// Numbers of any sign and of 12 exponents, so that sums cancel; some subnormal, some zero.
template <Dtype FORMAT> __device__ __forceinline__ uint16_t compared_number(uint32_t i) {
    const uint32_t fraction = FORMAT == DTYPE_F16 ? 10 : 7, bias = FORMAT == DTYPE_F16 ? 15 : 127;
    uint32_t x = (i + 1) * 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    x ^= x >> 13;
    uint32_t exponent = x % 16 < 12 ? bias - 6 + x % 16 : 0, small = x % 16 == 15 ? 0 : (1u << fraction) - 1;
    return (uint16_t)((x >> 8 & 1) << 15 | exponent << fraction | (x >> 9 & small));
}

template <Dtype FORMAT, int N, bool HELD>
__device__ __forceinline__ void compare_bits(ComparedTiles *sm, unsigned *differ) {
    const int apart = N / 16 > COMPARED_PAIRS ? N / 16 / COMPARED_PAIRS : 1, pairs = N / 16 / apart;
    float wide[N / 8][4], narrow[2 * pairs][4];
    int matrix = warp_lane() / 8, row = warp_lane() % 8 * 8;
    bool same = true;
#pragma unroll
    for (int i = 0; i < N / 2; i++) wide[i / 4][i % 4] = 0;
#pragma unroll
    for (int i = 0; i < 8 * pairs; i++) narrow[i / 4][i % 4] = 0;
#pragma unroll 1
    for (int k = 0; k < COMPARED_K; k += 16) {
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < (ROWS + N) * 16; i += COMPARED_THREADS)
            (i < ROWS * 16 ? &sm->a[0][0][0] + i : &sm->b[0][0][0] + i - ROWS * 16)[0] =
                compared_number<FORMAT>((uint32_t)(k * 1024 + i));
        show_to_tensor_cores();
        __syncthreads();
        uint32_t a[1][4];
        load_matrices(a[0], &sm->a[matrix / 2][warp_number() * 2 + matrix % 2][row]);
#pragma unroll
        for (int i = 0; i < 4; i++) a[0][i] = held(a[0][i]);
        Operand b = operand(sm->b, 128, 256);
        groups_begin();
        if constexpr (HELD) group_mma_held<N>(wide, a[0], b);
        else group_mma<FORMAT, N>(wide, operand(sm->a, sizeof sm->a[0], 128), b);
        group_end();
        groups_end_held(a, 1);
#pragma unroll
        for (int i = 0; i < pairs; i++) {
            uint32_t x[4];
            load_matrices(x, &sm->b[i * apart * 2 + matrix / 2][matrix % 2][row]);
            mma_16816<FORMAT>(narrow[2 * i], a[0], x[0], x[1]);
            mma_16816<FORMAT>(narrow[2 * i + 1], a[0], x[2], x[3]);
        }
        __syncthreads();
    }
    groups_end<N>(wide);
#pragma unroll
    for (int i = 0; i < 8 * pairs; i++)
        same &= f32_bits(wide[i / 8 * apart * 2 + i / 4 % 2][i % 4]) == f32_bits(narrow[i / 4][i % 4]);
    if (!same) atomicAdd(differ, 1u);
}
#endif

__global__ void __launch_bounds__(COMPARED_THREADS) compare_multiplications(unsigned *differ) {
#if HAS_WARPGROUPS
    SHARED(ComparedTiles, sm);
    switch (blockIdx.x) {
    case 0: compare_bits<DTYPE_BF16, 32, false>(sm, differ); break;
    case 1: compare_bits<DTYPE_BF16, 128, false>(sm, differ); break;
    case 2: compare_bits<DTYPE_BF16, 256, false>(sm, differ); break;
    case 3: compare_bits<DTYPE_BF16, 128, true>(sm, differ); break;
    default: compare_bits<DTYPE_F16, 128, false>(sm, differ);
    }
#else
    (void)differ;
#endif
}

void gpu_compare_bits(unsigned *differ, void *stream) {
    LAUNCH(compare_multiplications, 5, COMPARED_THREADS, sizeof(uint16_t) * 16 * (ROWS + 256), stream,
           differ);
}
