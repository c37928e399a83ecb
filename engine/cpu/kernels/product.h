// Products of weights and activations in lanes; part of each kernel set (see lanes.h).
//
// y[r][n] = sum over k of w[n][k] x[r][k] takes both operands along k, as they lie: weights in place from the
// mapped file, BLOCK_OUTPUTS x BLOCK_ROWS sums in registers. Floor: max(weights' bytes / memory bandwidth,
// rows * outputs * columns / (lanes * units) cycles).
//
// The outputs of a block are not neighbours: each is the next one of its own part of the chunk, so that
// memory is read as a few long streams. Neighbours side by side are streams that end after a row, which is a
// page or two: a Zen 4 read such weights at 25 GB/s, long streams at 45 (docs/speed.md).
//
//      chunk   | part 0: 0 1 2 3 .. | part 1: 0 1 2 3 .. | part 2: .. | part 3: .. | rest, one by one
//      block 0         |                      |                  |            |
//      block 1           |                      |                  |            |
#pragma once
#include "engine/cpu/kernels/product_block.h"

enum { CHUNK_BYTES = 448 << 10 }; // of activations, half as much of weights: second-level caches have 1 MB

// Hardware prefetchers end at a page, so they are told what comes. While a block is multiplied with one group
// of rows after the other, the next block is fetched into the second-level cache, a part of it with each
// group; where there is one group only, what comes in each stream, so many bytes ahead. A row or two leave a
// Zen 4 time to look ahead by itself: 1 KB takes 8% less time than 2 KB. With more rows what has come is
// fetched once more, into the first level (fetch_near): against 2 KB into the second level alone, steps of 4,
// 6 and 8 tokens take 6, 10 and 9% less. Of short rows, which several groups share, too much of that is
// after their end: there it costs 3 to 6%.
enum { FETCH_AHEAD = 4096, FETCH_AHEAD_FEW = 1024, LONG_ROW = 4096 };

static inline int fetch_ahead(int rows) { return rows <= FEW_ROWS ? FETCH_AHEAD_FEW : FETCH_AHEAD; }

// What is done in one go: outputs [n, end) of groups [first, last) of rows, then what is after `end`.
typedef struct Chunk {
    int n, end, to;
    int first, last;
} Chunk;

// One block of outputs with all groups of a chunk; `next` rows of weights on stands the next one, 0: nowhere.
INLINE void product_groups(Form form, int outputs, Block b, const Packed *p, const Chunk *c, int next) {
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
        if (b.fetched == outputs) product_rows(form, outputs, rows, outputs, &b);
        else product_rows(form, outputs, rows, b.fetched, &b);
    }
}

// y is that of output n.
INLINE void product_chunk(Form form, const Tensor *w, const Packed *p, float *y, size_t stride,
                          const Chunk *c) {
    size_t row = (size_t)w->columns * weight_bytes(form);
    int count = c->end - c->n, part = count / BLOCK_OUTPUTS, whole = part * BLOCK_OUTPUTS;
    Block b = {.columns = w->columns, .stride = stride, .apart = row * (size_t)part, .y_apart = (size_t)part};
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

// Weights that are read once are one chunk: the longest streams there are. Otherwise a chunk of weights and
// one of activations fit into the second-level cache together.
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

// A function for each form: in one for all, the compiler keeps the inner loops' pointers in memory.
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

static inline void matmul(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    switch (packed_form(p)) {
    case FORM_F32: product_f32(w, p, y, stride, from, to); break;
    case FORM_F16: product_f16(w, p, y, stride, from, to); break;
    case FORM_BF16: product_bf16(w, p, y, stride, from, to); break;
    case FORM_PAIRS: product_pairs(w, p, y, stride, from, to); break;
    }
}
