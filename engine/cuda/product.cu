// Products of bf16 by bf16, and of f16 by f16, on tensor cores: y (rows, m) = x (rows, k) w (m, k)^T, then
// the put of y (put.cuh).
//
// Weights are the long side of each mma, activations the short one, so a step of one row wastes 7 columns of
// 8 but no weight. A block has ROWS of weights and N of activations. It goes through K in stages of 64
// columns, fetched asynchronously some stages ahead. Warps share a stage: with up to 64 rows of activations,
// each warp has its own rows of weights and all activations; with 128 it has its own 64 (or 48) by 64, so
// that neither operand is read by all warps.
//
//      block (tile, split):   w | stage | stage | stage | ..        x   | stage | ..    (N columns)
//
// An element's sum depends only on K and M: k ascends by 16 in one accumulator, K is split in parts by shape
// (Matrix.splits), and parts are added in ascending order. N, ROWS, warps and the number of stages have no
// effect, and a column has none on its neighbours.
//
// The blocks of a tile are a cluster (9.0): each reads its share of the outputs from the shared memory of
// all. Without clusters the parts go through global memory, and the next launch (put_rows) adds them: no
// block waits for another, and every processor takes part.
//
// Floor: weights once from memory. Activations are read once a tile, from L2. The first stages of weights are
// fetched before the launch in front has ended, so a step's short kernels cost little (docs/cuda.md). For the
// same reason the next launch may begin when the last stages are being fetched: earlier, its weights would
// only compete with this launch's, and none would be left to fill the gap.
#include "engine/cuda/put.cuh"
#include "engine/cuda/runtime.h"

enum { K_STAGE = 64 };

// A block's tile and its warps: DOWN warps have TALL fragments of 16 rows each, ACROSS share the columns.
template <int N_, int TALL_, int DOWN_, int ACROSS_, int STAGES_> struct Cut {
    enum {
        N = N_,
        TALL = TALL_,
        DOWN = DOWN_,
        ACROSS = ACROSS_,
        STAGES = STAGES_,
        ROWS = 16 * TALL * DOWN,
        THREADS = DOWN * ACROSS * WARP,
        BLOCKS = N / 8 / ACROSS,    // of 8 columns, a warp
        PAIRED = BLOCKS > 1 ? 2 : 1 // blocks side by side, dealt to warps in turn
    };
};
typedef Cut<128, 4, 4, 2, 3> Large;
typedef Cut<128, 3, 4, 2, 4> Low; // for more blocks
typedef Cut<128, 4, 2, 2, 3> Small;
typedef Cut<64, 2, 4, 1, 4> Small64;
static_assert((int)Large::ROWS == TILE_ROWS && (int)Low::ROWS == LOW_TILE_ROWS,
              "weights are padded to these");

template <class C> struct Stage {
    uint4 w[C::ROWS / 16][K_STAGE / 16][WARP]; // a lane's fragment of a 16x16 tile
    uint16_t x[C::N / 8][K_STAGE / 8][64];
};
template <class C> struct ProductShared { Stage<C> stage[C::STAGES]; };

// A warp's place in its tile; and the index of its n-th block of 8 columns.
template <class C> __device__ __forceinline__ int warp_down() {
    return C::ACROSS > 1 ? warp_number() % C::DOWN : warp_number();
}
template <class C> __device__ __forceinline__ int column_block(int n) {
    int across = C::ACROSS > 1 ? warp_number() / C::DOWN : 0;
    return (n / C::PAIRED * C::ACROSS + across) * C::PAIRED + n % C::PAIRED;
}

// The work of one block.
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

template <class C> __device__ __forceinline__ Feed feed_of(const Product &p, const Part &b) {
    const int tiles = C::THREADS / W_PIECES, blocks = C::THREADS / X_PIECES;
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
    f.w = (const uint4 *)p.w.data + blockIdx.z * (p.expert_bytes / sizeof(uint4)) +
          (size_t)(b.tile * (C::ROWS / 16) + f.tile) * tile_pieces + f.w_piece;
    f.x = (const uint4 *)p.x.data + (size_t)(b.first / 8 + f.block) * block_pieces + f.x_piece;
    return f;
}

template <class C> __device__ __forceinline__ void fetch_weights(Stage<C> *s, const Feed &f, int k) {
    const int at_once = C::THREADS / W_PIECES;
    const uint4 *w = f.w + (size_t)k * W_PIECES;
#pragma unroll
    for (int i = 0; i < C::ROWS / 16 / at_once; i++, w += f.w_step)
        copy_async(&s->w[f.tile + i * at_once][f.w_piece / WARP][f.w_piece % WARP], w);
}

template <class C>
__device__ __forceinline__ void fetch_activations(Stage<C> *s, const Feed &f, const Part &b, int k) {
    const int at_once = C::THREADS / X_PIECES;
    const uint4 *x = f.x + (size_t)k * X_PIECES;
#pragma unroll
    for (int i = 0; i < (C::N / 8 + at_once - 1) / at_once; i++, x += f.x_step) {
        int block = f.block + i * at_once;
        if (block < b.blocks) copy_async(&s->x[block][f.x_piece / 8][f.x_piece % 8 * 8], x);
    }
}

// Multiplies one stage into a warp's accumulators [16-row tile][block of 8 columns]. Columns without a row
// hold garbage that nothing keeps.
template <Dtype FORMAT, class C>
__device__ __forceinline__ void multiply(const Stage<C> *s, const Part &b, float sum[C::TALL][C::BLOCKS][4]) {
    const int tall = C::TALL, paired = C::PAIRED;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t a[tall][2][4];
#pragma unroll
        for (int i = 0; i < 2 * tall; i++) {
            uint4 f = s->w[warp_down<C>() * tall + i / 2][half * 2 + i % 2][warp_lane()];
            a[i / 2][i % 2][0] = f.x, a[i / 2][i % 2][1] = f.y, a[i / 2][i % 2][2] = f.z,
                         a[i / 2][i % 2][3] = f.w;
        }
#pragma unroll
        for (int n = 0; n < C::BLOCKS; n += paired) {
            int block = column_block<C>(n);
            if (block >= b.blocks) continue;
            uint32_t x[2][4];
#pragma unroll
            for (int c = 0; c < paired; c++)
                load_matrices(x[c], &s->x[block + c][half * 4 + warp_lane() / 8][warp_lane() % 8 * 8]);
#pragma unroll
            for (int i = 0; i < 2 * tall * paired; i++) { // dependent ones are far apart
                int k = i / (tall * paired), t = i % tall, c = i / tall % paired;
                mma_16816<FORMAT>(sum[t][n + c], a[t][k], x[c][k * 2], x[c][k * 2 + 1]);
            }
        }
    }
}

// Where a block's sums are until the put: row after row in its shared memory, or as a part in global memory.
struct Sums {
    float *at;
    int row; // elements from one to the next
};
template <class C> __device__ __forceinline__ Sums own_sums(void *shared) {
    return {(float *)shared, C::ROWS + 4}; // + 4: no two lanes of a store in one bank
}
template <class C> __device__ __forceinline__ Sums part_of(const Product &p, const Part &b) {
    int m = (p.w.rows + 15) / 16 * 16;
    return {p.parts + (size_t)b.split * PANEL_ROWS * (size_t)m + (size_t)(b.tile * C::ROWS), m};
}

// Stores the sums. Columns without a row are stored too if the place is the block's OWN: nothing reads them.
template <class C, bool OWN>
__device__ __forceinline__ void keep(const Sums &s, const Part &b, float sum[C::TALL][C::BLOCKS][4]) {
    int g = warp_lane() / 4, q = warp_lane() % 4 * 2, tile = warp_down<C>() * C::TALL;
#pragma unroll
    for (int n = 0; n < C::BLOCKS; n++) {
        int column = column_block<C>(n) * 8 + q;
        if (column_block<C>(n) >= b.blocks) continue;
        float *at = s.at + (size_t)column * (size_t)s.row + (size_t)(tile * 16 + g);
#pragma unroll
        for (int i = 0; i < 4 * C::TALL; i++) {
            int m = i / 4 * 16 + i % 4 / 2 * 8, next = i % 2;
            if (OWN || (column + next < b.rows && tile + i / 4 < b.m_tiles))
                at[next * s.row + m] = sum[i / 4][n][i % 4];
        }
    }
}

// Adds the parts of rows `step` bytes apart from `from` on; `own` is this block's part. All loads are in
// flight at once.
template <int AT_ONCE, int MOST>
__device__ __forceinline__ void sum_parts(Pair sum[AT_ONCE], const float *own, int parts, int count, int from,
                                          int step) {
    Pair part[AT_ONCE][MOST];
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        uint32_t place = cluster_place(own, k < parts ? k : 0);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            part[i][k] = cluster_pair(place + (unsigned)(i < count ? from + i * step : 0), k < parts);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
        sum[i] = part[i][0];
#pragma unroll
        for (int k = 1; k < MOST; k++) sum[i] = add(sum[i], part[i][k]);
    }
}

// The share of its tile's outputs that a block puts, in every row. A thread has two outputs (from `column` of
// the tile on) of several rows at once: rows own, own + step, ..
template <int AT_ONCE> struct Share {
    int column, own, step;
    bool idle;
    Place at;
    Ahead<AT_ONCE> next;
};
template <class C, int AT_ONCE>
__device__ __forceinline__ Share<AT_ONCE> share_of(const Product &p, const Part &b) {
    const int pairs = C::ROWS / 2, threads = C::THREADS;
    int splits = HAS_CLUSTERS ? p.w.splits : 1, from = pairs * b.split / splits;
    int count = pairs * (b.split + 1) / splits - from, thread = (int)threadIdx.x;
    Share<AT_ONCE> s;
    s.column = (from + thread % count) * 2;
    s.own = thread / count;
    s.step = threads / count;
    s.idle = s.own >= s.step || b.tile * C::ROWS + s.column >= p.w.rows;
    return s;
}

// Loads the values that outputs are combined with ahead of time: nothing else in this launch writes them.
template <class C, int AT_ONCE>
__device__ __forceinline__ void begin_share(Share<AT_ONCE> &s, const Product &p, const Part &b,
                                            int first_node) {
    s.at = place_of(p.put, p.w.rows, s.idle ? 0 : b.tile * C::ROWS + s.column);
    s.next.row = b.first + s.own;
    s.next.step = s.step;
    s.next.count = s.idle ? 0 : (b.rows - s.own + s.step - 1) / s.step;
    look_ahead(s.next, p.put, s.at, p.rows, first_node);
}

// Puts one turn, which `now` describes: the share's rows from `row` of the panel on. The `last` turn lets the
// cluster's other blocks end.
template <int AT_ONCE>
__device__ __forceinline__ void put_turn(const Ahead<AT_ONCE> &now, const Share<AT_ONCE> &s, const Product &p,
                                         const Sums &sums, int row, bool last) {
    int splits = HAS_CLUSTERS ? p.w.splits : 1, from = row * sums.row, each = s.step * sums.row;
    const float *own = sums.at + s.own * sums.row + s.column;
    Pair sum[AT_ONCE];
    if (splits == 1) { // put_pairs takes all rows: an absent one reads the first sum
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            sum[i] = *(const Pair *)(own + (i < now.count ? from + i * each : 0));
    } else if (splits == 2) sum_parts<AT_ONCE, 2>(sum, own, splits, now.count, 4 * from, 4 * each);
    else sum_parts<AT_ONCE, PARTS_MAX>(sum, own, splits, now.count, 4 * from, 4 * each);
    if (splits > 1 && last) cluster_arrive();
    put_pairs(now, p.put, s.at, sum);
}

// Puts the share; the parts are in the shared memory of the cluster's blocks, this one included. A turn's
// loads begin a turn before. One copy of this code for all turns: it is most of the kernel.
template <int AT_ONCE>
__device__ __forceinline__ void put_share(Share<AT_ONCE> &s, const Product &p, const Part &b, int first_node,
                                          const Sums &sums) {
    int splits = HAS_CLUSTERS ? p.w.splits : 1, step = s.step * AT_ONCE;
    if (splits == 1) __syncthreads();
    else cluster_wait();
#pragma unroll 1
    for (int row = 0; row < b.rows; row += step) {
        Ahead<AT_ONCE> now = s.next;
        s.next.row += step;
        s.next.count -= AT_ONCE;
        bool last = row + step >= b.rows;
        if (!last) look_ahead(s.next, p.put, s.at, p.rows, first_node);
        put_turn(now, s, p, sums, row, last);
    }
    if (splits > 1) cluster_wait(); // others may still read this block's
}

template <Dtype FORMAT, class C>
__global__ void __launch_bounds__(C::THREADS) product(Product p, int first, bool clusters) {
    typedef ProductShared<C> Shared;
    static_assert(C::N * (C::ROWS + 4) * sizeof(float) <= sizeof(Shared), "sums must fit");
    SHARED(Shared, sm);
    int stages = p.w.pitch / K_STAGE;
    Part b = {(int)blockIdx.y, (int)blockIdx.x, 0, 0, first, 0, 0, 0};
    b.from = stages * b.split / p.w.splits;
    b.to = stages * (b.split + 1) / p.w.splits;
    b.m_tiles = (p.w.rows + 15) / 16 - b.tile * (C::ROWS / 16);
    Feed feed = feed_of<C>(p, b);
    const int at_once = C::N == 8 ? 2 : C::N < 64 ? 4 : 8, ahead_by = C::STAGES - 1;
    Share<at_once> share = share_of<C, at_once>(p, b);
    // The first panel always has rows.
    bool early = BEGINS_EARLY && first == 0 && !p.slices;
    for (int s = 0; s < ahead_by && early; s++)
        if (b.from + s < b.to) fetch_weights(&sm->stage[s], feed, b.from + s);
    wait_for_launches();
    int rows = p.rows->count - first, first_node = p.rows->first;
    if (p.slices) {
        Slice own = p.slices[blockIdx.z];
        rows = own.count - first;
        b.first += own.first;
        feed.x += (size_t)own.first * (size_t)(p.x.pitch / 8);
    }
    if (rows <= 0) {
        copy_commit();
        copy_wait<0>();
        return;
    }
    b.rows = rows < C::N ? rows : C::N;
    b.blocks = (b.rows + 7) / 8;
    float sum[C::TALL][C::BLOCKS][4];
#pragma unroll
    for (int i = 0; i < C::TALL * C::BLOCKS * 4; i++) sum[i / (C::BLOCKS * 4)][i / 4 % C::BLOCKS][i % 4] = 0;
    for (int s = 0; s < ahead_by; s++) {
        if (b.from + s < b.to) {
            if (!early) fetch_weights(&sm->stage[s], feed, b.from + s);
            fetch_activations(&sm->stage[s], feed, b, b.from + s);
        }
        copy_commit();
    }
    begin_share<C, at_once>(share, p, b, first_node);
    int now = 0, ahead = ahead_by; // the stages of k and of k + ahead_by
    for (int k = b.from; k < b.to; k++) {
        copy_wait<C::STAGES - 2>();
        __syncthreads();
        if (k + ahead_by < b.to) {
            fetch_weights(&sm->stage[ahead], feed, k + ahead_by);
            fetch_activations(&sm->stage[ahead], feed, b, k + ahead_by);
        } else let_next_begin();
        copy_commit();
        multiply<FORMAT, C>(&sm->stage[now], b, sum);
        ahead = now;
        now = now + 1 == C::STAGES ? 0 : now + 1;
    }
    copy_wait<0>();
    __syncthreads();
    if (p.w.splits > 1 && !(HAS_CLUSTERS && clusters)) {
        keep<C, false>(part_of<C>(p, b), b, sum);
        return;
    }
    Sums s = own_sums<C>(sm->stage);
    keep<C, true>(s, b, sum);
    if (p.w.splits > 1) cluster_arrive();
    put_share(share, p, b, first_node, s);
}

template <Dtype FORMAT, class C> static void launch(const Product &p, int first, void *stream) {
    bool clusters = gpu_has_clusters();
    unsigned splits = (unsigned)p.w.splits;
    dim3 grid(splits, (unsigned)((p.w.rows + C::ROWS - 1) / C::ROWS), p.slices ? (unsigned)p.w.experts : 1);
    LAUNCH_CLUSTER((product<FORMAT, C>), clusters ? splits : 1, grid, C::THREADS, sizeof(ProductShared<C>),
                   stream, p.w.data, p, first, clusters);
}

// Returns the rows of weights of the busiest processor, times all processors: rows * splits if none is idle.
template <class C> static int64_t occupied(const Product &p, int processors) {
    int64_t blocks = (int64_t)((p.w.rows + C::ROWS - 1) / C::ROWS) * p.w.splits;
    return (blocks + processors - 1) / processors * processors * C::ROWS;
}

// Large tiles read activations less often; but if they leave a third of the card idle, low tiles are taken if
// they leave less of it idle.
static bool wants_low(const Product &p, int processors) {
    int64_t large = occupied<Large>(p, processors);
    return 2 * large > 3 * (int64_t)p.w.rows * p.w.splits && occupied<Low>(p, processors) < large;
}

template <Dtype FORMAT>
static void launch_panel(const Product &p, int most, int first, const GpuFacts *card, void *stream) {
    bool large = card->shared_bytes >= sizeof(ProductShared<Low>);
    if (most <= 8) launch<FORMAT, Cut<8, 2, 4, 1, 4>>(p, first, stream);
    else if (most <= 16) launch<FORMAT, Cut<16, 2, 4, 1, 4>>(p, first, stream);
    else if (most <= 32) launch<FORMAT, Cut<32, 2, 4, 1, 4>>(p, first, stream);
    else if (most <= 64 && !large) launch<FORMAT, Small64>(p, first, stream);
    else if (most <= 64) launch<FORMAT, Cut<64, 2, 8, 1, 3>>(p, first, stream);
    else if (!large) launch<FORMAT, Small>(p, first, stream);
    else if (wants_low(p, card->multiprocessors)) launch<FORMAT, Low>(p, first, stream);
    else launch<FORMAT, Large>(p, first, stream);
}

// 8.6 and 8.9 allow a block 99 KB.
static_assert(sizeof(ProductShared<Small64>) <= 99 << 10 && sizeof(ProductShared<Small>) <= 99 << 10,
              "small tiles must fit the smallest cards");
static_assert(sizeof(ProductShared<Large>) <= sizeof(ProductShared<Low>), "one bound for both");

void gpu_product(const Product *p, int most, const GpuFacts *card, void *stream) {
    if (p->w.form != FORM_PACKED) {
        gpu_product_plain(p, most, stream);
        return;
    }
    int m = (p->w.rows + 15) / 16 * 16;
    PutRows put = {p->rows, 0, p->parts, p->w.rows, m, p->w.splits, (size_t)m * PANEL_ROWS, p->put};
    for (int &first = put.first; first < most; first += PANEL_ROWS) {
        int rows = most - first;
        if (p->w.dtype == DTYPE_F16) launch_panel<DTYPE_F16>(*p, rows, first, card, stream);
        else launch_panel<DTYPE_BF16>(*p, rows, first, card, stream);
        if (p->w.splits > 1 && !gpu_has_clusters())
            gpu_put_rows(&put, rows < PANEL_ROWS ? rows : PANEL_ROWS, stream);
    }
}

// --- weights into the order in which products read them
//
// Packed, for mma: a 16x16 tile is stored as a warp's lanes hold the operand `a`, 16 bytes a lane, lanes one
// after another; tiles of 16 rows are one after another along K. So a lane's operand is one load, and a
// warp's weights of a stage are one run of 2 KB for each 16 rows.

enum { PACK_THREADS = 256 };

__device__ __forceinline__ void put_number(Dtype dtype, void *data, size_t i, float x) {
    if (dtype == DTYPE_F32) ((float *)data)[i] = x;
    else ((uint16_t *)data)[i] = f32_half(dtype, x); // the same format keeps its bits
}

__global__ void __launch_bounds__(PACK_THREADS) pack(Pack p) {
    size_t n = (size_t)p.rows * (size_t)p.columns, stride = (size_t)gridDim.x * PACK_THREADS;
    for (size_t i = (size_t)blockIdx.x * PACK_THREADS + threadIdx.x; i < n; i += stride) {
        int row = pack_row(p.first + (int)(i / (size_t)p.columns), p.base, p.stride, p.head, p.pairs);
        int column = (int)(i % (size_t)p.columns);
        size_t at = p.to.form == FORM_PACKED ? fragment_at(p.to.pitch, row, column)
                                             : (size_t)row * (size_t)p.to.pitch + (size_t)column;
        put_number(p.to.dtype, p.to.data, at, load_number(p.dtype, p.from, i));
    }
}

void gpu_pack(const Pack *p, void *stream) {
    const size_t most = 1024;
    size_t blocks = ((size_t)p->rows * (size_t)p->columns + PACK_THREADS - 1) / PACK_THREADS;
    LAUNCH(pack, (unsigned)(blocks < most ? blocks : most), PACK_THREADS, 0, stream, *p);
}

size_t gpu_matrix_bytes(const Matrix *m) {
    int tiles = (m->rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    int low = (m->rows + LOW_TILE_ROWS - 1) / LOW_TILE_ROWS * LOW_TILE_ROWS;
    int rows = m->form != FORM_PACKED ? m->rows : tiles > low ? tiles : low;
    return (size_t)rows * (size_t)m->pitch * dtype_size(m->dtype);
}
