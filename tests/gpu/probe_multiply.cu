// Tensor cores: wgmma by width, layout of its operands and wait; the bits of every way to multiply; decoding.
#include "engine/cuda/kernels/codes.cuh"
#include "tests/gpu/wgmma.cuh"

enum { COLUMNS = 64, GROUP_THREADS = 128, WIDEST = 256, DECODE_THREADS = 256 };
#define EACH_WIDTH(DO) DO(8) DO(16) DO(32) DO(48) DO(64) DO(96) DO(128) DO(160) DO(192) DO(224) DO(256)
#define NUMBER(n)      n,
const int WGMMA_WIDTH[WGMMA_WIDTHS] = {EACH_WIDTH(NUMBER)};

struct Tiles {
    uint16_t a[2][64 * COLUMNS], b[WIDEST * COLUMNS];
};

// Numbers that aren't zero (zeros draw less power and run faster), of either sign.
__device__ __forceinline__ uint16_t number(int i) {
    return (uint16_t)((0x3f80u + (unsigned)i % 97) | ((unsigned)i & 1) << 15);
}

// A round multiplies 64 columns: four instructions of a group.
template <int N, int WAY, int WAIT>
__global__ void __launch_bounds__(2 * GROUP_THREADS) wgmma_rate(int rounds, float *sink) {
    SHARED(Tiles, sm);
    float d[N / 8][4], total = 0;
    uint16_t *all = (uint16_t *)sm;
    for (int i = (int)threadIdx.x; i < (int)(sizeof *sm / 2); i += (int)blockDim.x) all[i] = number(i);
    show_to_tensor_cores();
    __syncthreads();
    for (int i = 0; i < N / 2; i++) d[i / 4][i % 4] = (float)i;
#if HOPPER
    const uint16_t *own = sm->a[threadIdx.x / GROUP_THREADS];
    uint32_t fragment[4];
    for (int i = 0; i < 4; i++) fragment[i] = number((int)threadIdx.x + i) | (uint32_t)number(i) << 16;
    for (int r = 0; r < rounds; r++) {
        hold_sums<N>(d);
        groups_begin();
#pragma unroll
        for (int k = 0; k < COLUMNS / 16; k++) {
            uint64_t a = WAY == WGMMA_SWIZZLED ? swizzled_matrices(own + k * 16)
                                               : operand(own + k * 64 * 16, 1024, 128);
            uint64_t b = WAY == WGMMA_SWIZZLED ? swizzled_matrices(sm->b + k * 16)
                                               : operand(sm->b + k * 128, 128, 1024);
            if (WAY == WGMMA_REGISTERS) Wgmma<N>::registers(d, fragment, b);
            else Wgmma<N>::template shared<DTYPE_BF16>(d, a, b);
        }
        group_end();
        groups_wait<WAIT>();
    }
    groups_wait<0>();
    hold_sums<N>(d);
#elif HAS_WARPGROUPS
    for (int r = 0; r < rounds; r++) {
        hold_sums<N>(d);
        groups_begin();
        for (int k = 0; k < COLUMNS / 16; k++)
            group_mma<DTYPE_BF16, N>(d, operand(sm->a[threadIdx.x / GROUP_THREADS] + k * 64 * 16, 1024, 128),
                                     operand(sm->b + k * 128, 128, 1024));
        group_end();
        groups_end<N>(d);
    }
#else
    (void)rounds;
#endif
    for (int i = 0; i < N / 2; i++) total += d[i / 4][i % 4];
    sink[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = total;
}

template <int N, int WAY>
static void launch_rate(int groups, int wait, int rounds, int blocks, float *sink, void *stream) {
    unsigned threads = (unsigned)(groups * GROUP_THREADS);
    if (wait) LAUNCH((wgmma_rate<N, WAY, 1>), (unsigned)blocks, threads, sizeof(Tiles), stream, rounds, sink);
    else LAUNCH((wgmma_rate<N, WAY, 0>), (unsigned)blocks, threads, sizeof(Tiles), stream, rounds, sink);
}
template <int N>
static void launch_way(WgmmaWay way, int groups, int wait, int rounds, int blocks, float *sink,
                       void *stream) {
    if (way == WGMMA_SHARED) launch_rate<N, WGMMA_SHARED>(groups, wait, rounds, blocks, sink, stream);
    else if (way == WGMMA_SWIZZLED)
        launch_rate<N, WGMMA_SWIZZLED>(groups, wait, rounds, blocks, sink, stream);
    else launch_rate<N, WGMMA_REGISTERS>(groups, wait, rounds, blocks, sink, stream);
}

double probe_wgmma_way(WgmmaWay way, int width, int groups, int wait, int rounds, int blocks, int code,
                       float *sink, void *stream) {
    bool plain = way == WGMMA_SHARED && wait == 0; // the simulated card has it
    if (!(code & (plain ? CODE_HOPPER | CODE_WARPGROUPS : CODE_HOPPER))) return 0;
#define RATE(n) \
    if (width == n) launch_way<n>(way, groups, wait, rounds, blocks, sink, stream);
    EACH_WIDTH(RATE)
    return 2.0 * 64 * width * COLUMNS * groups * (double)rounds * (double)blocks;
}

// --- bits: one block, four warps with 16 rows each. Matrices of 8x8 as product.cu has them: of a by 8
// columns and 8 rows, of b by 8 of its rows and 8 columns.

struct SumTiles {
    uint16_t a[COLUMNS / 8][64 / 8][64], b[WIDEST / 8][COLUMNS / 8][64];
    uint16_t turned_a[64 * COLUMNS], turned_b[WIDEST * COLUMNS]; // by swizzle
};
// A row has 128 bytes; its 8 pieces are put in another order for each of 8 rows.
__device__ __forceinline__ int swizzled_at(int row, int column) {
    return row * COLUMNS + ((column / 8 ^ row % 8) * 8 + column % 8);
}

template <int N, int WAY>
__global__ void __launch_bounds__(GROUP_THREADS)
    sums(const uint16_t *a, const uint16_t *b, int columns, float *out) {
    SHARED(SumTiles, sm);
    float d[N / 8][4];
    int lane = warp_lane(), g = lane / 4, q = lane % 4 * 2, row = warp_number() * 16 + g;
    for (int i = 0; i < N / 2; i++) d[i / 4][i % 4] = 0;
    for (int k0 = 0; k0 < columns; k0 += COLUMNS) {
        __syncthreads();
        for (int i = (int)threadIdx.x; i < 64 * COLUMNS; i += GROUP_THREADS) {
            int r = i / COLUMNS, c = i % COLUMNS;
            sm->a[c / 8][r / 8][r % 8 * 8 + c % 8] = sm->turned_a[swizzled_at(r, c)] =
                a[r * columns + k0 + c];
        }
        for (int i = (int)threadIdx.x; i < N * COLUMNS; i += GROUP_THREADS) {
            int r = i / COLUMNS, c = i % COLUMNS;
            sm->b[r / 8][c / 8][r % 8 * 8 + c % 8] = sm->turned_b[swizzled_at(r, c)] =
                b[r * columns + k0 + c];
        }
        show_to_tensor_cores();
        __syncthreads();
        uint32_t fragment[COLUMNS / 16][4];
#pragma unroll
        for (int i = 0; i < COLUMNS / 4; i++)
            memcpy(&fragment[i / 4][i % 4],
                   &sm->a[i / 4 * 2 + i % 4 / 2][warp_number() * 2 + i % 2][g * 8 + q],
                   sizeof fragment[0][0]);
#if HAS_WARPGROUPS
        if (WAY != 0) {
            hold_sums<N>(d);
            groups_begin();
        }
#endif
#pragma unroll
        for (int k = 0; k < COLUMNS / 16; k++) {
            const uint32_t *f = fragment[k];
            if (WAY == 0) {
                for (int n = 0; n < N / 8; n++) {
                    uint32_t x[2];
                    for (int i = 0; i < 2; i++) memcpy(&x[i], &sm->b[n][k * 2 + i][g * 8 + q], sizeof x[i]);
                    mma_16816<DTYPE_BF16>(d[n], f, x[0], x[1]);
                }
            }
#if HOPPER
            uint64_t at = operand(sm->b[0][k * 2], 128, sizeof sm->b[0]);
            if (WAY == 1 + WGMMA_SHARED)
                Wgmma<N>::template shared<DTYPE_BF16>(d, operand(sm->a[k * 2], sizeof sm->a[0], 128), at);
            if (WAY == 1 + WGMMA_SWIZZLED)
                Wgmma<N>::template shared<DTYPE_BF16>(d, swizzled_matrices(sm->turned_a + k * 16),
                                                      swizzled_matrices(sm->turned_b + k * 16));
            if (WAY == 1 + WGMMA_REGISTERS) Wgmma<N>::registers(d, f, at);
#elif HAS_WARPGROUPS
            if (WAY == 1 + WGMMA_SHARED)
                group_mma<DTYPE_BF16, N>(d, operand(sm->a[k * 2], sizeof sm->a[0], 128),
                                         operand(sm->b[0][k * 2], 128, sizeof sm->b[0]));
#endif
        }
#if HAS_WARPGROUPS
        if (WAY != 0) {
            group_end();
            groups_end<N>(d);
        }
#endif
    }
    for (int i = 0; i < N / 2; i++) out[(row + i % 4 / 2 * 8) * N + i / 4 * 8 + q + i % 2] = d[i / 4][i % 4];
}

template <int N>
static void launch_sums(int way, const uint16_t *a, const uint16_t *b, int columns, float *out,
                        void *stream) {
    const unsigned threads = GROUP_THREADS;
    if (way == 0) LAUNCH((sums<N, 0>), 1, threads, sizeof(SumTiles), stream, a, b, columns, out);
    else if (way == 1) LAUNCH((sums<N, 1>), 1, threads, sizeof(SumTiles), stream, a, b, columns, out);
    else if (way == 2) LAUNCH((sums<N, 2>), 1, threads, sizeof(SumTiles), stream, a, b, columns, out);
    else LAUNCH((sums<N, 3>), 1, threads, sizeof(SumTiles), stream, a, b, columns, out);
}
bool probe_sums(int way, int width, const uint16_t *a, const uint16_t *b, int columns, int code, float *out,
                void *stream) {
    if (way > 0 && !(code & (way == 1 ? CODE_HOPPER | CODE_WARPGROUPS : CODE_HOPPER))) return false;
#define SUMS(n) \
    if (width == n) launch_sums<n>(way, a, b, columns, out, stream);
    EACH_WIDTH(SUMS)
    return true;
}

// --- decoding: a lane has codes of its own, which change every round

template <int BITS, int BLOCKS>
__global__ void __launch_bounds__(DECODE_THREADS) decode_rate(int rounds, uint32_t *sink) {
    Scales<BITS> scales;
    uint4 piece[BITS / 4];
    float sum[BLOCKS + 1][4] = {};
    uint32_t seen = 0, a[4];
    take_scales(&scales, 0x2c002c00u + threadIdx.x);
    for (int i = 0; i < BITS / 4; i++)
        piece[i] = {threadIdx.x * 77u, threadIdx.x * 3u, blockIdx.x, (unsigned)i};
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int k = 0; k < COLUMNS / 16; k++) {
            decode(scales, piece, k, a);
#pragma unroll
            for (int n = 0; n < BLOCKS; n++) mma_16816<DTYPE_BF16>(sum[n], a, 0x3f803f80u, 0x3f803f80u);
            if (BLOCKS == 0) seen ^= a[0] ^ a[1] ^ a[2] ^ a[3];
        }
        for (int i = 0; i < BITS / 4; i++)
            piece[i] = {piece[i].y + 1, piece[i].z, piece[i].w, piece[i].x ^ (unsigned)r};
    }
    for (int n = 0; n < BLOCKS; n++) seen ^= f32_bits(sum[n][0] + sum[n][1] + sum[n][2] + sum[n][3]);
    sink[(size_t)blockIdx.x * DECODE_THREADS + threadIdx.x] = seen;
}
template <int BITS>
static void launch_decode(int columns, int rounds, int blocks, uint32_t *sink, void *stream) {
    if (columns == 0)
        LAUNCH((decode_rate<BITS, 0>), (unsigned)blocks, DECODE_THREADS, 0, stream, rounds, sink);
    else if (columns == 8)
        LAUNCH((decode_rate<BITS, 1>), (unsigned)blocks, DECODE_THREADS, 0, stream, rounds, sink);
    else LAUNCH((decode_rate<BITS, 2>), (unsigned)blocks, DECODE_THREADS, 0, stream, rounds, sink);
}
double probe_decode(int bits, int columns, int rounds, int blocks, uint32_t *sink, void *stream) {
    if (bits == 4) launch_decode<4>(columns, rounds, blocks, sink, stream);
    else launch_decode<8>(columns, rounds, blocks, sink, stream);
    return 16.0 * COLUMNS * (DECODE_THREADS / WARP) * (double)rounds * (double)blocks;
}
