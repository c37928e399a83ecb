// Attention of quads (kernels.h) on tensor cores: a block of the grid takes a group of spans, of up to four
// tiles and some heads of one key head. Each warp has the 16 queries of one tile, and all share the keys and
// values, which come one span at a time:
//
//      |-- scores of span s, weights --|-- sums of span s --|-- scores of span s + 1, weights --|-- ..
//      |-- V of span s --------------- |-- K of span s + 1 -|-- V of span s + 1 ----------------|-- ..
//
// Scores, weights and sums of a span are attention.cu's, bit for bit: each element is the same chain of mma
// over the span's blocks. The state of the group stays in registers and takes each span by the same fold as a
// merge of parts (attention.cuh). A warp has 64 multiplications of 16 queries, 16 positions and 16 dimensions
// for each score's and value's 128 dimensions, one ldmatrix for two mma.
#include "engine/cuda/kernels/attention_tile.cuh"

enum { WARPS = QUAD_TILES, BLOCKS = SPAN / BLOCK };

// A warp's work. It's in shared memory: the loop needs the registers.
struct QuadJob {
    Job job;         // as for the tile alone, but `lowest` is the quad's; part negative: it makes none
    Items items;     // of the tile
    int first, last; // spans that the tile sees
    int from, to;    // the block's
    int chain;       // turns of `own`, from the context's block on
};

template <int DIM> struct QuadShared {
    Rows16<DIM> k[BLOCKS], v[BLOCKS], q[WARPS];
    QuadJob job[WARPS];
    int is_last[WARPS];
};

// The lowest positions that the tile of this warp sees, and any of the quad's `count` tiles from t on.
struct Lowest {
    int own, all;
};
__device__ __forceinline__ Lowest find_lowest(const Attention &a, const Tile *t, int count) {
    int x[QUAD_TILES / 2], lane = warp_lane();
#pragma unroll
    for (int i = 0; i < QUAD_TILES / 2; i++) {
        int number = lane / TILE_NODES + i * 2;
        const Tile *tile = t + (number < count ? number : count - 1);
        x[i] = lane % TILE_NODES < tile->nodes ? tile->position[lane % TILE_NODES] : INT32_MAX;
#pragma unroll
        for (int step = TILE_NODES / 2; step; step /= 2) {
            int other = __shfl_xor_sync(ALL_LANES, x[i], step);
            x[i] = other < x[i] ? other : x[i];
        }
        int first = first_seen(a, x[i]);
        x[i] = first > tile->lowest ? first : tile->lowest;
    }
    int own = __shfl_sync(ALL_LANES, warp_number() < 2 ? x[0] : x[1], warp_number() % 2 * TILE_NODES),
        least = x[0] < x[1] ? x[0] : x[1], other = __shfl_xor_sync(ALL_LANES, least, TILE_NODES);
    return {own, least < other ? least : other};
}
static_assert(QUAD_TILES == 4 && TILE_NODES == 16, "a warp looks at two pairs of tiles");

// Returns false if there's nothing to do.
__device__ __forceinline__ bool find_quad(const Attention &a, const Split &s, QuadJob *q) {
    const Tile *tiles = step_tiles(a.step);
    int number = s.first_tile / QUAD_TILES + (int)blockIdx.z, warp = warp_number();
    int first = tiles[number].quad, count = tiles[number].quad_tiles;
    if (number >= a.step->quads) return false;
    const Tile *t = tiles + first + (warp < count ? warp : count - 1), *last = tiles + first + count - 1;
    Lowest lowest = find_lowest(a, tiles + first, count);
    int group = lowest.all / SPAN / GROUP_SPANS + (int)blockIdx.x, wide = t->wide, begin = lowest.all / SPAN;
    q->from = group * GROUP_SPANS > begin ? group * GROUP_SPANS : begin;
    q->to = (group + 1) * GROUP_SPANS < wide ? (group + 1) * GROUP_SPANS : wide;
    if (q->from >= q->to) return false;
    q->items = items_of(lowest.own, t->highest, wide);
    q->first = lowest.own / SPAN;
    q->last = t->highest / SPAN;
    q->chain = last->chain;
    Job *j = &q->job;
    find_heads(a, s, t, j);
    j->tile = t;
    j->nodes = warp < count ? t->nodes : 0;
    j->lowest = lowest.all;
    j->context = t->context;
    j->first = t->first;
    j->own = step_turns(a.step) + last->turn[0];
    j->part = group - q->items.first_group;
    j->parts = q->items.groups + q->items.spans;
    if (warp >= count || j->part >= q->items.groups) j->part = -1;
    return true;
}

// Starts to copy a warp's share of a span: two of its blocks.
template <int DIM>
__device__ __forceinline__ void fetch_span(const Attention &a, const QuadJob &q, int span, const void *cache,
                                           const void *step, Rows16<DIM> to[BLOCKS]) {
    const Job &j = q.job;
    int listed = block_of(j.context);
#pragma unroll
    for (int b = 0; b < BLOCKS; b += WARPS) {
        int block = b + warp_number(), base = span * SPAN + block * BLOCK, turn = (base - listed) / BLOCK;
        uint2 keys = {~0u, ~0u};
        if (base >= listed && turn < q.chain) keys = keys_of(j.own + turn);
        fetch(a, place_rows(a, j, base, keys), j.kv, cache, step, &to[block]);
    }
}

// Starts to copy the queries of the warp's tile.
template <int DIM>
__device__ __forceinline__ void fetch_queries(const Attention &a, const Job &j, const Split &s,
                                              Rows16<DIM> *to) {
    const int pieces = DIM / 8;
    Query query = query_of(j, s, warp_lane() % QUERIES);
    int at = query.there ? j.tile->row[query.node] * a.heads.heads + query.head : -1;
#pragma unroll
    for (int i = 0; i < QUERIES * pieces; i += WARP) {
        int row = (i + warp_lane()) / pieces, d = (i + warp_lane()) % pieces * 8;
        int own = __shfl_sync(ALL_LANES, at, row % QUERIES);
        const uint16_t *from =
            (const uint16_t *)a.q + (size_t)(own < 0 ? 0 : own) * (size_t)a.heads.pitch + d;
        copy_async_some(&to->at[row][d], from, own >= 0 && d < a.heads.pitch ? 16 : 0);
    }
}

// Whether all of a warp's queries see all of a span.
struct Common {
    int first, last;
};
__device__ __forceinline__ Common common_positions(const Mine &m) {
    Common c = {0, INT32_MAX};
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (!m.query[half].there) continue;
        c.first = m.first[half] > c.first ? m.first[half] : c.first;
        c.last = m.last[half] < c.last ? m.last[half] : c.last;
    }
#pragma unroll
    for (int step = 16; step; step /= 2) {
        int first = __shfl_xor_sync(ALL_LANES, c.first, step),
            last = __shfl_xor_sync(ALL_LANES, c.last, step);
        c.first = first > c.first ? first : c.first;
        c.last = last < c.last ? last : c.last;
    }
    return c;
}

// The weights of a span, operand a of each block, and the queries' largest scores.
template <Dtype FORMAT, int DIM>
__device__ __forceinline__ void take_weights(const QuadShared<DIM> *sm, const Split &s, const Common &common,
                                             int span, const uint32_t q[DIM / 16][4], Mine *m,
                                             uint4 weights[BLOCKS]) {
    float score[BLOCKS][2][4];
    m->most[0] = m->most[1] = -INFINITY;
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) take_scores<FORMAT, DIM>(q, &sm->k[b], score[b]);
    if (s.inner != 0) {
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) cap_scores(s, score[b]);
    }
    if (span * SPAN < common.first || span * SPAN + SPAN - 1 > common.last) {
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) mask(*m, m->last, span * SPAN + b * BLOCK, score[b]);
    }
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) take_most(m, score[b]);
    float base[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        m->most[half] = lanes_most(m->most[half] * s.scale);
        base[half] = finite_most(m->most[half]);
    }
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) weights[b] = weights_of<FORMAT>(score[b], base, s.scale);
}

// The state of a warp's queries: of lane 4g + q as the d of mma.
template <int DIM> struct Sums { float most[2], sum[2], x[DIM / 16][2][4]; };

template <Dtype FORMAT>
__device__ __forceinline__ void sum_weights(const uint4 weights[BLOCKS], float to[4]) {
    const uint32_t ones = FORMAT == DTYPE_F16 ? 0x3c003c00u : 0x3f803f80u;
    to[0] = to[1] = to[2] = to[3] = 0;
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        const uint32_t w[4] = {weights[b].x, weights[b].y, weights[b].z, weights[b].w};
        mma_16816<FORMAT>(to, w, ones, ones);
    }
}

// Folds a span into the state: so many sixteens of dimensions at a time that their chains of mma overlap.
template <Dtype FORMAT, int DIM>
__device__ __forceinline__ void take_span(const QuadShared<DIM> *sm, const Mine &m,
                                          const uint4 weights[BLOCKS], Sums<DIM> *state) {
    const int PARTS = DIM / 16, CHUNK = PARTS % 4 == 0 ? 4 : PARTS % 3 == 0 ? 3 : 1;
    int lane = warp_lane(), row = lane / 8 % 2 * 8 + lane % 8, column = lane / 16 * 8;
    Factors f[2] = {factors_of(state->most[0], m.most[0]), factors_of(state->most[1], m.most[1])};
    float total[4];
    sum_weights<FORMAT>(weights, total);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        state->most[half] = f[half].most;
        state->sum[half] = fold_number(f[half], state->sum[half], total[half * 2]);
    }
#pragma unroll
    for (int c = 0; c < PARTS; c += CHUNK) {
        float sum[CHUNK][2][4] = {};
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const uint32_t w[4] = {weights[b].x, weights[b].y, weights[b].z, weights[b].w};
#pragma unroll
            for (int i = 0; i < CHUNK; i++) {
                uint32_t v[4];
                load_matrices_transposed(v, &sm->v[b].at[row][(c + i) * 16 + column]);
                mma_16816<FORMAT>(sum[i][0], w, v[0], v[1]);
                mma_16816<FORMAT>(sum[i][1], w, v[2], v[3]);
            }
        }
#pragma unroll
        for (int i = 0; i < CHUNK * 8; i++) {
            float *x = &state->x[c + i / 8][i / 4 % 2][i % 4];
            *x = fold_number(f[i % 4 / 2], *x, sum[i / 8][i / 4 % 2][i % 4]);
        }
    }
}

template <int DIM>
__device__ __forceinline__ void put_group(const Attention &a, const Job &j, Mine *m, const Sums<DIM> &state,
                                          Part<QUERIES, DIM> *parts) {
    const float total[4] = {state.sum[0], 0, state.sum[1], 0};
    m->most[0] = state.most[0], m->most[1] = state.most[1];
#pragma unroll
    for (int i = 0; i < DIM / 16; i++) {
        if (j.parts == 1) put_end(a, *m, i * 16, state.x[i], total);
        else put_part(*m, i * 16, state.x[i], total, &parts[j.part]);
    }
}

// As comes_last, for each of the quad's tiles.
template <int DIM>
__device__ __forceinline__ void count_parts(const Attention &a, int tile, QuadShared<DIM> *sm) {
    __threadfence();
    __syncthreads();
    int i = (int)threadIdx.x;
    if (i < WARPS) {
        unsigned *done = counter_of(a, tile + i); // the first warp's tile is the first
        int parts = sm->job[i].job.part < 0 ? 0 : sm->job[i].job.parts;
        sm->is_last[i] = parts > 1 && atomicAdd(done, 1u) == (unsigned)parts - 1;
        if (sm->is_last[i]) *done = 0;
    }
    __syncthreads();
    __threadfence();
}

template <int DIM>
__device__ __forceinline__ void merge_tile(const Attention &a, const Job &j, const Split &s,
                                           const Items &items, const Part<QUERIES, DIM> *parts) {
    const int AT_ONCE = 4, ALL = QUERIES * (DIM / 4);
    for (int i = warp_lane(); i < ALL; i += AT_ONCE * WARP) {
        int query[AT_ONCE], d[AT_ONCE];
        State x[AT_ONCE];
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++) {
            int number = i + n * WARP < ALL ? i + n * WARP : i;
            query[n] = number / (DIM / 4);
            if (!query_of(j, s, query[n]).there) query[n] = 0; // no part has it
            d[n] = number % (DIM / 4) * 4;
        }
        merge<AT_ONCE, 4>(parts, items, query, d, x);
#pragma unroll
        for (int n = 0; n < AT_ONCE; n++) {
            Query own = query_of(j, s, (i + n * WARP) / (DIM / 4));
            if (i + n * WARP < ALL && own.there) put_state(a, x[n], d[n], j.tile->row[own.node], own.head);
        }
    }
}

template <Dtype FORMAT, int DIM>
__global__ void __launch_bounds__(WARPS *WARP, 2) attention_quads(Attention a, Split s) {
    typedef QuadShared<DIM> Shared;
    SHARED(Shared, sm);
    let_next_begin();
    wait_for_launches();
    {
        QuadJob found;
        if (!find_quad(a, s, &found)) return;
        if (warp_lane() == 0) sm->job[warp_number()] = found;
    }
    __syncwarp();
    const QuadJob &q = sm->job[warp_number()];
    const Job &j = q.job;
    Rows16<DIM> *own = &sm->q[warp_number()];
    fetch_queries(a, j, s, own);
    fetch_span(a, q, q.from, j.cache_k, a.step_k, sm->k);
    copy_commit();
    fetch_span(a, q, q.from, j.cache_v, a.step_v, sm->v);
    copy_commit();
    Mine m = my_queries(a, j, s);
    const Common common = common_positions(m);
    Sums<DIM> state = {{-INFINITY, -INFINITY}, {0, 0}, {}};
    uint32_t queries[DIM / 16][4];
    copy_wait<1>();
    __syncthreads();
#pragma unroll
    for (int d = 0; d < DIM / 16; d++)
        load_matrices(queries[d], &own->at[warp_lane() % 16][d * 16 + warp_lane() / 16 * 8]);
#pragma unroll 1
    for (int span = q.from; span < q.to; span++) {
        bool sees = j.part >= 0 && span >= q.first && span <= q.last;
        uint4 weights[BLOCKS];
        if (sees) take_weights<FORMAT>(sm, s, common, span, queries, &m, weights);
        copy_wait<0>();
        __syncthreads(); // values are there, and keys have been read
        if (span + 1 < q.to) fetch_span(a, q, span + 1, j.cache_k, a.step_k, sm->k);
        copy_commit();
        if (sees) take_span<FORMAT>(sm, m, weights, &state);
        copy_wait<0>();
        __syncthreads();
        if (span + 1 < q.to) fetch_span(a, q, span + 1, j.cache_v, a.step_v, sm->v);
        copy_commit();
    }
    int tile = (int)(j.tile - step_tiles(a.step));
    Part<QUERIES, DIM> *parts = parts_of<DIM>(a, s, tile - s.first_tile);
    if (j.part >= 0) {
        m = my_queries(a, j, s); // again: in the loop registers are scarce
        put_group(a, j, &m, state, parts);
    }
    count_parts(a, tile, sm);
    if (sm->is_last[warp_number()]) merge_tile(a, j, s, q.items, parts);
}

// 8.6 and 8.9 allow a block 99 KB.
static_assert(sizeof(QuadShared<HEAD_DIM_USUAL>) <= 99 << 10, "a block must fit the smallest cards");

template <Dtype FORMAT, int DIM>
static void launch(const Attention *a, const Split *s, dim3 grid, void *stream) {
    LAUNCH_EARLY((attention_quads<FORMAT, DIM>), grid, WARPS * WARP, sizeof(QuadShared<DIM>), stream, NULL,
                 *a, *s);
}

template <Dtype FORMAT>
static void launch_padded(const Attention *a, const Split *s, dim3 grid, void *stream) {
    switch (padded_dim(a->heads.head_dim)) {
    case 16: launch<FORMAT, 16>(a, s, grid, stream); break;
    case 64: launch<FORMAT, 64>(a, s, grid, stream); break;
    case 96: launch<FORMAT, 96>(a, s, grid, stream); break;
    default: launch<FORMAT, HEAD_DIM_USUAL>(a, s, grid, stream); break;
    }
}

bool gpu_attention_quads(const Heads *h) { return h->dtype != DTYPE_F32 && h->head_dim <= HEAD_DIM_USUAL; }

void gpu_attention_of_quads(const Attention *a, const Split *s, int quads, int groups, void *stream) {
    dim3 grid((unsigned)groups, (unsigned)(a->heads.kv_heads * s->slices), (unsigned)quads);
    if (a->heads.dtype == DTYPE_F16) launch_padded<DTYPE_F16>(a, s, grid, stream);
    else launch_padded<DTYPE_BF16>(a, s, grid, stream);
}
