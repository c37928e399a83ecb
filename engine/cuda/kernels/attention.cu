// Attention in bf16 or f16 on tensor cores: a tile is 16 queries, rows of each mma.
//
//      scores (16, 16) = q (16, dims) keys (16, dims)^T        of each turn; two mma for 16 dimensions
//      weights = 2^(scores - the query's largest of the span)  rounded to the same format
//      sums (16, dims) += weights (16, 16) values (16, dims)   turn after turn; one mma for 8 dimensions
//
// Each warp computes the scores of one or two turns and loads their keys and values. Then each warp sums 16
// dimensions over all turns; a column of ones among the values gives the sum of the weights. Only the largest
// scores and the weights pass between warps, and no sum is ever rescaled.
//
//      |-- Q, K of turn w ----|                        |-- weights --|-- values of dimensions 16w .. --|
//      |-- V of turn w, or K of turn w + 8 ----| then V, for two turns
#include "engine/cuda/kernels/attention_tile.cuh"

enum { WARPS = SPAN / BLOCK, ROUNDS = SPAN_TURNS / WARPS };
template <int DIM> struct TensorShared {
    Rows16<DIM> slot[WARPS][2]; // keys, then values
    union {
        Rows16<DIM> q;
        uint4 weights[SPAN_TURNS][WARP]; // operand a of each turn
    };
    float most[QUERIES][WARPS + 4];
    int is_last;
};

struct TurnPlaces {
    Places rows;
    int base;
    unsigned nodes;
};

__device__ __forceinline__ TurnPlaces find_places(const Attention &a, const Job &j, int turn) {
    TurnPlaces p = {{{0, 0, 0, 0}, 0, 0}, j.begin + turn * BLOCK, ~0u};
    uint2 keys = {0, 0};
    if (turn >= j.shared) {
        const Turn *t = j.own + (turn - j.shared);
        p.base = t->base;
        p.nodes = t->nodes;
        keys = keys_of(t);
    }
    p.rows = place_rows(a, j, p.base, keys);
    return p;
}

// The thread's 16 bytes of q, in each round if heads are wider than usual. The row is loaded together with
// everything else.
template <int DIM> struct QueryPiece {
    Query query;
    int at, d, row;
};
template <int DIM>
__device__ __forceinline__ QueryPiece<DIM> find_piece(const Job &j, const Split &s, int round) {
    int i = ((int)threadIdx.x + round * WARPS * WARP) / (DIM / 8);
    if (i >= QUERIES) return {{0, 0, false}, -1, 0, 0};
    Query q = query_of(j, s, i);
    return {q, i, (int)threadIdx.x % (DIM / 8) * 8, q.there ? j.tile->row[q.node] : 0};
}
template <int DIM>
__device__ __forceinline__ void fetch_piece(const Attention &a, const QueryPiece<DIM> &p, Rows16<DIM> *to) {
    if (p.at < 0) return;
    size_t head = (size_t)p.row * (size_t)a.heads.heads + (size_t)p.query.head;
    const uint16_t *from = (const uint16_t *)a.q + head * (size_t)a.heads.pitch + p.d;
    copy_async_some(&to->at[p.at][p.d], from, p.query.there && p.d < a.heads.pitch ? 16 : 0);
}

__device__ __forceinline__ void mask_turn(Mine *m, const TurnPlaces &p, float score[2][4]) {
    int last[2];
#pragma unroll
    for (int half = 0; half < 2; half++) last[half] = p.nodes >> m->query[half].node & 1 ? m->last[half] : -1;
    mask(*m, last, p.base, score);
    take_most(m, score);
}

// Finds the largest of all warps' scores: over the four lanes that share a query, then over warps.
template <int DIM> __device__ __forceinline__ void share_most(TensorShared<DIM> *sm, Mine *m) {
    int g = warp_lane() / 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float most = lanes_most(m->most[half]);
        if (warp_lane() % 4 == 0) sm->most[g + half * 8][warp_number()] = most;
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float4 x = *(const float4 *)&sm->most[g + half * 8][0],
               y = *(const float4 *)&sm->most[g + half * 8][4];
        m->most[half] =
            fmaxf(fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w)), fmaxf(fmaxf(y.x, y.y), fmaxf(y.z, y.w)));
    }
}
static_assert(WARPS == 8, "share_most takes the largest of eight");

// Sums dimensions d .. d + 15 of the values over all turns, and the weights.
template <Dtype FORMAT, int DIM>
__device__ __forceinline__ void take_values(const TensorShared<DIM> *sm, int turns, int d, float sum[2][4],
                                            float total[4]) {
    const uint32_t ones = FORMAT == DTYPE_F16 ? 0x3c003c00u : 0x3f803f80u;
    int lane = warp_lane(), row = lane / 8 % 2 * 8 + lane % 8, column = d + lane / 16 * 8,
        slot = turns > WARPS ? 0 : 1;
#pragma unroll
    for (int i = 0; i < 4; i++) sum[0][i] = sum[1][i] = total[i] = 0;
    for (int t = 0; t < turns; t++) {
        uint4 w = sm->weights[t][lane];
        uint32_t weights[4] = {w.x, w.y, w.z, w.w}, v[4];
        load_matrices_transposed(v, &sm->slot[t % WARPS][slot + t / WARPS].at[row][column]);
        mma_16816<FORMAT>(sum[0], weights, v[0], v[1]);
        mma_16816<FORMAT>(sum[1], weights, v[2], v[3]);
        mma_16816<FORMAT>(total, weights, ones, ones);
    }
}

// Returns false if there's nothing to do. All loads start before any result is used.
__device__ __forceinline__ bool find_job(const Attention &a, const Split &s, Job *j) {
    const Tile *t = step_tiles(a.step) + s.first_tile + blockIdx.z;
    int at = t->turn[warp_lane() <= STEP_SPANS ? warp_lane() : 0], highest = t->highest;
    const Turn *turns = step_turns(a.step);
    j->tile = t;
    j->nodes = t->nodes;
    j->lowest = lowest_seen(a, t);
    j->context = t->context;
    j->first = t->first;
    find_heads(a, s, t, j);
    Items items = items_of(j->lowest, highest, s.quads ? t->wide : 0);
    int span = items.first_span + (int)blockIdx.x, own = span - j->context / SPAN;
    if (j->nodes == 0 || (int)blockIdx.x >= items.spans) return false;
    j->part = items.groups + (int)blockIdx.x;
    j->parts = items.groups + items.spans;
    int first = __shfl_sync(ALL_LANES, at, own < 0 ? 0 : own),
        end = __shfl_sync(ALL_LANES, at, own < 0 ? 0 : own + 1),
        limit = (span + 1) * SPAN < j->context ? (span + 1) * SPAN : j->context;
    j->own = turns + first;
    j->begin = span * SPAN > j->lowest ? span * SPAN : block_of(j->lowest);
    j->shared = limit > j->begin ? (limit - j->begin) / BLOCK : 0;
    j->turns = j->shared + end - first;
    return true;
}

template <Dtype FORMAT, int DIM>
__global__ void __launch_bounds__(WARPS *WARP, DIM > HEAD_DIM_USUAL ? 1 : 2) attention(Attention a, Split s) {
    typedef TensorShared<DIM> Shared;
    SHARED(Shared, sm);
    let_next_begin();
    wait_for_launches();
    Job j;
    if (!find_job(a, s, &j)) return;
    int warp = warp_number();
    QueryPiece<DIM> piece[DIM > HEAD_DIM_USUAL ? 2 : 1];
#pragma unroll
    for (int i = 0; i < (DIM > HEAD_DIM_USUAL ? 2 : 1); i++) piece[i] = find_piece<DIM>(j, s, i);
    Mine m = my_queries(a, j, s);

    Rows16<DIM> *slot = sm->slot[warp];
    bool one = warp < j.turns, two = warp + WARPS<j.turns, rounds = j.turns> WARPS;
    TurnPlaces p[ROUNDS];
    if (one) {
        p[0] = find_places(a, j, warp);
        fetch(a, p[0].rows, j.kv, j.cache_k, a.step_k, &slot[0]);
    }
#pragma unroll
    for (int i = 0; i < (DIM > HEAD_DIM_USUAL ? 2 : 1); i++) fetch_piece(a, piece[i], &sm->q);
    copy_commit();
    if (two) {
        p[1] = find_places(a, j, warp + WARPS);
        fetch(a, p[1].rows, j.kv, j.cache_k, a.step_k, &slot[1]);
    } else if (one && !rounds) {
        fetch(a, p[0].rows, j.kv, j.cache_v, a.step_v, &slot[1]);
    }
    copy_commit();

    float score[ROUNDS][2][4];
    uint32_t q[DIM / 16][4];
    copy_wait<1>();
    __syncthreads();
    if (one) {
#pragma unroll
        for (int d = 0; d < DIM / 16; d++)
            load_matrices(q[d], &sm->q.at[warp_lane() % 16][d * 16 + warp_lane() / 16 * 8]);
        take_scores<FORMAT>(q, &slot[0], score[0]);
        cap_scores(s, score[0]);
        mask_turn(&m, p[0], score[0]);
    }
    if (one && rounds) {
        __syncwarp();
        fetch(a, p[0].rows, j.kv, j.cache_v, a.step_v, &slot[0]);
        copy_commit();
        copy_wait<1>();
        __syncwarp();
    }
    if (two) {
        take_scores<FORMAT>(q, &slot[1], score[1]);
        cap_scores(s, score[1]);
        mask_turn(&m, p[1], score[1]);
        __syncwarp();
        fetch(a, p[1].rows, j.kv, j.cache_v, a.step_v, &slot[1]);
    }
    copy_commit();

    m.most[0] *= s.scale, m.most[1] *= s.scale;
    share_most(sm, &m);
    float base[2] = {finite_most(m.most[0]), finite_most(m.most[1])};
    if (one) sm->weights[warp][warp_lane()] = weights_of<FORMAT>(score[0], base, s.scale);
    if (two) sm->weights[warp + WARPS][warp_lane()] = weights_of<FORMAT>(score[1], base, s.scale);
    copy_wait<0>();
    __syncthreads();

    Part<QUERIES, DIM> *parts = parts_of<DIM>(a, s, (int)blockIdx.z);
#pragma unroll
    for (int first = 0; first < DIM; first += WARPS * 16) {
        int d = first + warp * 16;
        float sum[2][4], total[4];
        if (d >= DIM) break;
        take_values<FORMAT>(sm, j.turns, d, sum, total);
        if (j.parts == 1) put_end(a, m, d, sum, total);
        else put_part(m, d, sum, total, &parts[j.part]);
    }
    if (j.parts == 1 || !comes_last(counter_of(a, s.first_tile + (int)blockIdx.z), j.parts, &sm->is_last))
        return;
    const Items items = items_of(j.lowest, j.tile->highest, s.quads ? j.tile->wide : 0);
    for (int i = (int)threadIdx.x; i < QUERIES * (DIM / 4); i += WARPS * WARP) {
        Query query = query_of(j, s, i / (DIM / 4));
        const int row = i / (DIM / 4), d = i % (DIM / 4) * 4;
        State x;
        if (!query.there) continue;
        merge<1, 8>(parts, items, &row, &d, &x);
        put_state(a, x, d, j.tile->row[query.node], query.head);
    }
}

// 8.6 and 8.9 allow a block 99 KB, 8.0 allows 163: wider heads need 144.
static_assert(sizeof(TensorShared<HEAD_DIM_USUAL>) <= 99 << 10, "a block must fit the smallest cards");

template <Dtype FORMAT, int DIM>
static void launch(const Attention *a, const Split *s, int tiles, int spans, void *stream) {
    dim3 grid((unsigned)spans, (unsigned)(a->heads.kv_heads * s->slices), (unsigned)tiles);
    LAUNCH_EARLY((attention<FORMAT, DIM>), grid, WARPS * WARP, sizeof(TensorShared<DIM>), stream, NULL, *a,
                 *s);
}

template <Dtype FORMAT>
static void launch_padded(const Attention *a, const Split *s, int tiles, int spans, void *stream) {
    switch (padded_dim(a->heads.head_dim)) {
    case 16: launch<FORMAT, 16>(a, s, tiles, spans, stream); break;
    case 64: launch<FORMAT, 64>(a, s, tiles, spans, stream); break;
    case 96: launch<FORMAT, 96>(a, s, tiles, spans, stream); break;
    case HEAD_DIM_USUAL: launch<FORMAT, HEAD_DIM_USUAL>(a, s, tiles, spans, stream); break;
    default: launch<FORMAT, HEAD_DIM_MAX>(a, s, tiles, spans, stream); break;
    }
}

static void launch_tiles(const Attention *a, const Split *s, int tiles, int spans, void *stream) {
    switch (a->heads.dtype) {
    case DTYPE_F32: gpu_attention_plain(a, tiles, s->first_tile, spans, stream); break;
    case DTYPE_F16: launch_padded<DTYPE_F16>(a, s, tiles, spans, stream); break;
    case DTYPE_BF16: launch_padded<DTYPE_BF16>(a, s, tiles, spans, stream); break;
    }
}

void attention_scale(const Shape *s, Attention *a) {
    const float log2_e = 1.4426950408889634f;
    float scale = s->score_scale != 0 ? s->score_scale : 1 / sqrtf((float)s->head_dim);
    a->inner = s->score_cap > 0 ? scale / s->score_cap : 0;
    a->scale = s->score_cap > 0      ? log2_e * s->score_cap
               : s->score_scale != 0 ? log2_e * s->score_scale
                                     : log2_e / sqrtf((float)s->head_dim);
}

// Groups that `spans` neighbouring spans touch.
static int groups_of(const Attention *a, int spans) {
    return a->window || a->ring ? (spans + 2) / GROUP_SPANS + 1 : (spans + GROUP_SPANS - 1) / GROUP_SPANS;
}

// Tiles with so many parts that there's room for; a single one is put at once.
static int tiles_at_once(const Attention *a, int parts) {
    const size_t most = 65535, room = a->parts_floats / gpu_attention_part(&a->heads, parts);
    return (int)(parts > 1 && room < most ? room : most);
}

// Quads need room for the parts of all tiles at once, or of some of a single sequence's. A quad's block takes
// several times as long as a span's: where the spans' blocks run in two waves or fewer, quads lose. (Reckoned
// from the counts of attention_counts_test.c; no card has timed a quad.)
static bool takes_quads(const Attention *a, const Split *s, const StepSizes *sizes, int at_once) {
    const int few = 4; // blocks a processor: two waves of two
    int blocks = sizes->tiles * sizes->spans * a->heads.kv_heads * s->slices;
    return sizes->quads > 0 && gpu_attention_quads(&a->heads) && blocks > few * a->processors &&
           (at_once >= sizes->tiles || (!sizes->batch && at_once >= QUAD_TILES));
}

// Launches as many tiles at a time as the parts have room for.
void gpu_attention(const Attention *a, const StepSizes *sizes, void *stream) {
    if (a->scores) {
        gpu_attention_eager(a, sizes->tiles, stream);
        return;
    }
    Split s = split_of(&a->heads);
    int groups = groups_of(a, sizes->spans), mixed = groups + sizes->own, spans = sizes->own;
    s.inner = a->inner;
    s.scale = a->scale;
    s.parts = mixed < sizes->spans ? mixed : sizes->spans;
    int at_once = tiles_at_once(a, s.parts);
    s.quads = takes_quads(a, &s, sizes, at_once);
    if (!s.quads) {
        spans = s.parts = sizes->spans;
        at_once = tiles_at_once(a, s.parts);
    }
    if (s.quads && at_once < sizes->tiles) at_once = at_once / QUAD_TILES * QUAD_TILES;
    for (; s.first_tile < sizes->tiles; s.first_tile += at_once) {
        int tiles = sizes->tiles - s.first_tile < at_once ? sizes->tiles - s.first_tile : at_once,
            quads = at_once < sizes->tiles ? (tiles + QUAD_TILES - 1) / QUAD_TILES : sizes->quads;
        if (s.quads) gpu_attention_of_quads(a, &s, quads, groups, stream);
        if (spans > 0) launch_tiles(a, &s, tiles, spans, stream);
    }
}

size_t gpu_attention_shared(const Heads *h) {
    return h->dtype == DTYPE_F32 || h->head_dim <= HEAD_DIM_USUAL ? 0 : sizeof(TensorShared<HEAD_DIM_MAX>);
}

size_t gpu_attention_part(const Heads *h, int parts) {
    if (h->dtype == DTYPE_F32) return gpu_attention_plain_part(h, parts);
    return (size_t)(h->kv_heads * split_of(h).slices) * (size_t)parts * (size_t)QUERIES *
           (size_t)(padded_dim(h->head_dim) + 2);
}
