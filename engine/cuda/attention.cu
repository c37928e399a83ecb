// Attention in bf16 or f16 on tensor cores: a tile is 16 queries, rows of each mma; a block of 16 positions
// is one step of its softmax.
//
//      scores (16, 16) = q (16, dims) keys (16, dims)^T        two mma for 16 dimensions
//      sums (16, dims) += weights (16, 16) values (16, dims)   one mma for 8 dimensions
//
// Blocks that are committed as a whole are the same for all queries. From there on each node has its own: the
// rest of the cache, its ancestors, itself; such a block is taken once for each node of the tile, whose
// queries alone it changes. Keys and values of the next block come in while this one is computed.
//
// Weights are rounded to the same format, and summed as they were rounded.
#include "engine/cuda/attention.cuh"

enum { QUERIES = 16, BLOCK = 16, PAD = 8 }; // PAD: rows of a block fall into different banks

template <int DIM> struct Rows16 { uint16_t k[BLOCK][DIM + PAD], v[BLOCK][DIM + PAD]; };
template <int DIM> struct TensorShared {
    union {
        Rows16<DIM> block[ATTENTION_WARPS][2];
        Known<QUERIES, DIM> warp[ATTENTION_WARPS];
    };
    Known<QUERIES, DIM> mine;
    int is_last;
};

// A block of positions for one node of the tile, or for all of them.
struct Turn {
    int base, node; // node -1: all
    bool any;       // there is one
};

// Whether a node sees some of a block.
__device__ __forceinline__ bool sees(const Attention &a, int node, int base) {
    int p = step_nodes(a.step)[node].position;
    return base <= p && base + BLOCK > first_seen(a, p);
}

// The next turn after t; end: of the warp's positions.
__device__ __forceinline__ Turn next_turn(const Attention &a, const Tile &t, Turn turn, int end) {
    int base = turn.base, node = turn.node + 1;
    bool shared_done = turn.any && turn.node < 0;
    for (; base < end && base <= t.highest; base += BLOCK, node = t.node_first, shared_done = false) {
        if (base + BLOCK <= t.lowest) continue;
        if (base + BLOCK <= a.step->context) {
            if (!shared_done) return {base, -1, true};
            continue;
        }
        if (node < t.node_first) node = t.node_first;
        for (; node <= t.node_last; node++)
            if (sees(a, node, base)) return {base, node, true};
    }
    return {0, 0, false};
}

// Starts to bring a turn's keys and values in. What nobody may see is zero.
template <int DIM>
__device__ __forceinline__ void fetch(const Attention &a, const Tile &t, const Turn &turn, Rows16<DIM> *to) {
    const int pieces = DIM / 8;
    int last = turn.node < 0 ? t.highest : step_nodes(a.step)[turn.node].position;
    const uint16_t *path = step_path(a.step, turn.node < 0 ? t.node_first : turn.node);
    for (int i = warp_lane(); i < BLOCK * pieces; i += WARP) {
        int row = i / pieces, d = i % pieces * 8, position = turn.base + row;
        bool there = position >= t.lowest && position <= last && d < a.heads.pitch, step = false;
        size_t at = there ? key_at(a, t.kv, path, position, &step) + (size_t)d : 0;
        const uint16_t *k = (const uint16_t *)(step ? a.step_k : a.cache_k) + at,
                       *v = (const uint16_t *)(step ? a.step_v : a.cache_v) + at;
        copy_async_or_zero(&to->k[row][d], there ? k : NULL, a.q);
        copy_async_or_zero(&to->v[row][d], there ? v : NULL, a.q);
    }
}

// A lane's share of a tile: queries g and g + 8 where the lane is 4g + q.
template <int DIM> struct Mine {
    uint32_t q[DIM / 16][4]; // operand a
    float sum[DIM / 8][4];
    Running running[2];
    int node[2], first[2], last[2]; // positions [first, last] are seen; no query: last < first
};

template <int DIM> __device__ __forceinline__ void begin(const Attention &a, const Tile &t, Mine<DIM> *m) {
    int g = warp_lane() / 4, q = warp_lane() % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = g + half * 8;
        bool there = query < t.queries;
        m->running[half] = {0, 0};
        m->node[half] = there ? a.step->first + query_row(t, query) : -1;
        m->last[half] = there ? step_nodes(a.step)[m->node[half]].position : -1;
        m->first[half] = there ? first_seen(a, m->last[half]) : 0;
        const uint16_t *row =
            there ? (const uint16_t *)a.q +
                        ((size_t)query_row(t, query) * (size_t)a.heads.heads + (size_t)query_head(t, query)) *
                            (size_t)a.heads.pitch
                  : NULL;
#pragma unroll
        for (int i = 0; i < DIM / 8; i++) {
            int d = i * 8 + q;
            m->q[i / 2][i % 2 * 2 + half] = row && d < a.heads.pitch ? *(const uint32_t *)(row + d) : 0;
        }
    }
#pragma unroll
    for (int i = 0; i < DIM / 2; i++) m->sum[i / 4][i % 4] = 0;
}

// Scores of the block: s[i] of positions 8i + 2q, 8i + 2q + 1, for query g, then g + 8.
template <Dtype FORMAT, int DIM>
__device__ __forceinline__ void scores(const Mine<DIM> &m, const Rows16<DIM> *b, float s[2][4]) {
    int lane = warp_lane(), row = lane / 16 * 8 + lane % 8, column = lane / 8 % 2 * 8;
#pragma unroll
    for (int i = 0; i < 8; i++) s[i / 4][i % 4] = 0;
#pragma unroll
    for (int d = 0; d < DIM / 16; d++) {
        uint32_t k[4];
        load_matrices(k, &b->k[row][d * 16 + column]);
        mma_16816<FORMAT>(s[0], m.q[d], k[0], k[1]);
        mma_16816<FORMAT>(s[1], m.q[d], k[2], k[3]);
    }
}

// Of the four lanes that share a query.
__device__ __forceinline__ float most_of_query(float x) {
    x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 2));
}
__device__ __forceinline__ float sum_of_query(float x) {
    x += __shfl_xor_sync(ALL_LANES, x, 1);
    return x + __shfl_xor_sync(ALL_LANES, x, 2);
}

// Scores of one query of the lane into weights; gives the factor for what was summed before, *live: whether
// the query sees anything of the block.
template <Dtype FORMAT, int DIM>
__device__ __forceinline__ float weigh(Mine<DIM> *m, const Turn &turn, int half, float scale, float s[2][4],
                                       bool *live) {
    int q = warp_lane() % 4 * 2;
    bool mine = turn.node < 0 || m->node[half] == turn.node;
    float most = -INFINITY, weight[4];
    bool seen[4], any = false;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int position = turn.base + i / 2 * 8 + q + i % 2;
        seen[i] = mine && position >= m->first[half] && position <= m->last[half];
        any = any || seen[i];
        weight[i] = scale * s[i / 2][half * 2 + i % 2];
        if (seen[i]) most = fmaxf(most, weight[i]);
    }
    Running *r = &m->running[half];
    *live = (__ballot_sync(ALL_LANES, any) >> (warp_lane() / 4 * 4) & 15) != 0;
    most = most_of_query(most);
    if (r->sum > 0) most = fmaxf(most, r->most);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        weight[i] = seen[i] ? half_f32(FORMAT, f32_half(FORMAT, exp2f(weight[i] - most))) : 0;
        s[i / 2][half * 2 + i % 2] = weight[i];
    }
    float sum = sum_of_query((weight[0] + weight[1]) + (weight[2] + weight[3]));
    if (!*live) return 1;
    float old = r->sum > 0 ? exp2f(r->most - most) : 0;
    *r = {most, r->sum * old + sum};
    return old;
}

template <Dtype FORMAT, int DIM>
__device__ __forceinline__ void add_values(Mine<DIM> *m, const Rows16<DIM> *b, const float s[2][4],
                                           const float old[2], const bool live[2]) {
    int lane = warp_lane(), row = lane / 8 % 2 * 8 + lane % 8, column = lane / 16 * 8;
    uint32_t weights[4] = {half_pair(FORMAT, s[0][0], s[0][1]), half_pair(FORMAT, s[0][2], s[0][3]),
                           half_pair(FORMAT, s[1][0], s[1][1]), half_pair(FORMAT, s[1][2], s[1][3])};
#pragma unroll
    for (int d = 0; d < DIM / 16; d++) {
        uint32_t v[4];
        load_matrices_transposed(v, &b->v[row][d * 16 + column]);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float *sum = m->sum[d * 2 + i],
                  next[4] = {sum[0] * old[0], sum[1] * old[0], sum[2] * old[1], sum[3] * old[1]};
            mma_16816<FORMAT>(next, weights, v[i * 2], v[i * 2 + 1]);
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (live[k / 2]) sum[k] = next[k];
        }
    }
}

template <Dtype FORMAT, int DIM>
__device__ __forceinline__ void take(Mine<DIM> *m, const Turn &turn, const Rows16<DIM> *b, float scale) {
    float s[2][4], old[2];
    bool live[2];
    scores<FORMAT>(*m, b, s);
    old[0] = weigh<FORMAT>(m, turn, 0, scale, s, &live[0]);
    old[1] = weigh<FORMAT>(m, turn, 1, scale, s, &live[1]);
    add_values<FORMAT>(m, b, s, old, live);
}

// All turns of a warp, each fetched while the one before is computed.
template <Dtype FORMAT, int DIM>
__device__ __forceinline__ void take_all(const Attention &a, const Tile &t, Mine<DIM> *m,
                                         Rows16<DIM> buffer[2], int from) {
    float scale = 1.4426950408889634f / sqrtf((float)a.heads.head_dim);
    Turn turn = next_turn(a, t, {from, t.node_first - 1, false}, from + SUB);
    if (turn.any) fetch(a, t, turn, &buffer[0]);
    copy_commit();
    for (int i = 0; turn.any; i ^= 1) {
        Turn next = next_turn(a, t, turn, from + SUB);
        if (next.any) fetch(a, t, next, &buffer[i ^ 1]);
        copy_commit();
        copy_wait<1>();
        __syncwarp();
        take<FORMAT>(m, turn, &buffer[i], scale);
        __syncwarp();
        turn = next;
    }
    copy_wait<0>();
}

template <int DIM> __device__ __forceinline__ void keep(const Mine<DIM> &m, Known<QUERIES, DIM> *to) {
    int g = warp_lane() / 4, q = warp_lane() % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (q == 0) to->running[g + half * 8] = m.running[half];
#pragma unroll
    for (int i = 0; i < DIM / 2; i++) to->sum[g + i % 4 / 2 * 8][i / 4 * 8 + q + i % 2] = m.sum[i / 4][i % 4];
}

template <Dtype FORMAT, int DIM>
__global__ void __launch_bounds__(ATTENTION_WARPS *WARP, 1) attention(Attention a, int first_tile) {
    typedef TensorShared<DIM> Shared;
    SHARED(Shared, sm);
    let_next_begin();
    wait_for_launches();
    Tile t;
    if (!find_tile(a, first_tile + (int)blockIdx.z, (int)blockIdx.y, QUERIES, &t)) return;
    int span = t.lowest / SPAN + (int)blockIdx.x, spans = t.highest / SPAN - t.lowest / SPAN + 1;
    if ((int)blockIdx.x >= spans) return;
    Mine<DIM> m;
    begin(a, t, &m);
    take_all<FORMAT>(a, t, &m, sm->block[warp_number()], span * SPAN + warp_number() * SUB);
    __syncthreads(); // what was fetched makes room for what is known
    keep(m, &sm->warp[warp_number()]);
    conclude(a, t, sm->warp, &sm->mine, &sm->is_last, (int)blockIdx.x, spans,
             (int)(blockIdx.z * gridDim.y + blockIdx.y));
}

// What a block can have on 8.6 and 8.9.
static_assert(sizeof(TensorShared<HEAD_DIM_MAX>) <= 99 << 10, "a block must fit the smallest cards");

// Head sizes are padded to one of these.
static int padded_dim(int head_dim) {
    static const int sizes[] = {16, 64, 96};
    for (int size : sizes)
        if (head_dim <= size) return size;
    return HEAD_DIM_MAX;
}

template <Dtype FORMAT, int DIM>
static void launch(const Attention *a, int tiles, int first, int spans, void *stream) {
    dim3 grid((unsigned)spans, (unsigned)a->heads.kv_heads, (unsigned)tiles);
    LAUNCH_EARLY((attention<FORMAT, DIM>), grid, ATTENTION_WARPS * WARP, sizeof(TensorShared<DIM>), stream,
                 NULL, *a, first);
}

template <Dtype FORMAT>
static void launch_padded(const Attention *a, int tiles, int first, int spans, void *stream) {
    switch (padded_dim(a->heads.head_dim)) {
    case 16: launch<FORMAT, 16>(a, tiles, first, spans, stream); break;
    case 64: launch<FORMAT, 64>(a, tiles, first, spans, stream); break;
    case 96: launch<FORMAT, 96>(a, tiles, first, spans, stream); break;
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

static int tiles_of(const Heads *h, int most) {
    int queries = most * (h->heads / h->kv_heads), rows = h->dtype == DTYPE_F32 ? 1 : QUERIES;
    return (queries + rows - 1) / rows;
}

// As many tiles at a time as the parts have room for; a single span has none.
void gpu_attention(const Attention *a, int most, int spans, void *stream) {
    int tiles = tiles_of(&a->heads, most), at_once = 65535;
    if (spans > 1 && a->parts_floats / gpu_attention_part(&a->heads, spans) < (size_t)at_once)
        at_once = (int)(a->parts_floats / gpu_attention_part(&a->heads, spans));
    for (int first = 0; first < tiles; first += at_once)
        launch_tiles(a, tiles - first < at_once ? tiles - first : at_once, first, spans, stream);
}

int gpu_attention_counters(const Heads *h, int most) { return tiles_of(h, most) * h->kv_heads; }

size_t gpu_attention_part(const Heads *h, int spans) {
    if (h->dtype == DTYPE_F32) return gpu_attention_plain_part(h, spans);
    return (size_t)h->kv_heads * (size_t)spans * (size_t)QUERIES *
           (size_t)(padded_dim(h->head_dim) + 6); // two of Running, four of padding
}
