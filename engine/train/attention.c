// Attention of one document and key head, forward and backward. A block of queries at a time meets all keys
// up to its last query:
//
//            keys 0 ........ t          S = scale Q K^T      P = softmax(S)      mixed = P V
//      q 0   x . . . .
//        1   x x . . .                  dV += P^T dmixed     dP = dmixed V^T
//        t   x x x x x                  dS = P (dP - rowsum(P dP)) scale
//                                       dQ = dS K            dK += dS^T Q
//
// Scores aren't kept for the backward pass, which computes P again from the queries and keys.
//
// Where rows have keys of their own, each row of P begins with those: own | 0 ........ t. A row of a shorter
// block has fewer, and leaves the first columns out.
#include "engine/train/pass.h"

#include <assert.h>
#include <math.h>

// Rows of a block over all query heads: whole tiles of every kernel set, and few enough that a block's
// weights and their gradients stay in the second-level cache.
enum { BLOCK_ROWS_ALL_HEADS = 96, OWN_MAX = BLOCK_MOST };

// A task's keys and values, packed once for all blocks: transposed for products with a (rows, head_dim), and
// as they are for products with weights (rows, keys).
typedef struct Packed {
    Panels keys_turned, values_turned, keys, values;
} Packed;

// One block's queries, gathered so that all heads of the group are rows of one matrix: row h * count + i is
// head h of query first + i.
typedef struct QueryBlock {
    const AttentionTask *t;
    const TrainKernels *k;
    const Packed *packed;
    int first, count; // queries
    int rows;         // count * group
    int keys;         // that the last query sees, besides the rows' own
    size_t stride;    // of p and dp, an odd number of cache lines: rows of one tile fall into different sets
    float *q,
        *mixed;     // (rows, head_dim): queries and outputs; in the backward pass mixed holds dmixed, then dq
    float *p, *dp;  // (rows, keys)
    float *scratch; // for the products
} QueryBlock;

static int block_queries(int group) {
    return group < BLOCK_ROWS_ALL_HEADS ? BLOCK_ROWS_ALL_HEADS / group : 1;
}

static size_t score_stride(int keys) { return ((size_t)(keys + 15) / 16 | 1) * 16; }

size_t attention_scratch(const TrainKernels *k, int rows, int group, int head_dim) {
    size_t block = (size_t)(block_queries(group) * group);
    return k->scratch + 2 * block * ((size_t)head_dim + score_stride(rows + OWN_MAX)) +
           2 * (k->panels_size(head_dim, rows) + k->panels_size(rows, head_dim));
}

// Packs keys or values at *scratch, and advances *scratch past them.
static Panels pack(const AttentionTask *t, const TrainKernels *k, const float *from, bool turned,
                   float **scratch) {
    Panels p = {*scratch, turned ? t->head_dim : t->rows, turned ? t->rows : t->head_dim};
    View b = turned ? view_transposed(from, t->stride) : view_rows(from, t->stride);
    k->pack(&b, &p, 0, p.n);
    *scratch += k->panels_size(p.k, p.n);
    return p;
}

// Where the block of a row begins.
static int begin_of(const AttentionTask *t, int row) { return t->begin[row] - t->first; }

static QueryBlock block_at(const AttentionTask *t, const TrainKernels *k, const Packed *packed, int first,
                           float *scratch) {
    int most = block_queries(t->group), left = t->rows - first;
    size_t width = (size_t)(most * t->group) * (size_t)t->head_dim;
    QueryBlock b = {.t = t, .k = k, .packed = packed, .first = first, .count = left < most ? left : most};
    b.rows = b.count * t->group;
    b.keys = first + b.count;
    if (t->begin) b.keys = begin_of(t, b.keys - 1) ? begin_of(t, b.keys - 1) : 1; // the one is then unseen
    b.stride = score_stride(t->own + b.keys);
    b.q = scratch;
    b.mixed = b.q + width;
    b.p = b.mixed + width;
    b.dp = b.p + (size_t)(most * t->group) * score_stride(t->own + t->rows);
    b.scratch = b.dp + (size_t)(most * t->group) * score_stride(t->own + t->rows);
    assert(b.count > 0 && b.keys <= t->rows && t->own <= OWN_MAX);
    return b;
}

static void gather(const QueryBlock *b, const float *from, size_t stride, float *to) {
    size_t n = (size_t)b->t->head_dim;
    for (int h = 0; h < b->t->group; h++)
        for (int i = 0; i < b->count; i++, to += n)
            memcpy(to, from + (size_t)(b->first + i) * stride + (size_t)h * n, n * sizeof *to);
}

static void scatter(const QueryBlock *b, const float *from, float *to, size_t stride) {
    size_t n = (size_t)b->t->head_dim;
    for (int h = 0; h < b->t->group; h++)
        for (int i = 0; i < b->count; i++, from += n)
            memcpy(to + (size_t)(b->first + i) * stride + (size_t)h * n, from, n * sizeof *to);
}

static float scale_of(const AttentionTask *t) { return 1.0f / sqrtf((float)t->head_dim); }

// A row's own keys or values: how many, in which of its columns they begin, and in which row; and how many
// keys it sees from there on, with those.
typedef struct Own {
    int count, skip, begin, visible;
} Own;

static Own own_of(const QueryBlock *b, int r) {
    const AttentionTask *t = b->t;
    int row = b->first + r % b->count;
    if (!t->begin) return (Own){.count = t->own, .begin = row, .visible = t->own + row + 1};
    Own o = {.begin = begin_of(t, row)};
    while (o.begin + o.count < t->rows && begin_of(t, o.begin + o.count) == o.begin) o.count++;
    assert(o.count <= t->own);
    o.skip = t->own - o.count;
    o.visible = o.count + o.begin;
    return o;
}

// Where the m-th of them is: a block's are rows of one array.
static int own_array(const QueryBlock *b, int m) { return b->t->begin ? 0 : m; }
static size_t own_at(const QueryBlock *b, const Own *o, int m) {
    return (size_t)(o->begin + (b->t->begin ? m : 0)) * b->t->stride;
}

// (rows, own + keys) = a (rows, head_dim) times keys or values, transposed.
static void against(const QueryBlock *b, const float *a, const float *const *own, Panels keys, float *out) {
    size_t n = (size_t)b->t->head_dim;
    for (int r = 0; r < b->rows; r++) {
        Own o = own_of(b, r);
        for (int m = 0; m < o.count; m++) {
            const float *x = a + (size_t)r * n, *y = own[own_array(b, m)] + own_at(b, &o, m);
            float sum = 0;
            for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
            out[(size_t)r * b->stride + (size_t)(o.skip + m)] = sum;
        }
    }
    Product p = {.a = view_rows(a, n),
                 .panels = keys,
                 .c = out + b->t->own,
                 .stride = b->stride,
                 .m = b->rows,
                 .n = b->keys,
                 .k = b->t->head_dim};
    b->k->product(&p, b->scratch);
}

// to += by * from
static void add_times(const QueryBlock *b, float by, const float *from, float *to) {
    for (int i = 0; i < b->t->head_dim; i++) to[i] += by * from[i];
}

// (rows, head_dim) = weights (rows, own + keys) times keys or values.
static void mix(const QueryBlock *b, const float *weights, const float *const *own, Panels values,
                float *out) {
    Product p = {.a = view_rows(weights + b->t->own, b->stride),
                 .panels = values,
                 .c = out,
                 .stride = (size_t)b->t->head_dim,
                 .m = b->rows,
                 .n = b->t->head_dim,
                 .k = b->keys};
    b->k->product(&p, b->scratch);
    for (int r = 0; r < b->rows; r++) {
        Own o = own_of(b, r);
        for (int m = 0; m < o.count; m++)
            add_times(b, weights[(size_t)r * b->stride + (size_t)(o.skip + m)],
                      own[own_array(b, m)] + own_at(b, &o, m), out + (size_t)r * (size_t)b->t->head_dim);
    }
}

// gradient of keys or values += weights^T (own + keys, rows) times (rows, head_dim).
static void spread(const QueryBlock *b, const float *weights, const float *from, float *const *own,
                   float *gradient) {
    for (int r = 0; r < b->rows; r++) {
        Own o = own_of(b, r);
        for (int m = 0; m < o.count; m++)
            add_times(b, weights[(size_t)r * b->stride + (size_t)(o.skip + m)],
                      from + (size_t)r * (size_t)b->t->head_dim, own[own_array(b, m)] + own_at(b, &o, m));
    }
    Product p = {.a = view_transposed(weights + b->t->own, b->stride),
                 .b = view_rows(from, (size_t)b->t->head_dim),
                 .c = gradient,
                 .stride = b->t->stride,
                 .m = b->keys,
                 .n = b->t->head_dim,
                 .k = b->rows,
                 .add = true};
    b->k->product(&p, b->scratch);
}

// All columns of a row.
static int columns(const QueryBlock *b) { return b->t->own + b->keys; }

// Fills q, and p with the weights.
static void weigh(const QueryBlock *b) {
    gather(b, b->t->q, b->t->stride, b->q);
    against(b, b->q, b->t->own_k, b->packed->keys_turned, b->p);
    for (int r = 0; r < b->rows; r++) {
        Own o = own_of(b, r);
        b->k->softmax_forward(b->p + (size_t)r * b->stride + o.skip, scale_of(b->t), o.visible,
                              columns(b) - o.skip);
    }
}

void attention_forward(const AttentionTask *t, const TrainKernels *k, float *scratch) {
    Packed packed = {.keys_turned = pack(t, k, t->k, true, &scratch),
                     .values = pack(t, k, t->v, false, &scratch)};
    for (int first = 0; first < t->rows; first += block_queries(t->group)) {
        QueryBlock b = block_at(t, k, &packed, first, scratch);
        weigh(&b);
        mix(&b, b.p, t->own_v, packed.values, b.mixed);
        scatter(&b, b.mixed, t->mixed, t->mixed_stride);
    }
}

static void clear(const AttentionTask *t, float *gradient) {
    for (int r = 0; r < t->rows; r++)
        memset(gradient + (size_t)r * t->stride, 0, (size_t)t->head_dim * sizeof *gradient);
}

void attention_clear(const AttentionTask *t) {
    clear(t, t->dk);
    clear(t, t->dv);
    for (int m = 0; m < (t->begin ? 1 : t->own); m++) {
        clear(t, t->own_dk[m]);
        clear(t, t->own_dv[m]);
    }
}

void attention_backward(const AttentionTask *t, const TrainKernels *k, float *scratch) {
    Packed packed = {.keys_turned = pack(t, k, t->k, true, &scratch),
                     .values_turned = pack(t, k, t->v, true, &scratch),
                     .keys = pack(t, k, t->k, false, &scratch)};
    for (int first = 0; first < t->rows; first += block_queries(t->group)) {
        QueryBlock b = block_at(t, k, &packed, first, scratch);
        weigh(&b);
        gather(&b, t->dmixed, t->mixed_stride, b.mixed);
        spread(&b, b.p, b.mixed, t->own_dv, t->dv);
        against(&b, b.mixed, t->own_v, packed.values_turned, b.dp);
        for (int r = 0; r < b.rows; r++) {
            Own o = own_of(&b, r);
            size_t row = (size_t)r * b.stride + (size_t)o.skip;
            k->softmax_backward(b.dp + row, b.p + row, scale_of(t), o.visible, columns(&b) - o.skip);
        }
        spread(&b, b.dp, b.q, t->own_dk, t->dk);
        mix(&b, b.dp, t->own_k, packed.keys, b.mixed);
        scatter(&b, b.mixed, t->dq, t->stride);
    }
}
