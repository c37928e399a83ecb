// Products of up to 16 rows on tensor cores: the same sums as product.cu's, by warps that work alone.
//
// A warp has its own rows of weights and its own part of K, which it goes through in stages of 64 columns. It
// fetches them by itself, some stages ahead, and waits for nobody. The parts of a sum (Matrix.splits: 1, 2 or
// 4) are those of neighbouring warps, so all of them meet in their block's shared memory: no launch has to
// follow, and blocks are small enough to fill any card.
//
//      4 warps:   1 part    | tile 0 | tile 1 | tile 2 | tile 3 |
//                 2 parts   | tile 0: part 0, part 1 | tile 1: part 0, part 1 |
//                 4 parts   | tile 0: part 0, part 1, part 2, part 3 |
//
// Floor: weights once from memory. A warp reads its part of the activations once for 16 rows of weights, from
// L2: at 16 rows as many bytes as those of the weights.
#include "engine/cuda/product.cuh"
#include "engine/cuda/runtime.h"

enum { WARPS = 4, THREADS = WARPS * WARP, STAGES = 6, HEIGHT = 16 };

// A stage of N columns of activations, and of 16 rows of weights.
template <int N> struct Slot {
    uint4 w[K_STAGE / 16][WARP]; // rows of four 8x8 matrices
    uint16_t x[N / 8][K_STAGE / 8][64];
};
template <int N> struct NarrowShared { Slot<N> slot[WARPS][STAGES]; };

// A warp's pieces of each stage.
struct Lane {
    const uint4 *w, *x; // the first piece of stage 0
    size_t x_step;      // from a block of 8 rows to the next
    int blocks;
};

template <int N> __device__ __forceinline__ void fetch_weights(Slot<N> *s, const Lane &l, int k) {
#pragma unroll
    for (int i = 0; i < K_STAGE / 16; i++)
        copy_async(&s->w[i][warp_lane()], l.w + (size_t)k * W_PIECES + i * WARP);
}

template <int N> __device__ __forceinline__ void fetch_activations(Slot<N> *s, const Lane &l, int k) {
    const uint4 *x = l.x + (size_t)k * X_PIECES;
#pragma unroll
    for (int b = 0; b < N / 8; b++, x += l.x_step) {
        if (b >= l.blocks) break;
#pragma unroll
        for (int i = 0; i < X_PIECES / WARP; i++) {
            int piece = i * WARP + warp_lane();
            copy_async(&s->x[b][piece / 8][piece % 8 * 8], x + i * WARP);
        }
    }
}

template <Dtype FORMAT, int N>
__device__ __forceinline__ void multiply(const Slot<N> *s, int blocks, float sum[N / 8][4]) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t a[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++) load_matrices(a[i], &s->w[half * 2 + i][warp_lane()]);
#pragma unroll
        for (int n = 0; n < N / 8; n++) {
            if (n >= blocks) break;
            uint32_t x[4];
            load_matrices(x, &s->x[n][half * 4 + warp_lane() / 8][warp_lane() % 8 * 8]);
#pragma unroll
            for (int i = 0; i < 2; i++) mma_16816<FORMAT>(sum[n], a[i], x[i * 2], x[i * 2 + 1]);
        }
    }
}

// Stores a warp's sums (N, HEIGHT). + 4: no two lanes of a store in one bank.
template <int N> __device__ __forceinline__ void keep(float *at, float sum[N / 8][4]) {
    const int row = HEIGHT + 4;
    at += warp_lane() % 4 * 2 * row + warp_lane() / 4;
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) at[(n * 8 + i % 2) * row + i / 2 * 8] = sum[n][i];
}

template <Dtype FORMAT, int N> __global__ void __launch_bounds__(THREADS) product_narrow(Product p) {
    typedef NarrowShared<N> Shared;
    static_assert(N * (HEIGHT + 4) * sizeof(float) <= sizeof(Slot<N>) * STAGES, "sums must fit");
    SHARED(Shared, sm);
    const int at_once = N / 8, ahead_by = STAGES - 1;
    int splits = p.w.splits, warp = warp_number(), stages = p.w.pitch / K_STAGE;
    int part = warp % splits, from = stages * part / splits, to = stages * (part + 1) / splits;
    int tiles = WARPS / splits, first_tile = (int)blockIdx.x * tiles, pairs = tiles * HEIGHT / 2;
    Slot<N> *slot = sm->slot[warp];
    Lane l = {NULL, NULL, activation_pieces(p), 0};
    l.w = first_weights(p) + (size_t)(first_tile + warp / splits) * weight_pieces(p) + warp_lane();
    bool early = BEGINS_EARLY && !p.slices; // an expert may have no rows
    for (int s = 0; s < ahead_by && early; s++)
        if (from + s < to) fetch_weights(&slot[s], l, from + s);
    wait_for_launches();
    int rows = p.rows->count, first_node = p.rows->first, first_row = 0;
    if (p.slices) {
        rows = p.slices[blockIdx.z].count;
        first_row = p.slices[blockIdx.z].first;
    }
    if (rows <= 0) {
        copy_commit();
        copy_wait<0>();
        return;
    }
    if (rows > N) rows = N;
    l.blocks = (rows + 7) / 8;
    l.x = (const uint4 *)p.x.data + (size_t)(first_row / 8) * l.x_step + warp_lane();
    float sum[N / 8][4];
#pragma unroll
    for (int i = 0; i < N / 2; i++) sum[i / 4][i % 4] = 0;
    for (int s = 0; s < ahead_by; s++) {
        if (from + s < to) {
            if (!early) fetch_weights(&slot[s], l, from + s);
            fetch_activations(&slot[s], l, from + s);
        }
        copy_commit();
    }
    Share<at_once> share = begin_share<at_once>(p, first_tile * HEIGHT, pairs, first_row, rows, first_node);
    int now = 0, ahead = ahead_by; // the slots of k and of k + ahead_by
    for (int k = from; k < to; k++) {
        copy_wait<STAGES - 2>();
        __syncwarp();
        if (k + ahead_by < to) {
            fetch_weights(&slot[ahead], l, k + ahead_by);
            fetch_activations(&slot[ahead], l, k + ahead_by);
        } else let_next_begin();
        copy_commit();
        multiply<FORMAT, N>(&slot[now], l.blocks, sum);
        ahead = now;
        now = now + 1 == STAGES ? 0 : now + 1;
    }
    copy_wait<0>();
    __syncwarp();
    keep<N>((float *)slot, sum);
    __syncthreads();
    int column = (int)threadIdx.x % pairs * 2;
    Sums s = {(const float *)sm->slot[column / HEIGHT * splits] + column % HEIGHT, HEIGHT + 4,
              (int)(STAGES * sizeof(Slot<N>) / sizeof(float)), splits};
    put_share(share, p, s, rows, first_node);
}

template <Dtype FORMAT, int N> static void launch(const Product *p, void *stream) {
    static_assert(sizeof(NarrowShared<N>) <= 99 << 10, "it must fit the smallest cards");
    int rows = HEIGHT * WARPS / p->w.splits;
    dim3 grid((unsigned)((p->w.rows + rows - 1) / rows), 1, p->slices ? (unsigned)p->w.experts : 1);
    LAUNCH_EARLY((product_narrow<FORMAT, N>), grid, THREADS, sizeof(NarrowShared<N>), stream, p->w.data, *p);
}

template <Dtype FORMAT> static void launch_rows(const Product *p, int most, void *stream) {
    if (most <= 8) launch<FORMAT, 8>(p, stream);
    else launch<FORMAT, NARROW_ROWS>(p, stream);
}

void gpu_product_narrow(const Product *p, int most, void *stream) {
    if (p->w.dtype == DTYPE_F16) launch_rows<DTYPE_F16>(p, most, stream);
    else launch_rows<DTYPE_BF16>(p, most, stream);
}
