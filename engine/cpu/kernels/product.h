// Products of weights and activations in lanes; part of each kernel set (see lanes.h).
//
// y[r][n] = sum over k of w[n][k] x[r][k] reads both operands along k: weights in place from the mapped file,
// activations packed, BLOCK_OUTPUTS x BLOCK_ROWS sums in registers. Floor: max(weights' bytes / memory
// bandwidth, rows * outputs * columns / (lanes * units) cycles).
//
// The outputs of a block aren't neighbours: each is the next one of its own part of the chunk, so that memory
// is read as a few long streams. Neighbours would be streams that end after a row, which is a page or two: a
// Zen 4 read such weights at 25 GB/s, long streams at 45 (results/speed.md).
//
//      chunk   | part 0: 0 1 2 3 .. | part 1: 0 1 2 3 .. | part 2: .. | part 3: .. | rest, one by one
//      block 0         |                      |                  |            |
//      block 1           |                      |                  |            |
#pragma once
#include "engine/cpu/kernels/block.h"

// --- all blocks: chunks and prefetching

// Of activations, and half as much of weights: for second-level caches of 1 MB; of 512 KB where processors
// have AVX2 only.
enum { CHUNK_BYTES = (LANES_HALVED ? 192 : 448) << 10 };

// Hardware prefetchers stop at the end of a page, so software prefetches. While a block is multiplied with
// one group of rows after another, the next block is fetched into the second-level cache, a part of it with
// each group; if there's only one group, each stream is fetched this many bytes ahead. With a row or two a
// Zen 4 has time to look ahead by itself: 1 KB takes 8% less time than 2 KB. With more rows, the weights are
// then fetched from the second level into the first (fetch_near): compared with 2 KB into the second level
// only, steps of 4, 6 and 8 tokens take 6, 10 and 9% less time. For short rows that several groups share, too
// much of this would be beyond their end: it costs 3 to 6%.
enum { FETCH_AHEAD = 4096, FETCH_AHEAD_FEW = 1024, LONG_ROW = 4096 };

static inline int fetch_ahead(int rows) {
    return rows <= FEW_ROWS || LANES_HALVED ? FETCH_AHEAD_FEW : FETCH_AHEAD;
}

// Outputs [n, end) of groups [first, last) of rows; the next chunk goes on from `end`, at most up to `to`.
typedef struct Chunk {
    int n, end, to;
    int first, last;
} Chunk;

// One block of outputs with all groups of a chunk. The next block is `next` rows of weights further on; 0:
// none.
INLINE void product_groups(Form form, int outputs, ProductBlock b, const Packed *p, const Chunk *c,
                           int next) {
    size_t row = row_bytes(form, p->columns), w_row = (size_t)p->columns * weight_bytes(form);
    int groups = c->last - c->first;
    float *y = b.y;
    for (int g = 0; g < groups; g++) {
        int first = group_first(p->rows, c->first + g), from = outputs * g / groups;
        b.x = (const unsigned char *)p->data + (size_t)first * row;
        b.y = y + (size_t)first * b.stride;
        int rows = group_first(p->rows, c->first + g + 1) - first;
        b.ahead =
            b.w + (groups == 1 ? (size_t)fetch_ahead(rows) : (size_t)next * w_row + (size_t)from * b.apart);
        b.near = groups == 1 || w_row >= LONG_ROW;
        b.fetched = next ? outputs * (g + 1) / groups - from : 0;
        if (!LANES_HALVED && b.fetched == outputs) product_rows(form, outputs, rows, outputs, &b);
        else product_rows(form, outputs, rows, b.fetched, &b);
    }
}

// y: of output n.
INLINE void product_chunk(Form form, const Tensor *w, const Packed *p, float *y, size_t stride,
                          const Chunk *c) {
    size_t row = (size_t)w->columns * weight_bytes(form);
    int count = c->end - c->n, part = count / BLOCK_OUTPUTS, whole = part * BLOCK_OUTPUTS;
    ProductBlock b = {
        .columns = w->columns, .stride = stride, .apart = row * (size_t)part, .y_apart = (size_t)part};
    b.w = (const unsigned char *)w->data + (size_t)c->n * row;
    b.y = y;
    for (int i = 0; i < part; i++, b.w += row, b.y++) {
        int behind = c->end < c->to ? whole - part + 1 : 0; // the next chunk
        product_groups(form, BLOCK_OUTPUTS, b, p, c, c->first ? 0 : i + 1 < part ? 1 : behind);
    }
    b.w += (size_t)(whole - part) * row;
    b.y += whole - part;
    for (int i = whole; i < count; i++, b.w += row, b.y++) product_groups(form, 1, b, p, c, 0);
}

static inline int at_least(size_t n, int unit) { return n < (size_t)unit ? unit : (int)n / unit * unit; }

// Weights that are read once are one chunk, for the longest possible streams. Otherwise a chunk of weights
// and one of activations fit into the second-level cache together.
INLINE void product_of(Form form, const Tensor *w, const Packed *p, float *y, size_t stride, int from,
                       int to) {
    int groups = group_count(p->rows), outputs = to - from;
    int many = at_least(CHUNK_BYTES / row_bytes(form, p->columns), BLOCK_ROWS) / BLOCK_ROWS;
    if (groups > 1)
        outputs = at_least(CHUNK_BYTES / 2 / ((size_t)padded_columns(p->columns) * weight_bytes(form)),
                           BLOCK_OUTPUTS);
    for (int n = from; n < to; n += outputs)
        for (int g = 0; g < groups; g += many) {
            Chunk c = {n, n + outputs < to ? n + outputs : to, to, g, g + many < groups ? g + many : groups};
            product_chunk(form, w, p, y + (n - from), stride, &c);
        }
}

// A function for each form: in a single function the compiler keeps the inner loops' pointers in memory.
#define PRODUCT(name, form)                                                                               \
    static __attribute__((noinline)) void name(const Tensor *w, const Packed *p, float *y, size_t stride, \
                                               int from, int to) {                                        \
        product_of(form, w, p, y, stride, from, to);                                                      \
    }
PRODUCT(product_f32, FORM_F32)
PRODUCT(product_f16, FORM_F16)
PRODUCT(product_bf16, FORM_BF16)
PRODUCT(product_pairs, FORM_PAIRS)
#undef PRODUCT

static inline void multiply_values(const Tensor *w, const Packed *p, float *y, size_t stride, int from,
                                   int to) {
    switch (packed_form(p)) {
    case FORM_F32: product_f32(w, p, y, stride, from, to); break;
    case FORM_F16: product_f16(w, p, y, stride, from, to); break;
    case FORM_BF16: product_bf16(w, p, y, stride, from, to); break;
    case FORM_PAIRS: product_pairs(w, p, y, stride, from, to); break;
    }
}

// --- peak: multiply-adds as fast as possible, sums in registers and nothing else, the ceiling of products.
// If the set multiplies pairs of bf16, only products of bf16 with bf16 do.

enum { PEAK_BLOCK = BLOCK_OUTPUTS * BLOCK_ROWS };

// Enough independent sums to cover the latency of a multiply-add on two units.
INLINE double peak_lanes(bool pairs, long rounds) {
    enum { SUMS = PEAK_BLOCK > 12 ? 20 : BLOCK_OUTPUTS > 1 && BLOCK_ROWS > 1 ? 6 : 3 };
    Lanes sum[SUMS], factor = lanes_set(0.3f), term = lanes_set(0.7f);
    float total = 0, start[LANES];
#pragma GCC unroll 24
    for (int i = 0; i < SUMS; i++) {
        for (int j = 0; j < LANES; j++)
            start[j] = (float)(i * LANES + j); // if they were equal, only one would be computed
        sum[i] = lanes_load(start);
    }
    for (long n = 0; n < rounds; n++) {
#pragma GCC unroll 24
        for (int i = 0; i < SUMS; i++)
            sum[i] = pairs ? lanes_pairs(factor, term, sum[i]) : lanes_fma(sum[i], factor, term);
    }
    for (int i = 0; i < SUMS; i++) total += lanes_sum(sum[i]);
    volatile float kept = total; // or all of it would be optimised away
    (void)kept;
    return 2.0 * (pairs ? LANE_PAIRS : LANES) * SUMS * (double)rounds;
}

static inline double peak_values(Compute compute, long rounds) {
    return HAS_PAIRS && compute == COMPUTE_BF16 ? peak_lanes(true, rounds) : peak_lanes(false, rounds);
}
