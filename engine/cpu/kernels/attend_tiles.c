// Attention on matrix tiles, for keys in bf16 of heads that are whole tiles wide.
//
// 16 queries of neighbouring nodes go together, four tiles of sums at a time:
//
//      scores (16, 16 keys) += queries (16, 32 dims) . keys (32 dims, 16)
//      mixed (16, 16 dims) += weights (16, 32 positions) . values (32 positions, 16)
//
// Keys are multiplied in their layout in memory (keys.h), values two rows at a time in pairs (tile_pair).
//
// A query has a row indexed by position in the text: first its scores, then in their place its weights in
// bf16, e^(score - highest), with zeros around the positions that it sees. The rounded weights are summed,
// and the mixed values are divided by that sum.
//
// Exactness. A score has its own chain over dimensions, whatever else is in its tile, so blocks of keys are
// taken as they are, even partial ones. Values are mixed in blocks of 32 positions of the text, the same
// blocks for all queries; each block adds to each dimension once, in ascending order. A block that all nodes
// see is gathered once, from any slots; any other block is gathered for each node separately, with zeros for
// values that the node doesn't see, and with zero weights for the other nodes, which adds zeros to their
// sums.
//
// Floor: a head of 64 dimensions has two tile products (32 cycles) for 16 keys and four for 32 values. The
// latter also need 64 loads, 64 shuffles and 64 stores; each query and 16 positions, one exponential.
#include "engine/cpu/kernels/attention.h"
#include "engine/cpu/kernels/tiles.h"

enum { HEAD_STEPS = 8, TILES_MIXED = 4, MIXED_DIMS = TILES_MIXED * TILE_ROWS };

typedef struct TileAttend {
    const Attend *a;
    Tiles tiles;
    int first, count; // queries of this tile
    _Alignas(TILE_BYTES) uint16_t q[HEAD_STEPS][QUERY_TILE][TILE_K];
    _Alignas(TILE_BYTES) float scores[QUERY_TILE][KEY_BLOCK];  // of a block that isn't stored whole
    _Alignas(TILE_BYTES) uint16_t weights[QUERY_TILE][TILE_K]; // one node's, zeros for the others
    _Alignas(TILE_BYTES) uint16_t values[2][TILES_MIXED][TILE_ROWS][TILE_K];
    float total[QUERY_TILE]; // of a query's weights
} TileAttend;

// --- the keys that a node sees, in three parts

typedef struct Part {
    const KeySpan *span;
    int spans, position;
} Part;

static Part shared_part(const Attend *a) {
    return (Part){a->span, a->shared_spans, a->first[0] + a->before[0]};
}
static Part before_part(const Attend *a, int node) {
    const KeySpan *s = a->span + a->shared_spans;
    for (int n = 0; n < node; n++) s += a->before_spans[n] + a->after_spans[n];
    return (Part){s, a->before_spans[node], a->first[node]};
}
static Part after_part(const Attend *a, int node) {
    return (Part){before_part(a, node).span + a->before_spans[node], a->after_spans[node],
                  a->first[node] + a->before[node] + a->shared};
}

// The first row of a node in a tile, and the nodes of a tile.
static int node_row(const TileAttend *w, int node) {
    int row = node * w->a->group - w->first;
    return row < 0 ? 0 : row < w->count ? row : w->count;
}
static int first_node(const TileAttend *w) { return w->first / w->a->group; }
static int last_node(const TileAttend *w) { return (w->first + w->count - 1) / w->a->group; }

static uint16_t *weight_row(const Attend *a, int i) { return (uint16_t *)(void *)score_row(a, i); }

// --- scores

// Rows without a query are undefined, and so are their scores and sums, which are never read.
static void pack_queries(TileAttend *w) {
    for (int i = 0; i < w->count; i++)
        for (int d = 0; d < w->a->head_dim; d += TILE_K)
            tile_round(query(w->a, w->first + i) + d, w->q[d / TILE_K][i]);
    tiles_see_memory();
}

// Scores of 16 keys, in tile 0.
static void score_keys(TileAttend *w, const unsigned char *keys) {
    tile_zero(&w->tiles, 0);
    for (int d = 0; d < w->a->head_dim; d += TILE_K, keys += TILE_ROWS * TILE_BYTES) {
        tile_load(&w->tiles, 4, w->q[d / TILE_K], TILE_BYTES);
        tile_load(&w->tiles, 5, keys, TILE_BYTES);
        tile_multiply(&w->tiles, 0, 4, 5);
    }
}

// Scores of 64 keys, in blocks `apart` bytes from each other; `to`: of the first query. Faster than four
// calls of the above, whose products would wait for each other.
static void score_four(TileAttend *w, const unsigned char *keys, size_t apart, float *to) {
    size_t row = w->a->score_row * sizeof *to;
    tile_zero(&w->tiles, 0);
    tile_zero(&w->tiles, 1);
    tile_zero(&w->tiles, 2);
    tile_zero(&w->tiles, 3);
    for (int d = 0; d < w->a->head_dim; d += TILE_K, keys += TILE_ROWS * TILE_BYTES) {
        tile_load(&w->tiles, 4, w->q[d / TILE_K], TILE_BYTES);
        tile_load(&w->tiles, 5, keys, TILE_BYTES);
        tile_multiply(&w->tiles, 0, 4, 5);
        tile_load(&w->tiles, 6, keys + apart, TILE_BYTES);
        tile_multiply(&w->tiles, 1, 4, 6);
        tile_load(&w->tiles, 7, keys + 2 * apart, TILE_BYTES);
        tile_multiply(&w->tiles, 2, 4, 7);
        tile_load(&w->tiles, 5, keys + 3 * apart, TILE_BYTES);
        tile_multiply(&w->tiles, 3, 4, 5);
    }
    tile_store(&w->tiles, 0, to, row);
    tile_store(&w->tiles, 1, to + KEY_BLOCK, row);
    tile_store(&w->tiles, 2, to + 2 * KEY_BLOCK, row);
    tile_store(&w->tiles, 3, to + 3 * KEY_BLOCK, row);
}

// A span whose positions begin at `position`.
static void score_part_span(TileAttend *w, const KeySpan *s, int position, int row, int end) {
    size_t apart = w->a->layout->block_elements * sizeof(uint16_t);
    bool all = row == 0 && end == w->count;
    for (int k = s->first, last = s->first + s->count, next; k < last; position += next - k, k = next) {
        const unsigned char *keys = (const unsigned char *)s->k + (size_t)(k / KEY_BLOCK) * apart;
        int from = k % KEY_BLOCK;
        if (all && from == 0 && k + 4 * KEY_BLOCK <= last) {
            score_four(w, keys, apart, score_row(w->a, w->first) + position);
            next = k + 4 * KEY_BLOCK;
            continue;
        }
        next = k - from + KEY_BLOCK < last ? k - from + KEY_BLOCK : last;
        score_keys(w, keys);
        tile_store(&w->tiles, 0, w->scores, TILE_BYTES);
        for (int r = row; r < end; r++)
            memcpy(score_row(w->a, w->first + r) + position, w->scores[r] + from,
                   (size_t)(next - k) * sizeof(float));
    }
}

static void score_part(TileAttend *w, Part p, int row, int end) {
    for (int i = 0; i < p.spans; p.position += p.span[i++].count)
        score_part_span(w, &p.span[i], p.position, row, end);
}

static void score_tile(TileAttend *w) {
    if (w->a->shared) score_part(w, shared_part(w->a), 0, w->count);
    for (int n = first_node(w); n <= last_node(w); n++) {
        score_part(w, before_part(w->a, n), node_row(w, n), node_row(w, n + 1));
        score_part(w, after_part(w->a, n), node_row(w, n), node_row(w, n + 1));
    }
}

// --- weights

// Turns scores [from, to) of a row into weights in the same place, in whole blocks; returns their sum. The
// lane of a position in that sum depends only on the position.
static float weigh_row(float *scores, int from, int to, float scale) {
    const Lanes by = lanes_set(scale), down = lanes_set(-scale * highest_of(scores + from, to - from));
    Lanes sum = lanes_set(0);
    for (int p = from / TILE_K * TILE_K; p < to; p += TILE_K) {
        float x[TILE_K];
        uint16_t half[TILE_K];
        memcpy(x, scores + p, sizeof x);
        if (p < from || p + TILE_K > to)
            for (int i = 0; i < TILE_K; i++) x[i] = p + i >= from && p + i < to ? x[i] : -INFINITY;
        lanes_store(x, lanes_exp(lanes_fma(lanes_load(x), by, down)));
        lanes_store(x + LANES, lanes_exp(lanes_fma(lanes_load(x + LANES), by, down)));
        tile_round(x, half);
        sum = lanes_plus(sum, lanes_plus(lanes_bf16_even(half), lanes_bf16_odd(half)));
        memcpy((unsigned char *)scores + (size_t)p * sizeof *half, half, sizeof half);
    }
    return lanes_sum(sum);
}

static void weigh_tile(TileAttend *w) {
    const Attend *a = w->a;
    for (int i = 0; i < w->count; i++) {
        int node = (w->first + i) / a->group, from = a->first[node];
        w->total[i] = weigh_row(score_row(a, w->first + i), from, from + a->visible[node], a->scale);
    }
}

// --- values

// The values of a block of positions, from one dimension on.
typedef struct ValueRows {
    const uint16_t *row[TILE_K];
} ValueRows;

// Finds the values that a part has in the block that begins at position `from`.
static void find_rows(const Attend *a, Part p, int from, int d, ValueRows *v) {
    for (int i = 0; i < p.spans; p.position += p.span[i++].count) {
        const KeySpan *s = &p.span[i];
        int begin = p.position > from ? p.position : from, end = p.position + s->count;
        if (begin >= end) continue;
        const uint16_t *row = (const uint16_t *)s->v + value_at(a->layout, s->first + begin - p.position, d);
        if (end > from + TILE_K) end = from + TILE_K;
        for (int k = begin; k < end; k++, row += a->layout->row_elements) v->row[k - from] = row;
    }
}

static void gather(TileAttend *w, int turn, const ValueRows *v, int dims) {
    for (int d = 0; d < dims; d += TILE_K)
        for (int r = 0; r < TILE_ROWS; r++)
            tile_pair(v->row[2 * r] + d, v->row[2 * r + 1] + d, w->values[turn][d / TILE_ROWS][r],
                      w->values[turn][d / TILE_ROWS + 1][r]);
}

// Adds a block to the tiles of sums.
static void mix_gathered(TileAttend *w, int turn, const void *weights, size_t row, int dims) {
    tiles_see_memory();
    tile_load(&w->tiles, 4, weights, row);
    tile_load(&w->tiles, 5, w->values[turn][0], TILE_BYTES);
    tile_multiply(&w->tiles, 0, 4, 5);
    tile_load(&w->tiles, 6, w->values[turn][1], TILE_BYTES);
    tile_multiply(&w->tiles, 1, 4, 6);
    if (dims == TILE_K) return;
    tile_load(&w->tiles, 7, w->values[turn][2], TILE_BYTES);
    tile_multiply(&w->tiles, 2, 4, 7);
    tile_load(&w->tiles, 5, w->values[turn][3], TILE_BYTES);
    tile_multiply(&w->tiles, 3, 4, 5);
}

// Blocks [from, to) of one node.
static void mix_node(TileAttend *w, int node, int from, int to, int d, int dims) {
    static const uint16_t none[MIXED_DIMS];
    const Attend *a = w->a;
    memset(w->weights, 0, sizeof w->weights);
    for (int p = from; p < to; p += TILE_K) {
        ValueRows v;
        for (int i = 0; i < TILE_K; i++) v.row[i] = none;
        find_rows(a, before_part(a, node), p, d, &v);
        if (a->shared) find_rows(a, shared_part(a), p, d, &v);
        find_rows(a, after_part(a, node), p, d, &v);
        gather(w, 0, &v, dims);
        for (int i = node_row(w, node); i < node_row(w, node + 1); i++)
            memcpy(w->weights[i], weight_row(a, w->first + i) + p, sizeof w->weights[i]);
        mix_gathered(w, 0, w->weights, sizeof *w->weights, dims);
    }
}

static void gather_shared(TileAttend *w, int turn, int p, int d, int dims) {
    ValueRows v;
    find_rows(w->a, shared_part(w->a), p, d, &v);
    gather(w, turn, &v, dims);
}

// Blocks that all nodes see whole. Each is gathered a turn before it's multiplied, so that tile loads don't
// wait for stores.
static void mix_shared(TileAttend *w, int from, int to, int d, int dims) {
    int turn = 0;
    if (from < to) gather_shared(w, turn, from, d, dims);
    for (int p = from; p < to; p += TILE_K, turn = !turn) {
        if (p + TILE_K < to) gather_shared(w, !turn, p + TILE_K, d, dims);
        mix_gathered(w, turn, weight_row(w->a, w->first) + p, w->a->score_row * sizeof(float), dims);
    }
}

// Dimensions [d, d + dims) of the sums, 32 or 64 of them.
static void mix_dims(TileAttend *w, int d, int dims) {
    const Attend *a = w->a;
    int at = shared_part(a).position, from = (at + TILE_K - 1) / TILE_K * TILE_K;
    int to = (at + a->shared) / TILE_K * TILE_K;
    if (to <= from) from = to = 0;
    tile_zero(&w->tiles, 0);
    tile_zero(&w->tiles, 1);
    tile_zero(&w->tiles, 2);
    tile_zero(&w->tiles, 3);
    for (int n = first_node(w); n <= last_node(w); n++)
        mix_node(w, n, a->first[n] / TILE_K * TILE_K, from, d, dims);
    mix_shared(w, from, to, d, dims);
    for (int n = first_node(w); n <= last_node(w); n++) {
        int begin = a->first[n] / TILE_K * TILE_K;
        mix_node(w, n, begin > to ? begin : to, a->first[n] + a->visible[n], d, dims);
    }
    float *sums = sum_row(a, w->first) + d;
    size_t row = key_value_pad(a->head_dim) * sizeof *sums;
    tile_store(&w->tiles, 0, sums, row);
    tile_store(&w->tiles, 1, sums + TILE_ROWS, row);
    if (dims == TILE_K) return;
    tile_store(&w->tiles, 2, sums + 2 * TILE_ROWS, row);
    tile_store(&w->tiles, 3, sums + 3 * TILE_ROWS, row);
}

// Of 32 dimensions, the first four of each eight are in the lower half, see tile_pair.
static void put_mixed(const TileAttend *w, int i) {
    const Attend *a = w->a;
    const float *sum = sum_row(a, w->first + i);
    float *out = a->out + (query(a, w->first + i) - a->q), scale = 1 / w->total[i];
    for (int d = 0; d < a->head_dim; d += 8)
        for (int j = 0; j < 4; j++) {
            int low = d / TILE_K * TILE_K + d % TILE_K / 2 + j;
            out[d + j] = sum[low] * scale;
            out[d + 4 + j] = sum[low + TILE_ROWS] * scale;
        }
}

bool attend_on_tiles(const Attend *a) {
    // A head must be whole tiles.
    if (a->layout->dtype != DTYPE_BF16 || a->head_dim % TILE_K || a->head_dim > HEAD_STEPS * TILE_K)
        return false;
    TileAttend w; // left undefined: only filled fields are read
    int queries = a->nodes * a->group;
    w.a = a;
    tiles_begin(&w.tiles, TILE_ROWS, TILE_ROWS);
    for (w.first = 0; w.first < queries; w.first += QUERY_TILE) {
        w.count = queries - w.first < QUERY_TILE ? queries - w.first : QUERY_TILE;
        pack_queries(&w);
        score_tile(&w);
        weigh_tile(&w);
        for (int d = 0; d < a->head_dim; d += MIXED_DIMS)
            mix_dims(&w, d, a->head_dim - d < MIXED_DIMS ? a->head_dim - d : MIXED_DIMS);
        for (int i = 0; i < w.count; i++) put_mixed(&w, i);
    }
    tiles_end(&w.tiles);
    return true;
}
