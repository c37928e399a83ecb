// Attention on tensor cores: the queries of a tile, for both kernels (attention.cu, attention_quads.cu).
#pragma once
#include "engine/cuda/kernels/attention.cuh"

enum { QUERIES = TILE_NODES };
enum { PAD = 8 }; // puts the rows of a block into different banks

template <int DIM> struct Rows16 { uint16_t at[BLOCK][DIM + PAD]; };

// How a launch divides heads. A tile has `heads` heads of each of its nodes.
struct Split {
    int first_tile, group, heads, slices; // slices: tiles that together take all heads of one key head
    int inverse;                          // 65536 / heads, rounded up
    int parts;                            // that a tile has room for, for one block's heads
    bool quads;                           // whether a launch of quads has taken what is theirs
    float inner;                          // of scores before a cap; 0: no cap
    float scale;                          // of scores, for powers of two
};

// The work of one block of the grid.
struct Job {
    const Tile *tile;
    int kv, head, last_head;        // heads [head, last_head] of a node
    int lowest, nodes, part, parts; // it makes the part-th of the tile's parts
    int begin, shared, turns;       // `shared` of its turns are committed blocks from `begin` on,
    const Turn *own;                // the others are these
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

// The cache of a tile's nodes, and its heads by `y` of the grid.
__device__ __forceinline__ void find_heads(const Attention &a, const Split &s, const Tile *t, Job *j) {
    j->cache_k = seen_cache(a, t, a.cache_k);
    j->cache_v = seen_cache(a, t, a.cache_v);
    int slice = s.slices > 1 ? (int)blockIdx.y % s.slices : 0;
    j->kv = s.slices > 1 ? (int)blockIdx.y / s.slices : (int)blockIdx.y;
    j->head = j->kv * s.group + slice * s.heads;
    j->last_head = (j->kv + 1) * s.group - 1;
    if (j->head + s.heads - 1 < j->last_head) j->last_head = j->head + s.heads - 1;
}

// The counter of a tile, for the block's heads.
__device__ __forceinline__ unsigned *counter_of(const Attention &a, int tile) {
    return &a.done[(size_t)tile * gridDim.y + blockIdx.y];
}
// The parts of a tile, counted from the launch's first, for the block's heads.
template <int DIM>
__device__ __forceinline__ Part<QUERIES, DIM> *parts_of(const Attention &a, const Split &s, int tile) {
    return (Part<QUERIES, DIM> *)a.parts + ((size_t)tile * gridDim.y + blockIdx.y) * (size_t)s.parts;
}

// Where a block's keys and values are, for rows 4 (lane / 8) .. + 3 of the block.
struct Places {
    unsigned at[4];       // bytes from the start of the key head's slots, or of its step area
    unsigned there, step; // a bit for each row: it exists; it's in the step area
};

// Places the block of positions from `base` on; `keys`: those of the thread's rows on the path.
__device__ __forceinline__ Places place_rows(const Attention &a, const Job &j, int base, uint2 keys) {
    Places p = {{0, 0, 0, 0}, 0, 0};
    int first = warp_lane() / 8 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int position = base + first + i, key = (int)((i < 2 ? keys.x : keys.y) >> i % 2 * 16 & NO_KEY);
        bool step = position >= j.context;
        int number = step ? j.first + key : a.ring ? position % a.slots : position;
        p.there |= (unsigned)(step ? key != NO_KEY : position >= j.lowest) << i;
        p.step |= (unsigned)step << i;
        p.at[i] = (unsigned)number * (unsigned)a.heads.pitch * 2;
    }
    return p;
}
__device__ __forceinline__ uint2 keys_of(const Turn *t) {
    uint2 keys;
    memcpy(&keys, __builtin_assume_aligned(&t->key[warp_lane() / 8 * 4], sizeof keys), sizeof keys);
    return keys;
}

// Starts to copy a block's rows: zeros for absent ones.
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

// A position that a query does not see scores -INFINITY; it sees none behind `last`.
__device__ __forceinline__ void mask(const Mine &m, const int last[2], int base, float score[2][4]) {
    int begin = base + warp_lane() % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int low = m.first[half] - begin, high = last[half] - begin;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int at = i / 2 * 8 + i % 2;
            if (at < low || at > high) score[i / 2][half * 2 + i % 2] = -INFINITY;
        }
    }
}
__device__ __forceinline__ void take_most(Mine *m, const float score[2][4]) {
#pragma unroll
    for (int i = 0; i < 8; i++) m->most[i % 4 / 2] = fmaxf(m->most[i % 4 / 2], score[i / 4][i % 4]);
}
// Over the four lanes that share a query.
__device__ __forceinline__ float lanes_most(float x) {
    x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 2));
}

template <Dtype FORMAT>
__device__ __forceinline__ uint4 weights_of(const float score[2][4], const float base[2], float scale) {
    float w[8];
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] = exp2_fast(fmaf(score[i / 4][i % 4], scale, -base[i % 4 / 2]));
    return {half_pair(FORMAT, w[0], w[1]), half_pair(FORMAT, w[2], w[3]), half_pair(FORMAT, w[4], w[5]),
            half_pair(FORMAT, w[6], w[7])};
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
            float x[2] = {mean_of(sum[i][half * 2], inverse), mean_of(sum[i][half * 2 + 1], inverse)};
            int d = first + i * 8 + warp_lane() % 4 * 2;
            put_means<2>(a.to, m.row[half], m.query[half].head * a.heads.head_dim + d, x,
                         a.heads.head_dim - d);
        }
    }
}

// Head sizes are padded to one of these.
static inline int padded_dim(int head_dim) {
    static const int sizes[] = {16, 64, 96, HEAD_DIM_USUAL};
    for (int size : sizes)
        if (head_dim <= size) return size;
    return HEAD_DIM_MAX;
}

static inline Split split_of(const Heads *h) {
    int group = h->heads / h->kv_heads, heads = group < QUERIES ? group : QUERIES;
    return {0, group, heads, (group + heads - 1) / heads, (65536 + heads - 1) / heads, 0, false, 0, 0};
}

// attention_quads.cu. Takes quads of the tiles from `first_tile` on, groups of their spans.
void gpu_attention_of_quads(const Attention *a, const Split *s, int quads, int groups, void *stream);
