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
#include "engine/cuda/kernels/product.cuh"
#include "engine/cuda/kernels/runtime.h"

#include <stddef.h>

enum { WARPS = 4, THREADS = WARPS * WARP, HEIGHT = 16 };

// A warp's slot has N columns of activations, and 16 rows of weights (rows of four 8x8 matrices; or codes,
// and behind them scales), of a stage, or of two where a stage has so few bytes that the loop would cost as
// much as they do. Piece i of lane l is at i * WARP + l: one address for all, and numbers that the compiler
// knows.
template <int BITS, int N> struct Slot {
    enum { STAGES = BITS / 4 == 1 ? 2 : 1, SCALES = BITS < 16 ? 2 * ScaleRun<BITS>::PIECES : 0 };
    uint4 w[STAGES][Weights<BITS>::W_PIECES + SCALES];
    uint4 x[STAGES][N / 8][X_PIECES];
};

// As many slots as fill the largest products' share of a processor's memory, so that all their blocks run at
// once: 72 KB (N 16: 96 KB) of values, 51 to 90 KB of codes.
template <int BITS, int N> struct NarrowShared {
    enum { SLOTS = BITS == 16 ? 6 : BITS / 4 == 2 ? (N == 8 ? 8 : 6) : (N == 8 ? 5 : 4) };
    enum { PREPARES = BITS == 8 || BITS == 4 };
    enum { WORDS = PREPARES ? Slot<BITS, N>::STAGES * 2 * 8 : 1 }; // of scales in a slot
    Slot<BITS, N> slot[WARPS][SLOTS];
    uint4 scales[WARPS][WORDS]; // of the slot that is multiplied, as lanes use them
};

// A lane's pieces of each stage.
struct Lane {
    const uint4 *w, *x; // the first piece of stage 0
    ScaleFeed scales;
    int x_step; // from a block of 8 rows to the next
    int to;     // the stage that ends the part
    int blocks;
    int rows; // of codes: less the lane's row of the first block
    // A lane prepares a word of a slot's scales for all, if the slot's first stage is in front of words_to.
    int word, words_to; // word: bytes from the lane's first piece of a slot
    SharedAt prepared;  // those of its rows in the slot's first group
    int second;         // bytes from those of a stage's first half to its second's; 0: they are the same
    uint4 *prepares;
    uint64_t leaving; // of weights
};

// Where a lane has piece i of stage d in a slot.
template <class S> __device__ __forceinline__ SharedAt w_at(SharedAt slot, int d, int i) {
    return slot + (offsetof(S, w) + sizeof(S().w[0]) * (size_t)d + sizeof(uint4) * WARP * (size_t)i);
}
template <class S> __device__ __forceinline__ SharedAt x_at(SharedAt slot, int d, int block, int i) {
    return slot + (offsetof(S, x) + sizeof(S().x[0]) * (size_t)d + sizeof(S().x[0][0]) * (size_t)block +
                   sizeof(uint4) * WARP * (size_t)i);
}

// Those of a slot, from stage k on. Up to 8 rows weights leave L2 first, which makes a step 1.2% faster; with
// 16, whose activations are as many bytes, it takes 0.7% longer (results/gpu/log.md).
template <int BITS, int N>
__device__ __forceinline__ void fetch_weights(SharedAt slot, const Lane &l, int k) {
    typedef Slot<BITS, N> S;
    const uint4 *w = l.w + k * Weights<BITS>::W_PIECES;
#pragma unroll
    for (int d = 0; d < S::STAGES; d++, w += Weights<BITS>::W_PIECES) {
        bool there = k + d < l.to;
#pragma unroll
        for (int i = 0; i < Weights<BITS>::PIECES; i++)
            if (N == 8) copy_async_if(w_at<S>(slot, d, i), w + i * WARP, there, l.leaving);
            else copy_async_if(w_at<S>(slot, d, i), w + i * WARP, there);
        if (BITS < 16)
            copy_async_if(w_at<S>(slot, d, Weights<BITS>::PIECES), scales_of<BITS>(l.scales, k + d),
                          k + d < l.scales.to);
    }
}

// Of codes only the rows that there are, which may be as many bytes as the codes.
template <int BITS, int N>
__device__ __forceinline__ void fetch_activations(SharedAt slot, const Lane &l, int k) {
    typedef Slot<BITS, N> S;
    const uint4 *block = l.x + k * X_PIECES;
#pragma unroll
    for (int b = 0; b < N / 8; b++, block += l.x_step) {
        const uint4 *x = block;
#pragma unroll
        for (int d = 0; d < S::STAGES; d++, x += X_PIECES) {
            bool there = k + d < l.to && (BITS == 16 ? b < l.blocks : b * 8 < l.rows);
#pragma unroll
            for (int i = 0; i < X_PIECES / WARP; i++)
                copy_async_if(x_at<S>(slot, d, b, i), x + i * WARP, there);
        }
    }
}

// Word i of a stage's scales is that of rows i and i + 8, word 8 + i that of the second group. Full ones are
// as lanes use them.
template <int BITS, int N>
__device__ __forceinline__ void find_scales(Lane *l, const Product &p, NarrowShared<BITS, N> *sm,
                                            SharedAt slot, int tile) {
    typedef Slot<BITS, N> S;
    const int piece = sizeof(uint4);
    int lane = warp_lane(), word = lane % 16, stage = lane / 16;
    int from_slot = (int)(w_at<S>(slot, stage, Weights<BITS>::PIECES) - slot);
    l->scales = scale_feed<BITS>(p, tile, l->to);
    l->second = held(l->scales.two ? 8 * piece : 0);
    if (ScaleRun<BITS>::FULL) l->word = held(lane / 4 * piece - lane * piece);
    if (ScaleRun<BITS>::FULL) return;
    l->word = held(from_slot + word * (int)sizeof(uint32_t) - lane * piece);
    l->words_to = held(stage < S::STAGES && (word < 8 || l->scales.two) ? l->to - stage : 0);
    l->prepared = shared_at(&sm->scales[warp_number()][lane / 4]);
    l->prepares =
        (uint4 *)((char *)sm->scales + held(warp_number() * (int)sizeof sm->scales[0] + lane * piece));
}

// Makes a slot's scales what lanes need: a word by each, not all by all.
template <int BITS> __device__ __forceinline__ void prepare_scales(SharedAt slot, const Lane &l, int k) {
    if (k < l.words_to) {
        Scales<BITS> own;
        uint4 piece;
        static_assert(sizeof own == sizeof piece, "one store");
        take_scales(&own, shared_word(slot + l.word));
        memcpy(&piece, &own, sizeof own);
        *l.prepares = piece;
    }
    __syncwarp();
}

// Operands of half a stage, of values and of codes.
template <int BITS, int N> struct Operands {
    uint4 piece[Weights<BITS>::PIECES];
    Scales<BITS> scales;
    __device__ __forceinline__ void load(SharedAt slot, int d, int half, const Lane &l, uint32_t a[2][4]) {
        typedef Slot<BITS, N> S;
#pragma unroll
        for (int i = 0; i < Weights<BITS>::PIECES && half == 0; i++)
            piece[i] = shared_piece(w_at<S>(slot, d, i));
        SharedAt at = ScaleRun<BITS>::FULL ? w_at<S>(slot, d, Weights<BITS>::PIECES) + l.word
                                           : l.prepared + d * 16 * (int)sizeof(uint4);
        uint4 of_rows = shared_piece(at + (half ? l.second : 0));
        memcpy(&scales, &of_rows, sizeof scales);
#pragma unroll
        for (int i = 0; i < 2; i++) decode(scales, piece, half * 2 + i, a[i]);
    }
};
template <int N> struct Operands<16, N> {
    __device__ __forceinline__ void load(SharedAt slot, int d, int half, const Lane &, uint32_t a[2][4]) {
#pragma unroll
        for (int i = 0; i < 2; i++) load_matrices_at(a[i], w_at<Slot<16, N>>(slot, d, half * 2 + i));
    }
};

// Multiplies stage d of a slot.
template <Dtype FORMAT, int BITS, int N>
__device__ __forceinline__ void multiply(SharedAt slot, int d, const Lane &l, float sum[N / 8][4]) {
    Operands<BITS, N> operands;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t a[2][4];
        operands.load(slot, d, half, l, a);
#pragma unroll
        for (int n = 0; n < N / 8; n++) {
            if (n >= l.blocks) break;
            uint32_t x[4];
            load_matrices_at(x, x_at<Slot<BITS, N>>(slot, d, n, half));
#pragma unroll
            for (int i = 0; i < 2; i++) mma_16816<FORMAT>(sum[n], a[i], x[i * 2], x[i * 2 + 1]);
        }
    }
}

// Stores a warp's sums (N, HEIGHT): of codes those of absent rows are of what was never fetched. + 4: no two
// lanes of a store in one bank.
template <int BITS, int N> __device__ __forceinline__ void keep(float *at, float sum[N / 8][4], int rows) {
    const int row = HEIGHT + 4;
    int column = warp_lane() % 4 * 2;
    at += column * row + warp_lane() / 4;
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (BITS == 16 || n * 8 + column + i % 2 < rows)
                at[(n * 8 + i % 2) * row + i / 2 * 8] = sum[n][i];
}

template <Dtype FORMAT, int BITS, int N>
__global__ void __launch_bounds__(THREADS) product_narrow(Product p) {
    typedef NarrowShared<BITS, N> Shared;
    typedef Slot<BITS, N> Own;
    static_assert(N * (HEIGHT + 4) * sizeof(float) <= sizeof(Own) * Shared::SLOTS, "sums must fit");
    SHARED(Shared, sm);
    const int at_once = N / 8, each = Own::STAGES, ahead_by = Shared::SLOTS - 1, size = sizeof(Own);
    int splits = p.w.splits, warp = warp_number(), stages = p.w.pitch / K_STAGE;
    int part = warp % splits, from = stages * part / splits, to = stages * (part + 1) / splits;
    int tiles = WARPS / splits, first_tile = (int)blockIdx.x * tiles, pairs = tiles * HEIGHT / 2;
    SharedAt slot = shared_at((const uint4 *)sm->slot[warp] + warp_lane());
    int tile = first_tile + warp / splits;
    Lane l = {NULL, NULL, {}, 0, to, 0, 0, 0, 0, slot, 0, NULL, 0};
    if (N == 8) l.leaving = first_to_leave();
    l.w = held(first_weights(p) + (size_t)tile * weight_pieces<BITS>(p) + warp_lane());
    if (BITS < 16) find_scales<BITS, N>(&l, p, sm, slot, tile);
    bool early = BEGINS_EARLY && !p.slices; // an expert may have no rows
    for (int s = 0; s < ahead_by && early; s++) fetch_weights<BITS, N>(slot + s * size, l, from + s * each);
    wait_for_launches();
    int first_row = (int)blockIdx.y * N, rows = p.rows->count - first_row, first_node = p.rows->first;
    if (p.slices) {
        rows = p.slices[blockIdx.z].count - first_row;
        first_row += p.slices[blockIdx.z].first;
    }
    if (rows <= 0) {
        copy_commit();
        copy_wait<0>();
        return;
    }
    if (rows > N) rows = N;
    l.rows = held(rows - warp_lane() % 8);
    l.blocks = (rows + 7) / 8;
    l.x_step = (int)activation_pieces(p);
    l.x = held((const uint4 *)p.x.data + (size_t)(first_row / 8) * (size_t)l.x_step + warp_lane());
    float sum[N / 8][4];
#pragma unroll
    for (int i = 0; i < N / 2; i++) sum[i / 4][i % 4] = 0;
    for (int s = 0; s < ahead_by; s++) {
        if (!early) fetch_weights<BITS, N>(slot + s * size, l, from + s * each);
        fetch_activations<BITS, N>(slot + s * size, l, from + s * each);
        copy_commit();
    }
    Share<at_once> share =
        begin_share<at_once>(p, first_tile * HEIGHT, pairs, first_row, rows, first_node, (int)blockDim.x);
    int now = 0, ahead = ahead_by * size; // where the slots of k and of ahead_by slots later are
    for (int k = from; k < to; k += each) {
        copy_wait<ahead_by - 1>();
        __syncwarp();
        int later = k + ahead_by * each;
        if (later < to) {
            fetch_weights<BITS, N>(slot + ahead, l, later);
            fetch_activations<BITS, N>(slot + ahead, l, later);
        } else let_next_begin();
        copy_commit();
        if (Shared::PREPARES) prepare_scales<BITS == 8 ? 8 : 4>(slot + now, l, k);
#pragma unroll
        for (int d = 0; d < each && k + d < to; d++) multiply<FORMAT, BITS, N>(slot + now, d, l, sum);
        ahead = now;
        now = now == ahead_by * size ? 0 : now + size;
    }
    ask_for_next(p.w.next);
    copy_wait<0>();
    __syncwarp();
    keep<BITS, N>((float *)sm->slot[warp], sum, rows);
    __syncthreads();
    int column = (int)threadIdx.x % pairs * 2;
    Sums s = {(const float *)sm->slot[column / HEIGHT * splits] + column % HEIGHT, HEIGHT + 4,
              (int)(Shared::SLOTS * sizeof(Own) / sizeof(float)), splits};
    put_share(share, p, s, rows, first_node);
}

// More than N rows, where wgmma can't be used, are several products in one launch.
template <Dtype FORMAT, int BITS, int N> static void launch(const Product *p, int most, void *stream) {
    static_assert(sizeof(NarrowShared<BITS, N>) <= 99 << 10, "it must fit the smallest cards");
    int rows = HEIGHT * WARPS / p->w.splits;
    dim3 grid((unsigned)((p->w.rows + rows - 1) / rows), (unsigned)((most + N - 1) / N),
              p->slices ? (unsigned)p->w.experts : 1);
    LAUNCH_EARLY((product_narrow<FORMAT, BITS, N>), grid, THREADS, sizeof(NarrowShared<BITS, N>), stream,
                 p->w.data, *p);
}

template <Dtype FORMAT, int BITS> static void launch_rows(const Product *p, int most, void *stream) {
    if (most <= 8) launch<FORMAT, BITS, 8>(p, most, stream);
    else launch<FORMAT, BITS, NARROW_ROWS>(p, most, stream);
}

void gpu_product_narrow(const Product *p, int most, void *stream) {
    int form = matrix_form(&p->w);
    if (form == FULL_8) launch_rows<DTYPE_BF16, FULL_8>(p, most, stream);
    else if (form == FULL_4) launch_rows<DTYPE_BF16, FULL_4>(p, most, stream);
    else if (form == 8) launch_rows<DTYPE_BF16, 8>(p, most, stream);
    else if (form == 4) launch_rows<DTYPE_BF16, 4>(p, most, stream);
    else if (p->w.dtype == DTYPE_F16) launch_rows<DTYPE_F16, 16>(p, most, stream);
    else launch_rows<DTYPE_BF16, 16>(p, most, stream);
}
