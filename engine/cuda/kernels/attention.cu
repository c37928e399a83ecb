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
#include "engine/cuda/kernels/attention.cuh"

enum { QUERIES = TILE_NODES, WARPS = SPAN / BLOCK, ROUNDS = SPAN_TURNS / WARPS };
enum { PAD = 8 }; // puts the rows of a block into different banks

template <int DIM> struct Rows16 { uint16_t at[BLOCK][DIM + PAD]; };
template <int DIM> struct TensorShared {
    Rows16<DIM> slot[WARPS][2]; // keys, then values
    union {
        Rows16<DIM> q;
        uint4 weights[SPAN_TURNS][WARP]; // operand a of each turn
    };
    float most[QUERIES][WARPS + 4];
    int is_last;
};

// How a launch divides heads. A tile has `heads` heads of each of its nodes.
struct Split {
    int first_tile, group, heads, slices; // slices: tiles that together take all heads of one key head
    int inverse;                          // 65536 / heads, rounded up
    float inner;                          // of scores before a cap; 0: no cap
    float scale;                          // of scores, for powers of two
};

// The work of one block of the grid.
struct Job {
    const Tile *tile;
    int kv, head, last_head; // heads [head, last_head] of a node
    int lowest, nodes, spans;
    int begin, shared, turns; // `shared` of its turns are committed blocks from `begin` on,
    const Turn *own;          // the others are these
    const void *cache_k, *cache_v;
    int context, first; // as in Tile
};

// Query i of a tile: rows are nodes, then heads.
struct Query {
    int head, node; // node: of the tile
    bool there;
};

__device__ __forceinline__ Query query_of(const Job &j, const Split &s, int i) {
    int node = i * s.inverse >> 16, head = j.head + i - node * s.heads;
    return {head, node, node < j.nodes && head <= j.last_head};
}

// Where a turn's keys and values are, for rows 4 (lane / 8) .. + 3 of the block.
struct Places {
    unsigned at[4];       // bytes from the start of the key head's slots, or of its step area
    unsigned there, step; // a bit for each row: it exists; it's in the step area
    int base;
    unsigned nodes;
};

__device__ __forceinline__ Places find_places(const Attention &a, const Job &j, int turn) {
    Places p = {{0, 0, 0, 0}, 0, 0, j.begin + turn * BLOCK, ~0u};
    int first = warp_lane() / 8 * 4;
    uint2 keys = {0, 0};
    if (turn >= j.shared) {
        const Turn *t = j.own + (turn - j.shared);
        p.base = t->base;
        p.nodes = t->nodes;
        memcpy(&keys, __builtin_assume_aligned(&t->key[first], sizeof keys), sizeof keys);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int position = p.base + first + i, key = (int)((i < 2 ? keys.x : keys.y) >> i % 2 * 16 & NO_KEY);
        bool step = position >= j.context;
        int number = step ? j.first + key : a.ring ? position % a.slots : position;
        p.there |= (unsigned)(step ? key != NO_KEY : position >= j.lowest) << i;
        p.step |= (unsigned)step << i;
        p.at[i] = (unsigned)number * (unsigned)a.heads.pitch * 2;
    }
    return p;
}

// Starts to copy a turn's rows: zeros for absent ones.
template <int DIM>
__device__ __forceinline__ void fetch(const Attention &a, const Places &p, int kv, const void *cache,
                                      const void *step, Rows16<DIM> *to) {
    int row = warp_lane() / 8 * 4, d = warp_lane() % 8 * 8;
    size_t head = (size_t)kv * (size_t)a.heads.pitch;
    const uint16_t *slots = (const uint16_t *)cache + head * (size_t)a.slots + d,
                   *area = (const uint16_t *)step + head * (size_t)a.area + d;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const char *from = (const char *)(p.step >> i & 1 ? area : slots) + p.at[i];
        int bytes = p.there >> i & 1 ? 16 : 0;
#pragma unroll
        for (int k = 0; k < DIM; k += 64)
            if (k + 64 <= DIM || k + d < DIM)
                copy_async_some(&to->at[row + i][k + d], from + k * 2, k + d < a.heads.pitch ? bytes : 0);
    }
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

// Lane 4g + q has queries g and g + 8.
struct Mine {
    Query query[2];
    int row[2], first[2], last[2]; // positions [first, last] are seen; none if last is negative
    float most[2];
};

__device__ __forceinline__ Mine my_queries(const Attention &a, const Job &j, const Split &s) {
    Mine m;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        Query q = query_of(j, s, warp_lane() / 4 + half * 8);
        m.query[half] = q;
        m.last[half] = q.there ? j.tile->position[q.node] : -1;
        m.row[half] = q.there ? j.tile->row[q.node] : 0;
        m.first[half] = first_seen(a, m.last[half]);
        m.most[half] = -INFINITY;
    }
    return m;
}

// score[i]: of positions 8 (i / 4) + 2q + i % 2, for query g, then g + 8. Even and odd sixteens of dimensions
// are summed separately, which halves the latency.
template <Dtype FORMAT, int DIM>
__device__ __forceinline__ void take_scores(const uint32_t q[DIM / 16][4], const Rows16<DIM> *keys,
                                            float score[2][4]) {
    int lane = warp_lane(), row = lane / 16 * 8 + lane % 8, column = lane / 8 % 2 * 8;
    float odd[2][4];
#pragma unroll
    for (int i = 0; i < 8; i++) score[i / 4][i % 4] = odd[i / 4][i % 4] = 0;
#pragma unroll
    for (int d = 0; d < DIM / 16; d++) {
        uint32_t k[4];
        load_matrices(k, &keys->at[row][d * 16 + column]);
        mma_16816<FORMAT>(d % 2 ? odd[0] : score[0], q[d], k[0], k[1]);
        mma_16816<FORMAT>(d % 2 ? odd[1] : score[1], q[d], k[2], k[3]);
    }
#pragma unroll
    for (int i = 0; i < 8; i++) score[i / 4][i % 4] += odd[i / 4][i % 4];
}

__device__ __forceinline__ void cap_scores(const Split &s, float score[2][4]) {
    if (s.inner == 0) return;
#pragma unroll
    for (int i = 0; i < 8; i++) score[i / 4][i % 4] = tanhf(score[i / 4][i % 4] * s.inner);
}

// A position that a query does not see scores -INFINITY.
__device__ __forceinline__ void mask(Mine *m, const Places &p, float score[2][4]) {
    int begin = p.base + warp_lane() % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int low = m->first[half] - begin,
            high = p.nodes >> m->query[half].node & 1 ? m->last[half] - begin : -1;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int at = i / 2 * 8 + i % 2;
            float *x = &score[i / 2][half * 2 + i % 2];
            if (at < low || at > high) *x = -INFINITY;
            m->most[half] = fmaxf(m->most[half], *x);
        }
    }
}

// Finds the largest of all warps' scores: over the four lanes that share a query, then over warps.
template <int DIM> __device__ __forceinline__ void share_most(TensorShared<DIM> *sm, Mine *m) {
    int g = warp_lane() / 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float most = m->most[half];
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
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

template <Dtype FORMAT>
__device__ __forceinline__ uint4 weights_of(const float score[2][4], const float base[2], float scale) {
    float w[8];
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] = exp2_fast(fmaf(score[i / 4][i % 4], scale, -base[i % 4 / 2]));
    return {half_pair(FORMAT, w[0], w[1]), half_pair(FORMAT, w[2], w[3]), half_pair(FORMAT, w[4], w[5]),
            half_pair(FORMAT, w[6], w[7])};
}

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

template <int DIM>
__device__ __forceinline__ void put_part(const Mine &m, int d, const float sum[2][4], const float total[4],
                                         Part<QUERIES, DIM> *to) {
    int g = warp_lane() / 4, q = warp_lane() % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (!m.query[half].there) continue;
        int row = g + half * 8;
#pragma unroll
        for (int i = 0; i < 2; i++)
            *(float2 *)&to->values[row][d + i * 8 + q] = {sum[i][half * 2], sum[i][half * 2 + 1]};
        if (d > 0 || q > 0) continue;
        to->most[row] = m.most[half];
        to->sum[row] = total[half * 2];
    }
}

__device__ __forceinline__ void put_end(const Attention &a, const Mine &m, int first, const float sum[2][4],
                                        const float total[4]) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float inverse = 1 / total[half * 2];
        if (!m.query[half].there) continue;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float x[2] = {sum[i][half * 2] * inverse, sum[i][half * 2 + 1] * inverse};
            int d = first + i * 8 + warp_lane() % 4 * 2;
            put_means<2>(a.to, m.row[half], m.query[half].head * a.heads.head_dim + d, x,
                         a.heads.head_dim - d);
        }
    }
}

// Returns false if there's nothing to do. All loads start before any result is used.
// The first position that any of a tile's nodes sees in this layer, which may have a smaller window than the
// cache.
__device__ __forceinline__ int lowest_seen(const Attention &a, const Tile *t) {
    int position = t->position[warp_lane() % TILE_NODES],
        least = warp_lane() < t->nodes ? position : INT32_MAX;
#pragma unroll
    for (int step = 16; step; step /= 2) {
        int other = __shfl_xor_sync(ALL_LANES, least, step);
        least = other < least ? other : least;
    }
    int first = first_seen(a, least);
    return first > t->lowest ? first : t->lowest;
}

__device__ __forceinline__ bool find_job(const Attention &a, const Split &s, Job *j) {
    const Tile *t = step_tiles(a.step) + s.first_tile + blockIdx.z;
    int at = t->turn[warp_lane() <= STEP_SPANS ? warp_lane() : 0], highest = t->highest;
    const Turn *turns = step_turns(a.step);
    j->tile = t;
    j->nodes = t->nodes;
    j->lowest = lowest_seen(a, t);
    j->context = t->context;
    j->first = t->first;
    j->cache_k = seen_cache(a, t, a.cache_k);
    j->cache_v = seen_cache(a, t, a.cache_v);
    int slice = s.slices > 1 ? (int)blockIdx.y % s.slices : 0;
    j->kv = s.slices > 1 ? (int)blockIdx.y / s.slices : (int)blockIdx.y;
    j->head = j->kv * s.group + slice * s.heads;
    j->last_head = (j->kv + 1) * s.group - 1;
    if (j->head + s.heads - 1 < j->last_head) j->last_head = j->head + s.heads - 1;
    j->spans = highest / SPAN - j->lowest / SPAN + 1;
    int span = j->lowest / SPAN + (int)blockIdx.x, own = span - j->context / SPAN;
    if (j->nodes == 0 || (int)blockIdx.x >= j->spans) return false;
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
    Places p[ROUNDS];
    if (one) {
        p[0] = find_places(a, j, warp);
        fetch(a, p[0], j.kv, j.cache_k, a.step_k, &slot[0]);
    }
#pragma unroll
    for (int i = 0; i < (DIM > HEAD_DIM_USUAL ? 2 : 1); i++) fetch_piece(a, piece[i], &sm->q);
    copy_commit();
    if (two) {
        p[1] = find_places(a, j, warp + WARPS);
        fetch(a, p[1], j.kv, j.cache_k, a.step_k, &slot[1]);
    } else if (one && !rounds) {
        fetch(a, p[0], j.kv, j.cache_v, a.step_v, &slot[1]);
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
        mask(&m, p[0], score[0]);
    }
    if (one && rounds) {
        __syncwarp();
        fetch(a, p[0], j.kv, j.cache_v, a.step_v, &slot[0]);
        copy_commit();
        copy_wait<1>();
        __syncwarp();
    }
    if (two) {
        take_scores<FORMAT>(q, &slot[1], score[1]);
        cap_scores(s, score[1]);
        mask(&m, p[1], score[1]);
        __syncwarp();
        fetch(a, p[1], j.kv, j.cache_v, a.step_v, &slot[1]);
    }
    copy_commit();

    m.most[0] *= s.scale, m.most[1] *= s.scale;
    share_most(sm, &m);
    float base[2] = {finite_most(m.most[0]), finite_most(m.most[1])};
    if (one) sm->weights[warp][warp_lane()] = weights_of<FORMAT>(score[0], base, s.scale);
    if (two) sm->weights[warp + WARPS][warp_lane()] = weights_of<FORMAT>(score[1], base, s.scale);
    copy_wait<0>();
    __syncthreads();

    int counter = (int)(blockIdx.z * gridDim.y + blockIdx.y);
    Part<QUERIES, DIM> *parts = (Part<QUERIES, DIM> *)a.parts + (size_t)counter * gridDim.x;
#pragma unroll
    for (int first = 0; first < DIM; first += WARPS * 16) {
        int d = first + warp * 16;
        float sum[2][4], total[4];
        if (d >= DIM) break;
        take_values<FORMAT>(sm, j.turns, d, sum, total);
        if (j.spans == 1) put_end(a, m, d, sum, total);
        else put_part(m, d, sum, total, &parts[blockIdx.x]);
    }
    if (j.spans == 1 || !comes_last(&a.done[counter], j.spans, &sm->is_last)) return;
    for (int i = (int)threadIdx.x; i < QUERIES * (DIM / 4); i += WARPS * WARP) {
        Query query = query_of(j, s, i / (DIM / 4));
        if (query.there)
            merge_to_end(a, parts, j.spans, i / (DIM / 4), i % (DIM / 4) * 4, j.tile->row[query.node],
                         query.head);
    }
}

// 8.6 and 8.9 allow a block 99 KB, 8.0 allows 163: wider heads need 144.
static_assert(sizeof(TensorShared<HEAD_DIM_USUAL>) <= 99 << 10, "a block must fit the smallest cards");

// Head sizes are padded to one of these.
static int padded_dim(int head_dim) {
    static const int sizes[] = {16, 64, 96, HEAD_DIM_USUAL};
    for (int size : sizes)
        if (head_dim <= size) return size;
    return HEAD_DIM_MAX;
}

static Split split_of(const Heads *h) {
    int group = h->heads / h->kv_heads, heads = group < QUERIES ? group : QUERIES;
    return {0, group, heads, (group + heads - 1) / heads, (65536 + heads - 1) / heads, 0, 0};
}

template <Dtype FORMAT, int DIM>
static void launch(const Attention *a, int tiles, int first, int spans, void *stream) {
    Split s = split_of(&a->heads);
    dim3 grid((unsigned)spans, (unsigned)(a->heads.kv_heads * s.slices), (unsigned)tiles);
    s.first_tile = first;
    s.inner = a->inner;
    s.scale = a->scale;
    LAUNCH_EARLY((attention<FORMAT, DIM>), grid, WARPS * WARP, sizeof(TensorShared<DIM>), stream, NULL, *a,
                 s);
}

template <Dtype FORMAT>
static void launch_padded(const Attention *a, int tiles, int first, int spans, void *stream) {
    switch (padded_dim(a->heads.head_dim)) {
    case 16: launch<FORMAT, 16>(a, tiles, first, spans, stream); break;
    case 64: launch<FORMAT, 64>(a, tiles, first, spans, stream); break;
    case 96: launch<FORMAT, 96>(a, tiles, first, spans, stream); break;
    case HEAD_DIM_USUAL: launch<FORMAT, HEAD_DIM_USUAL>(a, tiles, first, spans, stream); break;
    default: launch<FORMAT, HEAD_DIM_MAX>(a, tiles, first, spans, stream); break;
    }
}

static void launch_tiles(const Attention *a, int tiles, int first, int spans, void *stream) {
    switch (a->heads.dtype) {
    case DTYPE_F32: gpu_attention_plain(a, tiles, first, spans, stream); break;
    case DTYPE_F16: launch_padded<DTYPE_F16>(a, tiles, first, spans, stream); break;
    case DTYPE_BF16: launch_padded<DTYPE_BF16>(a, tiles, first, spans, stream); break;
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

// Launches as many tiles at a time as the parts have room for; a single span needs no parts.
void gpu_attention(const Attention *a, int tiles, int spans, void *stream) {
    int at_once = 65535;
    if (spans > 1 && a->parts_floats / gpu_attention_part(&a->heads, spans) < (size_t)at_once)
        at_once = (int)(a->parts_floats / gpu_attention_part(&a->heads, spans));
    if (a->scores) gpu_attention_eager(a, tiles, stream);
    else
        for (int first = 0; first < tiles; first += at_once)
            launch_tiles(a, tiles - first < at_once ? tiles - first : at_once, first, spans, stream);
}

size_t gpu_attention_shared(const Heads *h) {
    return h->dtype == DTYPE_F32 || h->head_dim <= HEAD_DIM_USUAL ? 0 : sizeof(TensorShared<HEAD_DIM_MAX>);
}

size_t gpu_attention_part(const Heads *h, int spans) {
    if (h->dtype == DTYPE_F32) return gpu_attention_plain_part(h, spans);
    return (size_t)(h->kv_heads * split_of(h).slices) * (size_t)spans * (size_t)QUERIES *
           (size_t)(padded_dim(h->head_dim) + 2);
}
