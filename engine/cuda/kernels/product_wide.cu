// Products above 16 rows on 9.0, of bf16 by bf16, of f16 by f16 and of codes (codes.cuh) by bf16: those of
// product.cu, bit for bit.
//
// A block has 64 rows of weights for each of its GROUPS warpgroups, and up to N of activations: 256, so that
// weights pass once for as many rows. It goes through K in stages of 64 columns, copied in whole pieces whose
// bytes barriers count, as many stages ahead as fit. A warpgroup begins a stage while the one before is
// still being multiplied, and frees that one's place afterwards; one warp then fetches weights to there, and
// another one activations. (Warps that do nothing but fetch would cost registers that the sums need.)
//
//      full: a stage's bytes have come      empty: all warps are done with it
//
// With many rows, traffic from L2 is the bound (reckoned): a tile of 128 rows of weights by 256 fetches two
// bytes of activations for each byte of weights, one of 192 by 256 fetches 1.3. So 192 are taken unless they
// need more rounds of the processors.
//
// In memory, 16 rows of weights by 64 columns are one piece of 2 KB in the order of weight_at: 8x8 matrices
// of 8 columns at a time, of the upper and of the lower 8 rows. Two warpgroups share 8 such pieces: one has
// all upper halves, the other all lower ones. So the matrices of each are equally far apart, as wgmma asks.
// Four pieces of a warpgroup by itself are interleaved, by copies of 256 bytes.
//
// Codes are decoded into the registers that wgmma takes, each once for all rows: a warp has 16 rows, and
// decodes half a stage while the half in front of it is being multiplied.
#include "engine/cuda/kernels/product.cuh"
#include "engine/cuda/kernels/warpgroups.cuh"

#include <type_traits>

enum {
    PIECE = 2048,   // bytes of 16 rows of weights in 64 columns
    BLOCK_X = 1024, // bytes of 8 rows of activations in 64 columns
    GROUP = 128     // threads
};

// A stage's weights; of codes with the scales of a stage, of one group or of two.
template <int BITS> struct WideWeights {
    unsigned char codes[8][BITS / 4 * 512]; // of 16 rows
    unsigned char scales[8][2 * ScaleRun<BITS>::PIECES * 16];
};
template <int N_, int GROUPS_, int STAGES_, int BLOCKS_, int BITS_ = 16> struct Wide {
    enum {
        BITS = BITS_,
        N = N_,
        GROUPS = GROUPS_,
        STAGES = STAGES_,
        BLOCKS = BLOCKS_, // of a processor
        TILE = 64 * GROUPS,
        PAIRED = GROUPS / 2 * 8, // pieces that two warpgroups share
        CODES = BITS / 4 * 512,  // bytes of 16 rows in 64 columns
        THREADS = GROUPS * GROUP,
        WARPS = THREADS / WARP,
        FETCHES_W = 0, // the warp that also fetches weights, and the one that also fetches activations
        FETCHES_X = 4,
        ROW = TILE + 4 // of sums; + 4: no two lanes in one bank
    };
    typedef unsigned char Values[GROUPS * 4 * PIECE];
    struct Stage {
        typename std::conditional<BITS == 16, Values, WideWeights<BITS>>::type w;
        unsigned char x[N / 8 * BLOCK_X];
    };
    struct Shared {
        Stage stage[STAGES];
        Barrier full[STAGES], empty[STAGES];
    };
    static_assert(N * ROW * sizeof(float) <= sizeof(Stage) * STAGES, "sums must fit");
    static_assert(BITS == 16 || GROUPS == 2, "a tile of codes has 8 pieces");
};

#if HAS_WARPGROUPS
// The work of one block.
struct Task {
    int from, to;          // stages of K
    int pieces, blocks;    // of a stage's weights and activations
    const char *w, *x;     // of stage 0
    size_t w_step, x_step; // bytes from one piece, or block, to the next
    // Of codes: the scales of a tile of 16 rows, and bytes from one's to the next's; of a stage. Stage k has
    // group 2k >> rare.
    const char *scale;
    size_t scale_step;
    int scales, rare;
};

// The weights of stage k, and its activations, by a warp each.
template <class C>
__device__ __forceinline__ void fetch_weights(typename C::Stage *s, Barrier *full, const Task &t, int k) {
    int lane = warp_lane();
    if constexpr (C::BITS < 16) { // memory has all pieces of a tile
        const int run = ScaleRun<C::BITS>::PIECES * 16;
        size_t piece = (size_t)(lane % 8);
        if (lane == 0) barrier_announce(full, 8 * (C::CODES + t.scales));
        __syncwarp();
        if (lane < 8)
            copy_bulk(s->w.codes[piece], t.w + piece * t.w_step + (size_t)k * C::CODES, C::CODES, full);
        else if (lane < 16)
            copy_bulk(s->w.scales[piece], t.scale + piece * t.scale_step + (size_t)(2 * k >> t.rare) * run,
                      t.scales, full);
    } else {
        const char *from = t.w + (size_t)k * PIECE;
        if (lane == 0) barrier_announce(full, t.pieces * PIECE);
        __syncwarp();
        if (lane < C::PAIRED && lane < t.pieces)
            copy_bulk(s->w + lane * PIECE, from + (size_t)lane * t.w_step, PIECE, full);
        if (C::GROUPS % 2 != 0 && C::PAIRED + lane % 4 < t.pieces) { // 8 columns of a piece
            from += (size_t)(C::PAIRED + lane % 4) * t.w_step + (size_t)(lane / 4 * 256);
            copy_bulk(s->w + C::PAIRED * PIECE + lane * 256, from, 256, full);
        }
    }
    __syncwarp();
}
template <class C>
__device__ __forceinline__ void fetch_activations(typename C::Stage *s, Barrier *full, const Task &t, int k) {
    int lane = warp_lane();
    const char *from = t.x + (size_t)lane * t.x_step + (size_t)k * BLOCK_X;
    if (lane == 0) barrier_announce(full, t.blocks * BLOCK_X);
    __syncwarp();
    if (lane < t.blocks) copy_bulk(s->x + lane * BLOCK_X, from, BLOCK_X, full);
    __syncwarp();
}

// A warpgroup's part of the tile: where its matrices are in a stage's weights, and its rows.
template <class C> struct Half {
    int at, k, rows; // bytes: to the first matrix, from 8 columns to the next, from 8 rows to the next
    int row, step;   // of the tile: a lane's first row, and the one 8 further on in its warpgroup
};
template <class C> __device__ __forceinline__ Half<C> half_of() {
    int group = warp_number() / 4, two = warp_number() % 4 * 2, lane = warp_lane() / 4;
    bool own = C::GROUPS % 2 != 0 && group == C::GROUPS - 1;
    if (C::BITS < 16) return {0, 0, 0, warp_number() * 16 + lane, 8};
    if (own) return {C::PAIRED * PIECE, 4 * 256, 128, group * 64 + two * 8 + lane, 8};
    return {group / 2 * 8 * PIECE + group % 2 * 128, 256, PIECE,
            group / 2 * 128 + two * 16 + group % 2 * 8 + lane, 16};
}

// Frees a stage's place. The two warps that fetch wait until all have, and fetch stage k into it.
template <class C>
__device__ __forceinline__ void refill(typename C::Shared *sm, const Task &t, int slot, int phase, int k) {
    int warp = warp_number();
    if (k >= t.to) {
        let_next_begin();
        return;
    }
    if (C::BITS < 16) __syncwarp(); // all lanes have read its codes
    if (warp_lane() == 0) barrier_arrive(&sm->empty[slot]);
    if (warp != C::FETCHES_W && warp != C::FETCHES_X) return;
    barrier_wait(&sm->empty[slot], phase);
    if (warp == C::FETCHES_W) fetch_weights<C>(&sm->stage[slot], &sm->full[slot], t, k);
    else fetch_activations<C>(&sm->stage[slot], &sm->full[slot], t, k);
}

// Multiplies all stages into the sums of WIDTH columns. Columns without a row hold garbage, which nothing
// keeps.
template <Dtype FORMAT, int WIDTH, class C>
__device__ __forceinline__ void multiply(typename C::Shared *sm, const Task &t, const Half<C> &h,
                                         float (*sum)[4]) {
    int slot = 0, phase = 0, before = 0;
    Operand w0 = operand(sm->stage[0].w + h.at, h.k, h.rows), x0 = operand(sm->stage[0].x, 128, BLOCK_X);
    for (int k = t.from; k < t.to; k++) {
        Operand w = operand_at(w0, slot * (int)sizeof(typename C::Stage)),
                x = operand_at(x0, slot * (int)sizeof(typename C::Stage));
        barrier_wait(&sm->full[slot], phase);
        groups_begin();
#pragma unroll
        for (int i = 0; i < K_STAGE / 16; i++)
            group_mma<FORMAT, WIDTH>(sum, operand_at(w, i * 2 * h.k), operand_at(x, i * 256));
        group_end();
        groups_wait<1>();
        if (k > t.from) refill<C>(sm, t, before, before < slot ? phase : phase ^ 1, k - 1 + C::STAGES);
        before = slot;
        if (++slot == C::STAGES) slot = 0, phase ^= 1;
    }
    groups_end<WIDTH>(sum);
}

// A lane's operands of half a stage of codes, `at` bytes behind the first stage. The second half of a stage
// follows its first.
template <class C> struct Decoder {
    enum { PIECES = Weights<C::BITS>::PIECES, EACH = ScaleRun<C::BITS>::EACH };
    SharedAt codes, of_rows; // of the first stage, and its scales
    int two;                 // groups in a stage
    uint4 piece[PIECES];
    Scales<C::BITS> scales;
    __device__ __forceinline__ void begin(const typename C::Stage *s, const Task &t) {
        int lane = warp_lane(), tile = warp_number();
        codes = shared_at(s->w.codes[tile] + lane * 16);
        of_rows = shared_at(s->w.scales[tile] + lane / 4 * EACH);
        two = held((int)(t.rare == 0));
    }
    __device__ __forceinline__ void take(int at, int half, uint32_t a[2][4]) {
        int i = PIECES == 2 ? half : 0;
        if (half == 0 || PIECES == 2) piece[i] = shared_piece(codes + at + i * 16 * WARP);
        if (half == 0 || two) load_scales(&scales, of_rows + at + half * 8 * EACH);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            decode(scales, piece, half * 2 + k, a[k]);
#pragma unroll
            for (int r = 0; r < 4; r++) a[k][r] = held(a[k][r]); // now, not when they are multiplied
        }
    }
};
template <int WIDTH>
__device__ __forceinline__ void multiply_half(const uint32_t (*a)[4], Operand x, int half, float (*sum)[4]) {
    groups_begin();
#pragma unroll
    for (int i = 0; i < 2; i++) group_mma_held<WIDTH>(sum, a[i], operand_at(x, (half * 2 + i) * 256));
    group_end();
}

// The same of codes.
template <int WIDTH, class C>
__device__ __forceinline__ void multiply_codes(typename C::Shared *sm, const Task &t, float (*sum)[4]) {
    const int size = sizeof(typename C::Stage);
    int slot = 0, phase = 0, before = 0;
    uint32_t first[2][4], second[2][4];
    Operand x0 = operand(sm->stage[0].x, 128, BLOCK_X);
    Decoder<C> d;
    d.begin(&sm->stage[0], t);
    barrier_wait(&sm->full[0], 0);
    d.take(0, 0, first);
    for (int k = t.from; k < t.to; k++) {
        Operand x = operand_at(x0, slot * size);
        multiply_half<WIDTH>(first, x, 0, sum);
        d.take(slot * size, 1, second);
        // Branches behind the decoding: ptxas moves it behind a wait that follows at once.
        if (k > t.from) refill<C>(sm, t, before, before < slot ? phase : phase ^ 1, k - 1 + C::STAGES);
        groups_end_held(first, 2);
        multiply_half<WIDTH>(second, x, 1, sum);
        before = slot;
        if (++slot == C::STAGES) slot = 0, phase ^= 1;
        if (k + 1 < t.to) {
            barrier_wait(&sm->full[slot], phase);
            d.take(slot * size, 0, first);
        }
        groups_end_held(second, 2);
    }
    groups_end<WIDTH>(sum);
}

// The fewest columns that hold the rows.
template <Dtype FORMAT, class C>
__device__ __forceinline__ void multiply_rows(typename C::Shared *sm, const Task &t, const Half<C> &h,
                                              float (*sum)[4]) {
    const int half = C::N == 64 ? 32 : C::N == 128 ? 96 : 192;
    const bool more = C::N == 256 && C::GROUPS == 2;
    if constexpr (C::BITS < 16) {
        if (t.blocks <= half / 8) multiply_codes<half, C>(sm, t, sum);
        else multiply_codes<C::N, C>(sm, t, sum);
    } else if (more && t.blocks <= 20) multiply<FORMAT, more ? 160 : half, C>(sm, t, h, sum);
    else if (t.blocks <= half / 8) multiply<FORMAT, half, C>(sm, t, h, sum);
    else multiply<FORMAT, C::N, C>(sm, t, h, sum);
}

// Stores sums, row after row `row` elements apart: in the block's OWN shared memory, or as a part in global
// memory, where the tile has `outputs` more and `rows` are kept.
template <class C, bool OWN>
__device__ __forceinline__ void keep(float *to, int row, const Task &t, int outputs, int rows,
                                     const Half<C> &h, float (*sum)[4]) {
#pragma unroll
    for (int n = 0; n < C::N / 8; n++) {
        int column = n * 8 + warp_lane() % 4 * 2;
        if (n >= t.blocks) continue;
        float *at = to + (size_t)column * (size_t)row + (size_t)h.row;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int m = i / 2 * h.step, next = i % 2;
            if (OWN || (column + next < rows && h.row + m < outputs)) at[next * row + m] = sum[n][i];
        }
    }
}
#endif

template <Dtype FORMAT, class C>
__global__ void __launch_bounds__(C::THREADS, C::BLOCKS) product_wide(Product p, int panels, int part_rows) {
#if HAS_WARPGROUPS
    const int at_once = 4;
    SHARED(typename C::Shared, sm);
    int all = p.w.pitch / K_STAGE, m = (p.w.rows + 15) / 16 * 16;
    int first = (int)blockIdx.x % panels * C::N, split = (int)blockIdx.x / panels;
    int first_output = (int)blockIdx.y * C::TILE, pieces = (m - first_output) / 16;
    size_t w_step = (size_t)all * (C::BITS < 16 ? (int)C::CODES : (int)PIECE),
           tile = (size_t)(first_output / 16);
    Task t = {all * split / p.w.splits,
              all * (split + 1) / p.w.splits,
              pieces < C::TILE / 16 ? pieces : C::TILE / 16,
              0,
              (const char *)p.w.data + tile * w_step,
              (const char *)p.x.data + (size_t)(first / 8) * (size_t)p.x.pitch * 16,
              w_step,
              (size_t)p.x.pitch * 16,
              NULL,
              0,
              0,
              0};
    if (C::BITS < 16) {
        const int form = C::BITS < 16 ? (int)C::BITS : 4;
        t.scale_step = scale_pieces<form>(p) * 16;
        t.scale = (const char *)p.w.data + matrix_code_bytes(&p.w) + tile * t.scale_step;
        t.scales = (p.w.group < K_STAGE ? 2 : 1) * ScaleRun<form>::PIECES * 16;
        t.rare = p.w.group / K_STAGE;
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < C::STAGES; i++) {
            barrier_open(&sm->full[i], 2);
            barrier_open(&sm->empty[i], C::WARPS);
        }
        barriers_opened();
    }
    __syncthreads();
    int begun = t.to - t.from < C::STAGES ? t.to - t.from : (int)C::STAGES;
    for (int i = 0; i < begun && warp_number() == C::FETCHES_W; i++)
        fetch_weights<C>(&sm->stage[i], &sm->full[i], t, t.from + i);
    wait_for_launches();
    int rows = p.rows->count - first, first_node = p.rows->first;
    if (rows <= 0) {
        // Copies may not arrive after the block's end.
        for (int i = 0; i < begun && warp_number() == C::FETCHES_W; i++) {
            if (warp_lane() == 0) barrier_announce(&sm->full[i], 0);
            barrier_wait(&sm->full[i], 0);
        }
        return;
    }
    rows = rows < C::N ? rows : (int)C::N;
    t.blocks = (rows + 7) / 8;
    for (int i = 0; i < begun && warp_number() == C::FETCHES_X; i++)
        fetch_activations<C>(&sm->stage[i], &sm->full[i], t, t.from + i);
    float sum[C::N / 8][4];
#pragma unroll
    for (int i = 0; i < C::N / 2; i++) sum[i / 4][i % 4] = 0;
    Half<C> h = half_of<C>();
    multiply_rows<FORMAT, C>(sm, t, h, sum);
    ask_for_next(p.w.next);
    if (p.w.splits > 1) {
        size_t part = (size_t)split * (size_t)part_rows + (size_t)first;
        keep<C, false>(p.parts + part * (size_t)m + (size_t)first_output, m, t, m - first_output, rows, h,
                       sum);
        return;
    }
    float *own = (float *)sm->stage;
    __syncthreads();
    keep<C, true>(own, C::ROW, t, 0, 0, h, sum);
    Share<at_once> share =
        begin_share<at_once>(p, first_output, C::TILE / 2, first, rows, first_node, C::THREADS);
    __syncthreads();
    put_share(share, p, {own + (int)threadIdx.x % (C::TILE / 2) * 2, C::ROW, 0, 1}, rows, first_node);
#else
    (void)p, (void)panels, (void)part_rows;
#endif
}

template <Dtype FORMAT, class C> static void launch(const Product *p, int most, void *stream) {
    int panels = (most + C::N - 1) / C::N;
    // Panels of the same weights are neighbours: all but one read them from L2.
    dim3 grid((unsigned)(panels * p->w.splits), (unsigned)((p->w.rows + C::TILE - 1) / C::TILE));
    LAUNCH_EARLY((product_wide<FORMAT, C>), grid, C::THREADS, sizeof(typename C::Shared), stream, p->w.data,
                 *p, panels, product_panels(most) * PANEL_ROWS);
}

// Rounds of the processors that tiles of so many warpgroups take, in warpgroups: time, if all are busy.
static int rounds(const Product *p, int groups, int panels, const GpuFacts *card) {
    int tiles = (p->w.rows + 64 * groups - 1) / (64 * groups) * p->w.splits * panels;
    return (tiles + card->multiprocessors - 1) / card->multiprocessors * groups;
}
static Cutting cutting(const Product *p, int most, const GpuFacts *card) {
    int panels = (most + 255) / 256;
    if (most <= 128) return rounds(p, 2, 1, card) > 2 ? CUT_WIDE_128 : CUT_WIDE_128_DEEP;
    return rounds(p, 3, panels, card) <= rounds(p, 2, panels, card) ? CUT_WIDE_192 : CUT_WIDE_128_DEEP;
}

// f16 has one shape for each width until a card has shown that more of them pay.
template <Dtype FORMAT> static void launch_rows(const Product *p, int most, Cutting cut, void *stream) {
    if constexpr (FORMAT == DTYPE_F16) {
        if (most <= 64) launch<FORMAT, Wide<64, 2, 8, 1>>(p, most, stream);
        else if (most <= 128) launch<FORMAT, Wide<128, 2, 6, 1>>(p, most, stream);
        else launch<FORMAT, Wide<256, 2, 4, 1>>(p, most, stream);
    } else if (most <= 64) {
        if (cut == CUT_WIDE_192) launch<FORMAT, Wide<64, 3, 6, 1>>(p, most, stream);
        else if (cut == CUT_WIDE_128) launch<FORMAT, Wide<64, 2, 4, 2>>(p, most, stream);
        else launch<FORMAT, Wide<64, 2, 8, 1>>(p, most, stream);
    } else if (most <= 128) {
        if (cut == CUT_WIDE_192) launch<FORMAT, Wide<128, 3, 5, 1>>(p, most, stream);
        else if (cut == CUT_WIDE_128) launch<FORMAT, Wide<128, 2, 3, 2>>(p, most, stream);
        else launch<FORMAT, Wide<128, 2, 6, 1>>(p, most, stream);
    } else {
        if (cut == CUT_WIDE_192) launch<FORMAT, Wide<256, 3, 4, 1>>(p, most, stream);
        else launch<FORMAT, Wide<256, 2, 4, 1>>(p, most, stream);
    }
    (void)cut;
}

// Codes have one shape for each width, too: up to 128 rows two blocks share a processor.
template <int BITS> static void launch_codes(const Product *p, int most, void *stream) {
    if (most <= 64) launch<DTYPE_BF16, Wide<64, 2, BITS / 4 == 1 ? 8 : 6, 2, BITS>>(p, most, stream);
    else if (most <= 128) launch<DTYPE_BF16, Wide<128, 2, BITS / 4 == 1 ? 5 : 4, 2, BITS>>(p, most, stream);
    else launch<DTYPE_BF16, Wide<256, 2, 5, 1, BITS>>(p, most, stream);
}

void gpu_product_wide(const Product *p, int most, Cutting cut, const GpuFacts *card, void *stream) {
    int form = matrix_form(&p->w);
    if (form == FULL_8) return launch_codes<FULL_8>(p, most, stream);
    if (form == FULL_4) return launch_codes<FULL_4>(p, most, stream);
    if (form == 8) return launch_codes<8>(p, most, stream);
    if (form == 4) return launch_codes<4>(p, most, stream);
    if (cut == CUT_WIDE) cut = cutting(p, most, card);
    if (p->w.dtype == DTYPE_F16) launch_rows<DTYPE_F16>(p, most, cut, stream);
    else launch_rows<DTYPE_BF16>(p, most, cut, stream);
}
