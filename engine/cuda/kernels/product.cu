// Products of bf16 by bf16, and of f16 by f16, on tensor cores: y (rows, m) = x (rows, k) w (m, k)^T, then
// the put of y (put.cuh).
//
// Weights are the long side of each multiplication, activations the short one, so a step of one row wastes 7
// columns of 8 but no weight. Up to 16 rows product_narrow.cu takes them. Here a block has 128 rows of
// weights and N of activations. It goes through K in stages of 64 columns, fetched asynchronously some stages
// ahead. On 9.0 two warpgroups have 64 rows of weights each, which the tensor cores read from shared memory;
// on other cards eight warps share the tile. Either two blocks share a processor, so that one multiplies
// while the other begins or ends, or one block fetches twice as far ahead.
//
//      block (tile, split, panel):   w | stage | stage | stage | ..        x   | stage | ..    (N columns)
//
// An element's sum depends only on K and M: k ascends by 16 in one accumulator, K is split in parts by shape
// (Matrix.splits), and parts are added in ascending order. The kernel and the number of rows have no effect
// (results/gpu/log.md compares wgmma and mma.sync), and a column has none on its neighbours. Parts go through
// global memory, and the next launch (put_rows) adds them: no block waits for another.
//
// Floor: weights once from memory. Activations are read once a tile, from L2. The first stages of weights are
// fetched before the launch in front has ended, so a step's short kernels cost little (docs/cuda.md).
#include "engine/cuda/kernels/product.cuh"
#include "engine/cuda/kernels/runtime.h"
#include "engine/cuda/kernels/warpgroups.cuh"

#include <stddef.h>

// A block's warps: DOWN have TALL tiles of 16 rows each, ACROSS share the columns.
template <int N_> struct Cut {
    enum {
        N = N_,
        TALL = HAS_WARPGROUPS ? 1 : 2,
        ACROSS = TALL,
        DOWN = 8 / ACROSS,
        THREADS = 8 * WARP,
        BLOCKS = N / 8 / ACROSS // of 8 columns, a warp
    };
};

// Matrices of 8x8, by 8 columns and 8 rows; activations by 8 rows and 8 columns.
struct Values {
    uint16_t w[K_STAGE / 8][TILE_ROWS / 8][64];
};
// A stage's weights as they are fetched. Tensor cores find their values there or, of codes, in one place for
// all stages (Decoded).
template <int BITS> struct Fetched {
    typedef Values Decoded;
    uint4 codes[TILE_ROWS / 16][Weights<BITS>::PIECES][WARP];
    uint4 scales[TILE_ROWS / 16][2 * ScaleRun<BITS>::PIECES];
};
template <> struct Fetched<16> : Values {
    struct Decoded {};
};
template <int BITS, int N> struct Stage {
    Fetched<BITS> w;
    uint16_t x[N / 8][K_STAGE / 8][64];
};
template <int BITS, int N, int STAGES> struct ProductShared {
    Stage<BITS, N> stage[STAGES];
    typename Fetched<BITS>::Decoded decoded;
};

// A warp's place in its tile; and the index of its n-th block of 8 columns: pairs are dealt to warps in turn.
template <class C> __device__ __forceinline__ int warp_down() { return warp_number() % C::DOWN; }
template <class C> __device__ __forceinline__ int column_block(int n) {
    return (n / 2 * C::ACROSS + warp_number() / C::DOWN) * 2 + n % 2;
}

// The work of one block.
struct Part {
    int tile, split, from, to; // stages of K
    int first, rows, blocks;   // rows of its panel; in blocks of 8
    int m_tiles;               // 16-row tiles of the matrix after the block's first
};

// A thread's share of each stage: pieces of 16 bytes at fixed places, one stage further on each time.
struct Feed {
    const uint4 *w, *x;    // the first piece of stage 0
    size_t w_step, x_step; // from one of its tiles, and blocks, to the next
    int tile, w_piece, block, x_piece;
    // Of codes: a warp has a tile. Bytes from where a stage begins to a lane's codes, to the scales that it
    // fetches and to those that it takes; and from where the values begin to its own.
    ScaleFeed scales;
    int codes, scale, word, values;
};

template <int BITS, class C> __device__ __forceinline__ Feed feed_of(const Product &p, const Part &b) {
    const int w_pieces = BITS == 16 ? (int)Weights<BITS>::W_PIECES : (int)WARP;
    const int tiles = C::THREADS / w_pieces, blocks = C::THREADS / X_PIECES;
    size_t tile_pieces = weight_pieces<BITS>(p), block_pieces = activation_pieces(p);
    int thread = (int)threadIdx.x;
    Feed f = {NULL,
              NULL,
              tile_pieces * tiles,
              block_pieces * blocks,
              thread / w_pieces,
              thread % w_pieces,
              thread / X_PIECES,
              thread % X_PIECES,
              {},
              0,
              0,
              0,
              0};
    int tile = b.tile * (TILE_ROWS / 16) + f.tile;
    f.w = first_weights(p) + (size_t)tile * tile_pieces + f.w_piece;
    f.x = (const uint4 *)p.x.data + (size_t)(b.first / 8 + f.block) * block_pieces + f.x_piece;
    if (BITS == 16) return f;
    const int form = BITS == 16 ? 4 : BITS;
    typedef Fetched<form> Codes;
    f.w = held(f.w);
    f.x = held(f.x);
    f.scales = scale_feed<form>(p, tile, b.to);
    f.codes = held((int)(f.tile * sizeof(Codes().codes[0]) + warp_lane() * sizeof(uint4)));
    f.scale = held(
        (int)(offsetof(Codes, scales) + f.tile * sizeof(Codes().scales[0]) + warp_lane() * sizeof(uint4)));
    f.word = held((int)(offsetof(Codes, scales) + f.tile * sizeof(Codes().scales[0]) +
                        warp_lane() / 4 * ScaleRun<form>::EACH));
    f.values = held((int)(f.tile * sizeof(Values().w[0][0]) * 2 + warp_lane() * sizeof(uint32_t)));
    return f;
}

// In memory, a tile's pieces are in the order of weight_at.
template <class C> __device__ __forceinline__ void fetch_weights(Fetched<16> *s, const Feed &f, int k) {
    const int w_pieces = Weights<16>::W_PIECES, at_once = C::THREADS / w_pieces;
    const uint4 *w = f.w + (size_t)k * w_pieces;
    int eight = f.w_piece / 16, matrix = f.w_piece / 8 % 2, row = f.w_piece % 8;
#pragma unroll
    for (int i = 0; i < TILE_ROWS / 16 / at_once; i++, w += f.w_step)
        copy_async(&s->w[eight][(f.tile + i * at_once) * 2 + matrix][row * 8], w);
}
template <class C, int BITS>
__device__ __forceinline__ void fetch_weights(Fetched<BITS> *s, const Feed &f, int k) {
    const uint4 *w = f.w + k * Weights<BITS>::W_PIECES;
    uint4 *codes = (uint4 *)((char *)s + f.codes);
#pragma unroll
    for (int i = 0; i < Weights<BITS>::PIECES; i++) copy_async(codes + i * WARP, w + i * WARP);
    copy_async_if(shared_at((char *)s + f.scale), scales_of<BITS>(f.scales, k), k < f.scales.to);
}

// The values of a stage that has arrived, for all warps. A warp decodes the tile that it fetched.
__device__ __forceinline__ const Values *decoded(const Fetched<16> *s, const Feed &, Fetched<16>::Decoded *) {
    return s;
}
template <int BITS>
__device__ __forceinline__ const Values *decoded(const Fetched<BITS> *s, const Feed &f, Values *to) {
    uint4 piece[Weights<BITS>::PIECES];
    Scales<BITS> scales;
    const uint4 *codes = (const uint4 *)((const char *)s + f.codes);
    SharedAt own_scales = shared_at((const char *)s + f.word);
    char *own = (char *)to + f.values;
#pragma unroll
    for (int i = 0; i < Weights<BITS>::PIECES; i++) piece[i] = codes[i * WARP];
#pragma unroll
    for (int k = 0; k < K_STAGE / 16; k++) {
        uint32_t a[4];
        if (k == 0 || (k == 2 && f.scales.two))
            load_scales(&scales, own_scales + k / 2 * 8 * ScaleRun<BITS>::EACH);
        decode(scales, piece, k, a);
#pragma unroll
        for (int i = 0; i < 4; i++)
            *(uint32_t *)(own + (k * 2 + i / 2) * sizeof to->w[0] + i % 2 * sizeof to->w[0][0]) = a[i];
    }
    show_to_tensor_cores();
    __syncthreads();
    return to;
}

template <class C, int BITS>
__device__ __forceinline__ void fetch_activations(Stage<BITS, C::N> *s, const Feed &f, const Part &b, int k) {
    const int at_once = C::THREADS / X_PIECES;
    const uint4 *x = f.x + (size_t)k * X_PIECES;
#pragma unroll
    for (int i = 0; i < C::N / 8 / at_once; i++, x += f.x_step) {
        int block = f.block + i * at_once;
        if (block < b.blocks) copy_async(&s->x[block][f.x_piece / 8][f.x_piece % 8 * 8], x);
    }
}

// Multiplies half a stage, by warps.
template <Dtype FORMAT, class C>
__device__ __forceinline__ void multiply_half(const Values *w, const uint16_t (*x_at)[K_STAGE / 8][64],
                                              int half, const Part &b, float sum[C::TALL][C::BLOCKS][4]) {
    const int tall = C::TALL;
    int lane = warp_lane(), matrix = lane / 8, row = lane % 8 * 8;
    uint32_t a[tall][2][4];
#pragma unroll
    for (int i = 0; i < 2 * tall; i++)
        load_matrices(
            a[i / 2][i % 2],
            &w->w[half * 4 + i % 2 * 2 + matrix / 2][(warp_down<C>() * tall + i / 2) * 2 + matrix % 2][row]);
#pragma unroll
    for (int n = 0; n < C::BLOCKS; n += 2) {
        int block = column_block<C>(n);
        if (block >= b.blocks) continue;
        uint32_t x[2][4];
#pragma unroll
        for (int c = 0; c < 2; c++) load_matrices(x[c], &x_at[block + c][half * 4 + matrix][row]);
#pragma unroll
        for (int i = 0; i < 4 * tall; i++) { // dependent ones are far apart
            int k = i / (2 * tall), t = i % tall, c = i / tall % 2;
            mma_16816<FORMAT>(sum[t][n + c], a[t][k], x[c][k * 2], x[c][k * 2 + 1]);
        }
    }
}

// Multiplies one stage into a warp's accumulators [16-row tile][block of 8 columns]. Columns without a row
// hold garbage that nothing keeps.
template <Dtype FORMAT, class C>
__device__ __forceinline__ void multiply(const Values *w, const uint16_t (*x)[K_STAGE / 8][64], const Part &b,
                                         float sum[C::TALL][C::BLOCKS][4]) {
#if HAS_WARPGROUPS
    (void)b;
    hold_sums<C::N>(sum[0]);
    groups_begin();
#pragma unroll
    for (int k = 0; k < K_STAGE / 8; k += 2)
        group_mma<FORMAT, C::N>(sum[0], operand(w->w[k][warp_number() / 4 * 8], sizeof w->w[0], 128),
                                operand(x[0][k], 128, sizeof x[0]));
    group_end();
    groups_end<C::N>(sum[0]);
#else
    multiply_half<FORMAT, C>(w, x, 0, b, sum);
    multiply_half<FORMAT, C>(w, x, 1, b, sum);
#endif
}

// Stores sums, row after row `row` elements apart: in the block's OWN shared memory, where nothing reads
// those of absent rows, or as a part in global memory.
template <class C, bool OWN>
__device__ __forceinline__ void keep(float *to, int row, const Part &b, float sum[C::TALL][C::BLOCKS][4]) {
    int g = warp_lane() / 4, q = warp_lane() % 4 * 2, tile = warp_down<C>() * C::TALL;
#pragma unroll
    for (int n = 0; n < C::BLOCKS; n++) {
        int column = column_block<C>(n) * 8 + q;
        if (column_block<C>(n) >= b.blocks) continue;
        float *at = to + (size_t)column * (size_t)row + (size_t)(tile * 16 + g);
#pragma unroll
        for (int i = 0; i < 4 * C::TALL; i++) {
            int m = i / 4 * 16 + i % 4 / 2 * 8, next = i % 2;
            if (OWN || (column + next < b.rows && tile + i / 4 < b.m_tiles))
                at[next * row + m] = sum[i / 4][n][i % 4];
        }
    }
}

template <Dtype FORMAT, int BITS, int N, int STAGES>
__global__ void __launch_bounds__(8 * WARP, 1) product(Product p, int panels) {
    typedef Cut<N> C;
    typedef ProductShared<BITS, N, STAGES> Shared;
    const int at_once = 4, ahead_by = STAGES - 1, row = TILE_ROWS + 4; // + 4: no two lanes in one bank
    static_assert(N * row * sizeof(float) <= sizeof(Shared), "sums must fit");
    SHARED(Shared, sm);
    int stages = p.w.pitch / K_STAGE;
    int first = (int)blockIdx.x % panels * N, m = (p.w.rows + 15) / 16 * 16;
    Part b = {(int)blockIdx.y, (int)blockIdx.x / panels, 0, 0, first, 0, 0, 0};
    b.from = stages * b.split / p.w.splits;
    b.to = stages * (b.split + 1) / p.w.splits;
    b.m_tiles = (p.w.rows + 15) / 16 - b.tile * (TILE_ROWS / 16);
    Feed feed = feed_of<BITS, C>(p, b);
    bool early = BEGINS_EARLY && !p.slices; // an expert may have no rows
    for (int s = 0; s < ahead_by && early; s++)
        if (b.from + s < b.to) fetch_weights<C>(&sm->stage[s].w, feed, b.from + s);
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
    b.rows = rows < N ? rows : N;
    b.blocks = (b.rows + 7) / 8;
    float sum[C::TALL][C::BLOCKS][4];
#pragma unroll
    for (int i = 0; i < C::TALL * C::BLOCKS * 4; i++) sum[i / (C::BLOCKS * 4)][i / 4 % C::BLOCKS][i % 4] = 0;
    for (int s = 0; s < ahead_by; s++) {
        if (b.from + s < b.to) {
            if (!early) fetch_weights<C>(&sm->stage[s].w, feed, b.from + s);
            fetch_activations<C>(&sm->stage[s], feed, b, b.from + s);
        }
        copy_commit();
    }
    int now = 0, ahead = ahead_by; // the stages of k and of k + ahead_by
    for (int k = b.from; k < b.to; k++) {
        copy_wait<STAGES - 2>();
        show_to_tensor_cores();
        __syncthreads();
        if (k + ahead_by < b.to) {
            fetch_weights<C>(&sm->stage[ahead].w, feed, k + ahead_by);
            fetch_activations<C>(&sm->stage[ahead], feed, b, k + ahead_by);
        } else let_next_begin();
        copy_commit();
        multiply<FORMAT, C>(decoded(&sm->stage[now].w, feed, &sm->decoded), sm->stage[now].x, b, sum);
        ahead = now;
        now = now + 1 == STAGES ? 0 : now + 1;
    }
    ask_for_next(p.w.next);
    copy_wait<0>();
    if (p.w.splits > 1) {
        size_t part_rows = (size_t)b.split * (size_t)panels * PANEL_ROWS + (size_t)first;
        keep<C, false>(p.parts + part_rows * (size_t)m + (size_t)(b.tile * TILE_ROWS), m, b, sum);
        return;
    }
    Share<at_once> share =
        begin_share<at_once>(p, b.tile * TILE_ROWS, TILE_ROWS / 2, b.first, b.rows, first_node, C::THREADS);
    float *own = (float *)sm->stage;
    __syncthreads();
    keep<C, true>(own, row, b, sum);
    __syncthreads();
    put_share(share, p, {own + (int)threadIdx.x % (TILE_ROWS / 2) * 2, row, 0, 1}, b.rows, first_node);
}

template <Dtype FORMAT, int BITS, int N, int STAGES>
static void launch(const Product *p, dim3 grid, int panels, void *stream) {
    LAUNCH_EARLY((product<FORMAT, BITS, N, STAGES>), grid, Cut<N>::THREADS,
                 sizeof(ProductShared<BITS, N, STAGES>), stream, p->w.data, *p, panels);
}

// Many blocks: two share a processor, if its memory has room for both (an A100's hasn't, beyond 32 columns).
// Few blocks, or no room: one has it, up to an A100's. The smallest cards have room for one alone.
static const size_t SHALLOW = 99 << 10, DEEP = 163 << 10, RESERVED = 1 << 10, MOST_STAGES = 8;
static constexpr int stages_in(size_t room, size_t stage) {
    return (int)(room / stage < MOST_STAGES ? room / stage : MOST_STAGES);
}
// Panels of the same weights are neighbours: all but one read them from L2.
static dim3 grid_of(const Product *p, int panels) {
    return dim3((unsigned)(panels * p->w.splits), (unsigned)((p->w.rows + TILE_ROWS - 1) / TILE_ROWS),
                p->slices ? (unsigned)p->w.experts : 1);
}
template <Dtype FORMAT, int BITS, int N>
static void launch_panels(const Product *p, int panels, Cutting cut, const GpuFacts *card, void *stream) {
    const size_t decoded = BITS < 16 ? sizeof(Values) : 0, stage = sizeof(Stage<BITS, N>);
    const int shallow = stages_in(SHALLOW - decoded, stage), deep = stages_in(DEEP - decoded, stage);
    const size_t two = 2 * (sizeof(ProductShared<BITS, N, shallow>) + RESERVED);
    dim3 grid = grid_of(p, panels);
    bool few = (int)(grid.x * grid.y * grid.z) <= card->multiprocessors;
    bool alone = cut == CUT_BY_ROWS ? few || two > card->shared_processor
                                    : cut == CUT_32_DEEP || cut == CUT_64_DEEP || cut == CUT_128_DEEP;
    if (alone && card->shared_bytes >= DEEP) launch<FORMAT, BITS, N, deep>(p, grid, panels, stream);
    else launch<FORMAT, BITS, N, shallow>(p, grid, panels, stream);
}

bool gpu_cut_takes(Cutting cut, int most) {
    static const int rows[CUTS] = {0, NARROW_ROWS, 32, 32, 64, 64}; // 0: any number
    return rows[cut] == 0 || most <= rows[cut];
}

template <Dtype FORMAT, int BITS>
static void launch_rows(const Product *p, int most, Cutting cut, const GpuFacts *card, void *stream) {
    bool own = cut != CUT_BY_ROWS;
    if (own ? cut <= CUT_32_DEEP : most <= 32) launch_panels<FORMAT, BITS, 32>(p, 1, cut, card, stream);
    else if (own ? cut <= CUT_64_DEEP : most <= 64) launch_panels<FORMAT, BITS, 64>(p, 1, cut, card, stream);
    else launch_panels<FORMAT, BITS, PANEL_ROWS>(p, product_panels(most), cut, card, stream);
}

// Codes with full scales have one shape until a card has shown that more of them pay.
template <int BITS> static void launch_full(const Product *p, int most, void *stream) {
    const int stages = stages_in(SHALLOW - sizeof(Values), sizeof(Stage<BITS, PANEL_ROWS>));
    int panels = product_panels(most);
    launch<DTYPE_BF16, BITS, PANEL_ROWS, stages>(p, grid_of(p, panels), panels, stream);
}

// product_wide.cu, where it can run.
static bool takes_wide(const Product *p, Cutting cut, const GpuFacts *card) {
    const size_t needed = 227 << 10;
    return cut >= CUT_WIDE && !p->slices && card->shared_bytes >= needed && gpu_has_warpgroups();
}

void gpu_product(const Product *p, int most, const GpuFacts *card, void *stream) {
    if (p->w.form != FORM_PACKED) {
        gpu_product_plain(p, most, stream);
        return;
    }
    Cutting cut = (Cutting)p->w.cut[cut_size(most)];
    int form = matrix_form(&p->w);
    if (!gpu_cut_takes(cut, most) || (cut >= CUT_WIDE && !takes_wide(p, cut, card))) cut = CUT_BY_ROWS;
    if (card->wgmma_differs || cut == CUT_NARROW || (cut == CUT_BY_ROWS && most <= NARROW_ROWS)) {
        gpu_product_narrow(p, most, stream);
        return;
    }
    if (cut >= CUT_WIDE) gpu_product_wide(p, most, cut, card, stream);
    else if (form == FULL_8) launch_full<FULL_8>(p, most, stream);
    else if (form == FULL_4) launch_full<FULL_4>(p, most, stream);
    else if (form == 8) launch_rows<DTYPE_BF16, 8>(p, most, cut, card, stream);
    else if (form == 4) launch_rows<DTYPE_BF16, 4>(p, most, cut, card, stream);
    else if (p->w.dtype == DTYPE_F16) launch_rows<DTYPE_F16, 16>(p, most, cut, card, stream);
    else launch_rows<DTYPE_BF16, 16>(p, most, cut, card, stream);
    if (p->w.splits == 1) return;
    int m = (p->w.rows + 15) / 16 * 16;
    size_t part = (size_t)m * PANEL_ROWS * (size_t)product_panels(most);
    PutRows put = {p->rows, p->parts, p->w.rows, m, p->w.splits, part, p->put};
    if (p->left) *p->left = put;
    else gpu_put_rows(&put, most, stream);
}
