// Products of weights and activations in lanes; part of each kernel set (see lanes.h).
//
// y[r][n] = sum over k of w[n][k] x[r][k] takes both operands along k, as they lie: weights in place from the
// mapped file, BLOCK_OUTPUTS x BLOCK_ROWS sums in registers. Floor: max(weights' bytes / memory bandwidth,
// rows * outputs * columns / (lanes * units) cycles).
//
// The outputs of a block are not neighbours: each is the next one of its own part of the chunk, so that
// memory is read as a few long streams. Neighbours side by side are streams that end after a row, which is a
// page or two: a Zen 4 read such weights at 25 GB/s, long streams at 45, its memory gives 47.
//
//      chunk   | part 0: 0 1 2 3 .. | part 1: 0 1 2 3 .. | part 2: .. | part 3: .. | rest, one by one
//      block 0         |                      |                  |            |
//      block 1           |                      |                  |            |
#pragma once
#include "engine/cpu/pack.h"

enum { CHUNK_BYTES = 448 << 10 }; // of activations, half as much of weights: second-level caches have 1 MB

// Hardware prefetchers end at a page, so they are told what comes. While a block is multiplied with one group
// of rows after the other, the next block is fetched into the second-level cache, a part of it with each
// group; where there is one group only, what comes in each stream.
enum { FETCH_AHEAD = 2048, CACHE_LINE = 64 };

INLINE void fetch(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(at + i, 0, 2);
}

// Half a step of weights: the even or the odd columns of bf16, the lower or the upper half of the others.
INLINE Lanes load_half(Form form, const unsigned char *w, int half) {
    if (form == FORM_F32) return lanes_load((const float *)(const void *)w + half * LANES);
    const uint16_t *h = (const uint16_t *)(const void *)w;
    if (form == FORM_F16) return lanes_f16(h + half * LANES);
    return half ? lanes_bf16_odd(h) : lanes_bf16_even(h);
}

// Adds part `half` of a step to all sums of a block; pairs go in one part.
INLINE void add_half(Form form, int outputs, int rows, const unsigned char *const *w, const unsigned char *x,
                     int half, Lanes (*sum)[BLOCK_ROWS]) {
    Lanes weight[BLOCK_OUTPUTS];
#pragma GCC unroll 8
    for (int o = 0; o < outputs; o++)
        weight[o] =
            form == FORM_PAIRS ? lanes_load((const float *)(const void *)w[o]) : load_half(form, w[o], half);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        Lanes in = lanes_load((const float *)(const void *)(x + (size_t)r * step_bytes(form)) + half * LANES);
#pragma GCC unroll 8
        for (int o = 0; o < outputs; o++)
            sum[o][r] = form == FORM_PAIRS ? lanes_pairs(weight[o], in, sum[o][r])
                                           : lanes_fma(weight[o], in, sum[o][r]);
    }
}

// One step of all sums of a block.
INLINE void add_step(Form form, int outputs, int rows, const unsigned char *const *w, const unsigned char *x,
                     Lanes (*sum)[BLOCK_ROWS]) {
    add_half(form, outputs, rows, w, x, 0, sum);
    if (form != FORM_PAIRS) add_half(form, outputs, rows, w, x, 1, sum);
}

// What a block is, beside its counts.
typedef struct Block {
    const unsigned char *w; // of the first output
    int columns;
    size_t apart;           // bytes from one output's weights to the next one's
    const unsigned char *x; // of the first row
    float *y;               // output o of row r at y[r * stride + o * y_apart]
    size_t stride, y_apart;
    const unsigned char *ahead; // what is fetched meanwhile, outputs apart like w
    int fetched;                // outputs of it
} Block;

INLINE void product_put(int outputs, int rows, Lanes (*sum)[BLOCK_ROWS], const Block *b) {
    for (int r = 0; r < rows; r++) {
        float *y = b->y + (size_t)r * b->stride, sums[4];
        if (outputs == 4) lanes_sum_four(sum[0][r], sum[1][r], sum[2][r], sum[3][r], sums);
        for (int o = 0; o < outputs; o++)
            y[(size_t)o * b->y_apart] = outputs == 4 ? sums[o] : lanes_sum(sum[o][r]);
    }
}

INLINE void product_block(Form form, int outputs, int rows, const Block *b) {
    size_t size = weight_bytes(form), step = LANE_PAIRS * size;
    int whole = b->columns / LANE_PAIRS, rest = b->columns % LANE_PAIRS;
    const unsigned char *w[BLOCK_OUTPUTS], *x = b->x, *ahead = b->ahead;
    Lanes sum[BLOCK_OUTPUTS][BLOCK_ROWS];
    for (int o = 0; o < outputs; o++) {
        w[o] = b->w + (size_t)o * b->apart;
        for (int r = 0; r < rows; r++) sum[o][r] = lanes_set(0);
    }
    for (int k = 0; k < whole; k++, x += (size_t)rows * step_bytes(form)) {
        for (int o = 0; o < b->fetched; o++) fetch(ahead + (size_t)o * b->apart, step);
        ahead += step;
        add_step(form, outputs, rows, w, x, sum);
        for (int o = 0; o < outputs; o++) w[o] += step;
    }
    if (rest) {
        unsigned char end[BLOCK_OUTPUTS][LANE_PAIRS * sizeof(float)] = {{0}};
        for (int o = 0; o < outputs; o++) w[o] = memcpy(end[o], w[o], (size_t)rest * size);
        add_step(form, outputs, rows, w, x, sum);
    }
    product_put(outputs, rows, sum, b);
}

// The counts become constants here, so that the sums above stay in registers. Cases beyond BLOCK_ROWS do not
// happen; they are clipped to compile.
INLINE void product_rows(Form form, int outputs, int rows, const Block *b) {
#define ROWS(count) (count < BLOCK_ROWS ? count : BLOCK_ROWS)
    switch (rows) {
    case 1: product_block(form, outputs, ROWS(1), b); break;
    case 2: product_block(form, outputs, ROWS(2), b); break;
    case 3: product_block(form, outputs, ROWS(3), b); break;
    case 4: product_block(form, outputs, ROWS(4), b); break;
    case 5: product_block(form, outputs, ROWS(5), b); break;
    case 6: product_block(form, outputs, ROWS(6), b); break;
    }
#undef ROWS
}

// What is done in one go: outputs [n, end) of groups [first, last) of rows, then what is behind `end`.
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
        b.ahead = groups == 1 ? b.w + FETCH_AHEAD : b.w + (size_t)next * w_row + (size_t)from * b.apart;
        b.fetched = next ? outputs * (g + 1) / groups - from : 0;
        product_rows(form, outputs, group_first(p->rows, c->first + g + 1) - first, &b);
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

static inline void matmul(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    switch (packed_form(p)) {
    case FORM_F32: product_of(FORM_F32, w, p, y, stride, from, to); break;
    case FORM_F16: product_of(FORM_F16, w, p, y, stride, from, to); break;
    case FORM_BF16: product_of(FORM_BF16, w, p, y, stride, from, to); break;
    case FORM_PAIRS: product_of(FORM_PAIRS, w, p, y, stride, from, to); break;
    }
}
