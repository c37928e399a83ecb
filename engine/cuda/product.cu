// Products of bf16 by bf16 on tensor cores: y (rows, m) = x (rows, k) w (m, k)^T, and what becomes of y.
//
// Weights are the long side of each mma, activations the short one, so a step of one row wastes 7 columns of
// 8 and no weight. A block has TILE weight rows, a warp 32 of them; K goes by in stages of 64 columns,
// fetched asynchronously some stages ahead. A stage of activations is shared by the block's warps.
//
//      block (tile, split):   w | stage | stage | stage | ..        x   | stage | ..    (N columns)
//
// An element's sum depends on K and M alone: k ascends by 16 in one accumulator, K is split in parts by shape
// (matrix `splits`), and the last block to finish a tile adds the parts in ascending order. N, TILE and the
// number of stages do not enter. A column does not see its neighbours.
//
// Floor: weights once from memory. Activations are read once a tile, from L2.
#include "engine/cuda/put.cuh"

enum { K_STAGE = 64, WARP_ROWS = 32, SMALL_SHARED = 100 << 10 };

template <int N, int WARPS> struct Stage {
    uint4 w[WARPS * WARP_ROWS / 16][K_STAGE / 16][WARP]; // a lane's fragment of a 16x16 tile
    uint16_t x[N / 8][K_STAGE / 8][64];
};
template <int N, int WARPS, int STAGES> struct ProductShared {
    Stage<N, WARPS> stage[STAGES];
    int is_last;
};

// What one block works on.
struct Part {
    int tile, split, from, to; // stages of K
    int first, rows, blocks;   // rows of the panel; in blocks of 8
    int m_tiles;               // 16-row tiles of the matrix behind the block's first
};

template <int N, int WARPS>
__device__ __forceinline__ void fetch(Stage<N, WARPS> *s, const Product &p, const Part &b, int k) {
    const int threads = WARPS * WARP, pieces = K_STAGE / 16 * WARP;
    const uint4 *w = (const uint4 *)p.w.data, *x = (const uint4 *)p.x.data;
    int m_tiles = b.m_tiles < WARPS * 2 ? b.m_tiles : WARPS * 2;
    for (int i = (int)threadIdx.x; i < m_tiles * pieces; i += threads) {
        int tile = i / pieces, piece = i % pieces;
        size_t at =
            ((size_t)(b.tile * WARPS * 2 + tile) * (size_t)(p.w.pitch / 16) + (size_t)k * (K_STAGE / 16)) *
            WARP;
        copy_async(&s->w[tile][piece / WARP][piece % WARP], w + at + piece);
    }
    for (int i = (int)threadIdx.x; i < b.blocks * K_STAGE; i += threads) {
        int block = i / K_STAGE, piece = i % K_STAGE; // a row of 8 columns
        size_t at = ((size_t)(b.first / 8 + block) * (size_t)(p.x.pitch / 8) + (size_t)k * (K_STAGE / 8)) * 8;
        copy_async(&s->x[block][piece / 8][piece % 8 * 8], x + at + piece);
    }
}

// One stage into a warp's accumulators [16-row tile][block of 8 columns].
template <int N, int WARPS>
__device__ __forceinline__ void multiply(const Stage<N, WARPS> *s, const Part &b, float sum[2][N / 8][4]) {
    int tile = warp_number() * 2, live = b.m_tiles - tile;
    if (live <= 0) return;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t a[2][2][4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i / 2 < live) {
                uint4 f = s->w[tile + i / 2][half * 2 + i % 2][warp_lane()];
                a[i / 2][i % 2][0] = f.x, a[i / 2][i % 2][1] = f.y, a[i / 2][i % 2][2] = f.z,
                             a[i / 2][i % 2][3] = f.w;
            }
#pragma unroll
        for (int n = 0; n < N / 8; n++) {
            if (n >= b.blocks) continue;
            uint32_t x[4];
            load_matrices(x, &s->x[n][half * 4 + warp_lane() / 8][warp_lane() % 8 * 8]);
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (i / 2 < live) mma_16816(sum[i / 2][n], a[i / 2][i % 2], x[i % 2 * 2], x[i % 2 * 2 + 1]);
        }
    }
}

// Where a block's sums stand until they are put: in shared memory, or as one of several parts in global.
struct Sums {
    float *at;
    size_t row, part; // elements from one row, and from one part, to the next
    int parts;
};

template <int N, int WARPS>
__device__ __forceinline__ Sums sums_of(const Product &p, const Part &b, void *shared) {
    const int tile_rows = WARPS * WARP_ROWS;
    size_t m = (size_t)(p.w.rows + 15) / 16 * 16;
    if (p.w.splits == 1)
        return {(float *)shared, tile_rows + 4, 0, 1}; // + 4: no two lanes of a store in one bank
    return {p.parts + (size_t)b.tile * tile_rows, m, m * PANEL_ROWS, p.w.splits};
}

template <int N> __device__ __forceinline__ void keep(const Sums &s, const Part &b, float sum[2][N / 8][4]) {
    int g = warp_lane() / 4, q = warp_lane() % 4 * 2;
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int m = (warp_number() * 2 + t) * 16 + g + i / 2 * 8, row = n * 8 + q + i % 2;
                if (warp_number() * 2 + t < b.m_tiles && row < b.rows)
                    s.at[(size_t)b.split * s.part + (size_t)row * s.row + (size_t)m] = sum[t][n][i];
            }
}

__device__ __forceinline__ float sum_parts(const Sums &s, int row, int m) {
    const float *at = s.at + (size_t)row * s.row + (size_t)m;
    float sum = at[0];
    for (int i = 1; i < s.parts; i++) sum += at[(size_t)i * s.part];
    return sum;
}

// Whether this block is the last of its tile to come here, and so sees what all of them kept.
__device__ __forceinline__ bool last_of_tile(const Product &p, const Part &b, int *is_last) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        *is_last = atomicAdd(&p.done[b.tile], 1u) == (unsigned)p.w.splits - 1;
        if (*is_last) p.done[b.tile] = 0;
    }
    __syncthreads();
    __threadfence();
    return *is_last;
}

template <int N, int WARPS, int STAGES>
__global__ void __launch_bounds__(WARPS *WARP) product(Product p, int first) {
    typedef ProductShared<N, WARPS, STAGES> Shared;
    static_assert(N * (WARPS * WARP_ROWS + 4) * sizeof(float) <= sizeof(Stage<N, WARPS>) * STAGES,
                  "sums must fit");
    SHARED(Shared, sm);
    int stages = p.w.pitch / K_STAGE, rows = p.rows->count - first;
    Part b = {(int)blockIdx.x, (int)blockIdx.y, 0, 0, first, rows < N ? rows : N, 0, 0};
    if (rows <= 0) return;
    b.from = stages * b.split / p.w.splits;
    b.to = stages * (b.split + 1) / p.w.splits;
    b.blocks = (b.rows + 7) / 8;
    b.m_tiles = (p.w.rows + 15) / 16 - b.tile * WARPS * 2;
    float sum[2][N / 8][4];
#pragma unroll
    for (int i = 0; i < 2 * (N / 8) * 4; i++) sum[i / (N / 2)][i / 4 % (N / 8)][i % 4] = 0;
    for (int s = 0; s < STAGES - 1; s++) {
        if (b.from + s < b.to) fetch(&sm->stage[s], p, b, b.from + s);
        copy_commit();
    }
    for (int k = b.from; k < b.to; k++) {
        copy_wait<STAGES - 2>();
        __syncthreads();
        int next = k + STAGES - 1;
        if (next < b.to) fetch(&sm->stage[(next - b.from) % STAGES], p, b, next);
        copy_commit();
        multiply(&sm->stage[(k - b.from) % STAGES], b, sum);
    }
    copy_wait<0>();
    __syncthreads();
    Sums s = sums_of<N, WARPS>(p, b, sm->stage);
    keep<N>(s, b, sum);
    if (p.w.splits == 1) __syncthreads();
    else if (!last_of_tile(p, b, &sm->is_last)) return;
    const int pairs = WARPS * WARP_ROWS / 2;
    for (int i = (int)threadIdx.x; i < b.rows * pairs; i += WARPS * WARP) {
        int row = i / pairs, m = i % pairs * 2, at = b.tile * WARPS * WARP_ROWS + m;
        if (at < p.w.rows)
            put_pair(p.put, p.rows, p.w.rows, first + row, at, sum_parts(s, row, m),
                     sum_parts(s, row, m + 1));
    }
}

template <int N, int WARPS, int STAGES> static void launch(const Product &p, int first, void *stream) {
    const int tile = WARPS * WARP_ROWS;
    dim3 grid((unsigned)((p.w.rows + tile - 1) / tile), (unsigned)p.w.splits);
    LAUNCH((product<N, WARPS, STAGES>), grid, WARPS * WARP, sizeof(ProductShared<N, WARPS, STAGES>), stream,
           p, first);
}

// Tiles of 256 rows read the activations half as often, where a block can have the memory.
static void launch_panel(const Product &p, int most, int first, bool large, void *stream) {
    if (most <= 8) launch<8, 4, 4>(p, first, stream);
    else if (most <= 16) launch<16, 4, 4>(p, first, stream);
    else if (most <= 32) launch<32, 4, 4>(p, first, stream);
    else if (most <= 64 && !large) launch<64, 4, 4>(p, first, stream);
    else if (most <= 64) launch<64, 8, 3>(p, first, stream);
    else if (!large) launch<128, 4, 3>(p, first, stream);
    else launch<128, 8, 3>(p, first, stream);
}

void gpu_product(const Product *p, int most, size_t shared_bytes, void *stream) {
    if (p->w.form != FORM_PACKED) {
        gpu_product_plain(p, most, stream);
        return;
    }
    for (int first = 0; first < most; first += PANEL_ROWS)
        launch_panel(*p, most - first, first, shared_bytes >= sizeof(ProductShared<128, 8, 3>), stream);
}
