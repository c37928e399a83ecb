// Products of bf16 by bf16, and of f16 by f16, on tensor cores: y (rows, m) = x (rows, k) w (m, k)^T, and
// what becomes of y.
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
// Floor: weights once from memory. Activations are read once a tile, from L2. The first stages of weights are
// fetched before the launch in front has ended: a step's short kernels cost little then (docs/cuda.md). So
// the next launch may begin when the last stages are on their way: earlier, its weights would only take turns
// with this one's, and none would be left to fill the gap.
#include "engine/cuda/put.cuh"

enum { K_STAGE = 64, WARP_ROWS = 32 };

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
    int m_tiles;               // 16-row tiles of the matrix after the block's first
};

// A thread's share of each stage: pieces of 16 bytes at fixed places, one stage further on each time.
enum { W_PIECES = K_STAGE / 16 * WARP, X_PIECES = K_STAGE }; // of a 16-row tile; of a block of 8 rows
struct Feed {
    const uint4 *w, *x;    // the first piece of stage 0
    size_t w_step, x_step; // from one of its tiles, and blocks, to the next
    int tile, w_piece, block, x_piece;
};

template <int WARPS> __device__ __forceinline__ Feed feed_of(const Product &p, const Part &b) {
    const int tiles = WARPS * WARP / W_PIECES, blocks = WARPS * WARP / X_PIECES;
    size_t tile_pieces = (size_t)(p.w.pitch / 16) * WARP, block_pieces = (size_t)(p.x.pitch / 8) * 8;
    int thread = (int)threadIdx.x;
    Feed f = {NULL,
              NULL,
              tile_pieces * tiles,
              block_pieces * blocks,
              thread / W_PIECES,
              thread % W_PIECES,
              thread / X_PIECES,
              thread % X_PIECES};
    f.w = (const uint4 *)p.w.data + (size_t)(b.tile * WARPS * 2 + f.tile) * tile_pieces + f.w_piece;
    f.x = (const uint4 *)p.x.data + (size_t)(b.first / 8 + f.block) * block_pieces + f.x_piece;
    return f;
}

template <int N, int WARPS>
__device__ __forceinline__ void fetch_weights(Stage<N, WARPS> *s, const Feed &f, int k) {
    const int at_once = WARPS * WARP / W_PIECES;
    const uint4 *w = f.w + (size_t)k * W_PIECES;
#pragma unroll
    for (int i = 0; i < WARPS * 2 / at_once; i++, w += f.w_step)
        copy_async(&s->w[f.tile + i * at_once][f.w_piece / WARP][f.w_piece % WARP], w);
}

template <int N, int WARPS>
__device__ __forceinline__ void fetch_activations(Stage<N, WARPS> *s, const Feed &f, const Part &b, int k) {
    const int at_once = WARPS * WARP / X_PIECES;
    const uint4 *x = f.x + (size_t)k * X_PIECES;
#pragma unroll
    for (int i = 0; i < (N / 8 + at_once - 1) / at_once; i++, x += f.x_step) {
        int block = f.block + i * at_once;
        if (block < b.blocks) copy_async(&s->x[block][f.x_piece / 8][f.x_piece % 8 * 8], x);
    }
}

// One stage into a warp's accumulators [16-row tile][block of 8 columns]. Columns without a row are whatever
// stood there; nothing keeps them.
template <Dtype FORMAT, int N, int WARPS>
__device__ __forceinline__ void multiply(const Stage<N, WARPS> *s, const Part &b, float sum[2][N / 8][4]) {
    const int at_once = N > 8 ? 2 : 1;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t a[2][2][4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint4 f = s->w[warp_number() * 2 + i / 2][half * 2 + i % 2][warp_lane()];
            a[i / 2][i % 2][0] = f.x, a[i / 2][i % 2][1] = f.y, a[i / 2][i % 2][2] = f.z,
                         a[i / 2][i % 2][3] = f.w;
        }
#pragma unroll
        for (int n = 0; n < N / 8; n += at_once) {
            if (n >= b.blocks) continue;
#pragma unroll
            for (int c = n; c < n + at_once; c++) {
                uint32_t x[4];
                load_matrices(x, &s->x[c][half * 4 + warp_lane() / 8][warp_lane() % 8 * 8]);
#pragma unroll
                for (int i = 0; i < 4; i++)
                    mma_16816<FORMAT>(sum[i / 2][c], a[i / 2][i % 2], x[i % 2 * 2], x[i % 2 * 2 + 1]);
            }
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

// Outputs m and m + 1 of a row; m and all steps are even. Parts do not wait for each other's loads.
__device__ __forceinline__ Pair sum_parts(const Sums &s, int row, int m) {
    const float *at = s.at + (size_t)row * s.row + (size_t)m;
    Pair sum = *(const Pair *)at;
#pragma unroll 8
    for (int i = 1; i < s.parts; i++) {
        Pair part = *(const Pair *)(at + (size_t)i * s.part);
        sum.x += part.x;
        sum.y += part.y;
    }
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

template <Dtype FORMAT, int N, int WARPS, int STAGES>
__global__ void __launch_bounds__(WARPS *WARP) product(Product p, int first) {
    typedef ProductShared<N, WARPS, STAGES> Shared;
    static_assert(N * (WARPS * WARP_ROWS + 4) * sizeof(float) <= sizeof(Stage<N, WARPS>) * STAGES,
                  "sums must fit");
    SHARED(Shared, sm);
    int stages = p.w.pitch / K_STAGE;
    Part b = {(int)blockIdx.x, (int)blockIdx.y, 0, 0, first, 0, 0, 0};
    b.from = stages * b.split / p.w.splits;
    b.to = stages * (b.split + 1) / p.w.splits;
    b.m_tiles = (p.w.rows + 15) / 16 - b.tile * WARPS * 2;
    Feed feed = feed_of<WARPS>(p, b);
    // The first panel always has rows.
    for (int s = 0; s < STAGES - 1 && first == 0; s++)
        if (b.from + s < b.to) fetch_weights(&sm->stage[s], feed, b.from + s);
    wait_for_launches();
    int rows = p.rows->count - first;
    if (rows <= 0) {
        copy_commit();
        copy_wait<0>();
        return;
    }
    b.rows = rows < N ? rows : N;
    b.blocks = (b.rows + 7) / 8;
    float sum[2][N / 8][4];
#pragma unroll
    for (int i = 0; i < 2 * (N / 8) * 4; i++) sum[i / (N / 2)][i / 4 % (N / 8)][i % 4] = 0;
    for (int s = 0; s < STAGES - 1; s++) {
        if (b.from + s < b.to) {
            if (first) fetch_weights(&sm->stage[s], feed, b.from + s);
            fetch_activations(&sm->stage[s], feed, b, b.from + s);
        }
        copy_commit();
    }
    int now = 0, ahead = STAGES - 1; // the stages of k and of k + STAGES - 1
    for (int k = b.from; k < b.to; k++) {
        copy_wait<STAGES - 2>();
        __syncthreads();
        if (k + STAGES - 1 < b.to) {
            fetch_weights(&sm->stage[ahead], feed, k + STAGES - 1);
            fetch_activations(&sm->stage[ahead], feed, b, k + STAGES - 1);
        } else let_next_begin();
        copy_commit();
        multiply<FORMAT>(&sm->stage[now], b, sum);
        ahead = now;
        now = now + 1 == STAGES ? 0 : now + 1;
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
        if (at >= p.w.rows) continue;
        Pair sums = sum_parts(s, row, m);
        put_pair(p.put, p.rows, p.w.rows, first + row, at, sums.x, sums.y);
    }
}

template <Dtype FORMAT, int N, int WARPS, int STAGES>
static void launch(const Product &p, int first, void *stream) {
    const int tile = WARPS * WARP_ROWS;
    dim3 grid((unsigned)((p.w.rows + tile - 1) / tile), (unsigned)p.w.splits);
    LAUNCH_EARLY((product<FORMAT, N, WARPS, STAGES>), grid, WARPS * WARP,
                 sizeof(ProductShared<N, WARPS, STAGES>), stream, p.w.data, p, first);
}

// Tiles of 256 rows read the activations half as often, where a block can have the memory.
template <Dtype FORMAT>
static void launch_panel(const Product &p, int most, int first, bool large, void *stream) {
    if (most <= 8) launch<FORMAT, 8, 4, 4>(p, first, stream);
    else if (most <= 16) launch<FORMAT, 16, 4, 4>(p, first, stream);
    else if (most <= 32) launch<FORMAT, 32, 4, 4>(p, first, stream);
    else if (most <= 64 && !large) launch<FORMAT, 64, 4, 4>(p, first, stream);
    else if (most <= 64) launch<FORMAT, 64, 8, 3>(p, first, stream);
    else if (!large) launch<FORMAT, 128, 4, 3>(p, first, stream);
    else launch<FORMAT, 128, 8, 3>(p, first, stream);
}

// What a block can have on 8.6 and 8.9.
static_assert(sizeof(ProductShared<64, 4, 4>) <= 99 << 10 && sizeof(ProductShared<128, 4, 3>) <= 99 << 10,
              "small tiles must fit the smallest cards");

void gpu_product(const Product *p, int most, size_t shared_bytes, void *stream) {
    if (p->w.form != FORM_PACKED) {
        gpu_product_plain(p, most, stream);
        return;
    }
    bool large = shared_bytes >= sizeof(ProductShared<128, 8, 3>);
    for (int first = 0; first < most; first += PANEL_ROWS)
        if (p->w.dtype == DTYPE_F16) launch_panel<DTYPE_F16>(*p, most - first, first, large, stream);
        else launch_panel<DTYPE_BF16>(*p, most - first, first, large, stream);
}
