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
// (matrix `splits`), and parts are added in ascending order. N, TILE and the number of stages do not enter. A
// column does not see its neighbours.
//
// The blocks of a tile are a cluster (9.0): each reads its share of the outputs from the shared memory of
// all. Where there are no clusters the parts go through global memory, and the next launch (put_rows) adds
// them: nobody waits for another block, and every processor takes part.
//
// Floor: weights once from memory. Activations are read once a tile, from L2. The first stages of weights are
// fetched before the launch in front has ended: a step's short kernels cost little then (docs/cuda.md). So
// the next launch may begin when the last stages are on their way: earlier, its weights would only take turns
// with this one's, and none would be left to fill the gap.
#include "engine/cuda/put.cuh"
#include "engine/cuda/runtime.h"

enum { K_STAGE = 64, WARP_ROWS = 32 };

template <int N, int WARPS> struct Stage {
    uint4 w[WARPS * WARP_ROWS / 16][K_STAGE / 16][WARP]; // a lane's fragment of a 16x16 tile
    uint16_t x[N / 8][K_STAGE / 8][64];
};
template <int N, int WARPS, int STAGES> struct ProductShared { Stage<N, WARPS> stage[STAGES]; };

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
            uint32_t x[2][4];
#pragma unroll
            for (int c = 0; c < at_once; c++)
                load_matrices(x[c], &s->x[n + c][half * 4 + warp_lane() / 8][warp_lane() % 8 * 8]);
#pragma unroll
            for (int i = 0; i < 4 * at_once; i++) { // those that add to one another stand apart
                int k = i / (2 * at_once), t = i % 2, c = i / 2 % at_once;
                mma_16816<FORMAT>(sum[t][n + c], a[t][k], x[c][k * 2], x[c][k * 2 + 1]);
            }
        }
    }
}

// Where a block's sums stand until they are put: a row after the other, in its shared memory, or as one of
// several parts in global.
struct Sums {
    float *at;
    int row; // elements from one to the next
};
template <int WARPS> __device__ __forceinline__ Sums own_sums(void *shared) {
    return {(float *)shared, WARPS * WARP_ROWS + 4}; // + 4: no two lanes of a store in one bank
}
template <int WARPS> __device__ __forceinline__ Sums part_of(const Product &p, const Part &b) {
    int m = (p.w.rows + 15) / 16 * 16;
    return {p.parts + (size_t)b.split * PANEL_ROWS * (size_t)m + (size_t)(b.tile * WARPS * WARP_ROWS), m};
}

// Columns without a row go where nobody looks, if they are the block's own.
template <int N, bool OWN>
__device__ __forceinline__ void keep(const Sums &s, const Part &b, float sum[2][N / 8][4]) {
    int g = warp_lane() / 4, q = warp_lane() % 4 * 2, first = warp_number() * WARP_ROWS + g;
    float *at = s.at + (size_t)q * (size_t)s.row + (size_t)first;
#pragma unroll
    for (int n = 0; n < N / 8; n++, at += 8 * s.row) {
        if (n >= b.blocks) continue;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int m = i / 4 * 16 + i % 4 / 2 * 8, next = i % 2;
            if (OWN || (n * 8 + q + next < b.rows && warp_number() * 2 + i / 4 < b.m_tiles))
                at[next * s.row + m] = sum[i / 4][n][i % 4];
        }
    }
}

// Of rows `step` bytes apart from `from` on; all loads are on their way at once.
template <int AT_ONCE>
__device__ __forceinline__ void sum_parts(Pair sum[AT_ONCE], const uint32_t place[PARTS_MAX], int parts,
                                          int count, int from, int step) {
    Pair part[AT_ONCE][PARTS_MAX];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
#pragma unroll
        for (int k = 0; k < PARTS_MAX; k++)
            part[i][k] = cluster_pair(place[k] + (unsigned)(i < count ? from + i * step : 0), k < parts);
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
        sum[i] = part[i][0];
#pragma unroll
        for (int k = 1; k < PARTS_MAX; k++) sum[i] = add(sum[i], part[i][k]);
    }
}

// The share of its tile's outputs that a block puts, in every row. A thread has two outputs (from
// `column` of the tile on) of several rows at once, of the first `step` rows its own.
template <int AT_ONCE> struct Share {
    int column, own, step;
    bool idle;
    Place at;
    Ahead<AT_ONCE> next;
};
template <int WARPS, int AT_ONCE>
__device__ __forceinline__ Share<AT_ONCE> share_of(const Product &p, const Part &b) {
    const int pairs = WARPS * WARP_ROWS / 2, threads = WARPS * WARP;
    int splits = HAS_CLUSTERS ? p.w.splits : 1, from = pairs * b.split / splits;
    int count = pairs * (b.split + 1) / splits - from, thread = (int)threadIdx.x;
    Share<AT_ONCE> s;
    s.column = (from + thread % count) * 2;
    s.own = thread / count;
    s.step = threads / count;
    s.idle = s.own >= s.step || b.tile * WARPS * WARP_ROWS + s.column >= p.w.rows;
    return s;
}

// Loads what the outputs are combined with ahead of time: nothing else in this launch writes it.
template <int WARPS, int AT_ONCE>
__device__ __forceinline__ void begin_share(Share<AT_ONCE> &s, const Product &p, const Part &b,
                                            int first_node) {
    s.at = place_of(p.put, p.w.rows, s.idle ? 0 : b.tile * WARPS * WARP_ROWS + s.column);
    s.next.row = b.first + s.own;
    s.next.step = s.step;
    s.next.count = s.idle ? 0 : (b.rows - s.own + s.step - 1) / s.step;
    look_ahead(s.next, p.put, s.at, p.rows, first_node);
}

// All parts of its outputs are in the shared memory of the cluster's blocks, the block's own among them.
template <int AT_ONCE>
__device__ __forceinline__ void put_share(Share<AT_ONCE> &s, const Product &p, const Part &b, int first_node,
                                          const Sums &sums) {
    int splits = HAS_CLUSTERS ? p.w.splits : 1, step = s.step * AT_ONCE;
    const float *own = sums.at + s.own * sums.row + s.column;
    uint32_t place[PARTS_MAX] = {};
#pragma unroll
    for (int k = 0; k < PARTS_MAX; k++)
        if (k < splits && splits > 1) place[k] = cluster_place(own, k);
    if (splits == 1) __syncthreads();
    else cluster_wait();
    for (int row = 0; row < b.rows; row += step) {
        Ahead<AT_ONCE> now = s.next;
        Pair sum[AT_ONCE];
        s.next.row += step;
        s.next.count -= AT_ONCE;
        if (row + step < b.rows) look_ahead(s.next, p.put, s.at, p.rows, first_node);
        if (splits == 1) { // activations are taken of every sum: where there is no row, of the first one's
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                sum[i] = *(const Pair *)(own + (i < now.count ? row + i * s.step : 0) * sums.row);
        } else sum_parts<AT_ONCE>(sum, place, splits, now.count, 4 * row * sums.row, 4 * s.step * sums.row);
        if (splits > 1 && row + step >= b.rows) cluster_arrive();
        put_pairs(now, p.put, s.at, sum);
    }
    if (splits > 1) cluster_wait(); // others may still read this block's
}

template <Dtype FORMAT, int N, int WARPS, int STAGES>
__global__ void __launch_bounds__(WARPS *WARP) product(Product p, int first, bool clusters) {
    typedef ProductShared<N, WARPS, STAGES> Shared;
    static_assert(N * (WARPS * WARP_ROWS + 4) * sizeof(float) <= sizeof(Stage<N, WARPS>) * STAGES,
                  "sums must fit");
    SHARED(Shared, sm);
    int stages = p.w.pitch / K_STAGE;
    Part b = {(int)blockIdx.y, (int)blockIdx.x, 0, 0, first, 0, 0, 0};
    b.from = stages * b.split / p.w.splits;
    b.to = stages * (b.split + 1) / p.w.splits;
    b.m_tiles = (p.w.rows + 15) / 16 - b.tile * WARPS * 2;
    Feed feed = feed_of<WARPS>(p, b);
    const int at_once = N < 64 ? 4 : 8;
    Share<at_once> share = share_of<WARPS, at_once>(p, b);
    // The first panel always has rows.
    bool early = BEGINS_EARLY && first == 0;
    for (int s = 0; s < STAGES - 1 && early; s++)
        if (b.from + s < b.to) fetch_weights(&sm->stage[s], feed, b.from + s);
    wait_for_launches();
    int rows = p.rows->count - first, first_node = p.rows->first;
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
            if (!early) fetch_weights(&sm->stage[s], feed, b.from + s);
            fetch_activations(&sm->stage[s], feed, b, b.from + s);
        }
        copy_commit();
    }
    begin_share<WARPS, at_once>(share, p, b, first_node);
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
    if (p.w.splits > 1 && !(HAS_CLUSTERS && clusters)) {
        keep<N, false>(part_of<WARPS>(p, b), b, sum);
        return;
    }
    Sums s = own_sums<WARPS>(sm->stage);
    keep<N, true>(s, b, sum);
    if (p.w.splits > 1) cluster_arrive();
    put_share(share, p, b, first_node, s);
}

template <Dtype FORMAT, int N, int WARPS, int STAGES>
static void launch(const Product &p, int first, void *stream) {
    const int tile = WARPS * WARP_ROWS;
    bool clusters = gpu_has_clusters();
    unsigned splits = (unsigned)p.w.splits;
    dim3 grid(splits, (unsigned)((p.w.rows + tile - 1) / tile));
    LAUNCH_CLUSTER((product<FORMAT, N, WARPS, STAGES>), clusters ? splits : 1, grid, WARPS * WARP,
                   sizeof(ProductShared<N, WARPS, STAGES>), stream, p.w.data, p, first, clusters);
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
    int m = (p->w.rows + 15) / 16 * 16;
    PutRows put = {p->rows, 0, p->parts, p->w.rows, m, p->w.splits, (size_t)m * PANEL_ROWS, p->put};
    for (int &first = put.first; first < most; first += PANEL_ROWS) {
        int rows = most - first;
        if (p->w.dtype == DTYPE_F16) launch_panel<DTYPE_F16>(*p, rows, first, large, stream);
        else launch_panel<DTYPE_BF16>(*p, rows, first, large, stream);
        if (p->w.splits > 1 && !gpu_has_clusters())
            gpu_put_rows(&put, rows < PANEL_ROWS ? rows : PANEL_ROWS, stream);
    }
}
