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
#include "engine/cpu/kernels/lanes.h"
#include "engine/cpu/kernels/ops.h"

// --- packing
//
// Groups have up to BLOCK_ROWS rows, in steps of LANE_PAIRS columns one after another, so that the inner loop
// reads one stream. Groups are as even as possible: with few rows a step loads about as much as it
// multiplies, so that 4 and 4 rows take three quarters of the time of 6 and 2. For bf16 weights a step of
// floats has its even columns, then its odd ones; if the set multiplies pairs of bf16, a step is 32 of them
// in order. Columns are padded with zeros.
//
//      group of rows r0 r1 .. | step 0: r0's 32, r1's 32, .. | step 1: r0's 32, ..

// The way of a product, by the weights' type and the rounding of activations.
typedef enum { FORM_F32, FORM_F16, FORM_BF16, FORM_PAIRS } Form;

static inline Form packed_form(const Packed *p) {
    if (p->weights == DTYPE_F32) return FORM_F32;
    if (p->weights == DTYPE_F16) return FORM_F16;
    return HAS_PAIRS && p->compute == COMPUTE_BF16 ? FORM_PAIRS : FORM_BF16;
}

static inline int padded_columns(int columns) { return (columns + LANE_PAIRS - 1) / LANE_PAIRS * LANE_PAIRS; }

// Bytes of a weight; of a step of a packed row; of the row.
static inline size_t weight_bytes(Form form) { return form == FORM_F32 ? sizeof(float) : sizeof(uint16_t); }
static inline size_t step_bytes(Form form) {
    return LANE_PAIRS * (form == FORM_PAIRS ? sizeof(uint16_t) : sizeof(float));
}
static inline size_t row_bytes(Form form, int columns) {
    return (size_t)padded_columns(columns) / LANE_PAIRS * step_bytes(form);
}

static inline int group_count(int rows) { return (rows + BLOCK_ROWS - 1) / BLOCK_ROWS; }
static inline int group_first(int rows, int group) { return rows * group / group_count(rows); }
static inline int group_of(int rows, int row) { return ((row + 1) * group_count(rows) - 1) / rows; }

// Packs one step of one row, n <= LANE_PAIRS columns; the rest are zeros.
static inline void pack_step(const float *x, int n, const Packed *p, Form form, void *to) {
    float step[LANE_PAIRS] = {0};
    memcpy(step, x, (size_t)n * sizeof *x);
    if (form == FORM_PAIRS) {
        uint16_t half[LANE_PAIRS] = {0};
        for (int i = 0; i < LANE_PAIRS; i++) half[i] = f32_to_bf16(step[i]);
        memcpy(to, half, sizeof half);
        return;
    }
    if (p->compute == COMPUTE_BF16)
        for (int i = 0; i < LANE_PAIRS; i++) step[i] = bf16_round(step[i]);
    if (p->compute == COMPUTE_F16)
        for (int i = 0; i < LANE_PAIRS; i++) step[i] = f16_round(step[i]);
    if (form != FORM_BF16) {
        memcpy(to, step, sizeof step);
        return;
    }
    float *even = to;
    for (int i = 0; i < LANES; i++) {
        even[i] = step[2 * i];
        even[LANES + i] = step[2 * i + 1];
    }
}

static inline void pack_values(const float *x, const Packed *p, int first, int last) {
    Form form = packed_form(p);
    int columns = p->columns;
    for (int r = first; r < last; r++) {
        int group = group_of(p->rows, r), first_row = group_first(p->rows, group);
        int rows = group_first(p->rows, group + 1) - first_row;
        unsigned char *to = (unsigned char *)p->data + (size_t)first_row * row_bytes(form, columns) +
                            (size_t)(r - first_row) * step_bytes(form);
        const float *from = x + (size_t)r * (size_t)columns;
        for (int k = 0; k < columns; k += LANE_PAIRS, to += (size_t)rows * step_bytes(form))
            pack_step(from + k, columns - k < LANE_PAIRS ? columns - k : LANE_PAIRS, p, form, to);
    }
}

// --- one block: BLOCK_OUTPUTS outputs of a group of rows, summed in registers

enum { CACHE_LINE = 64 };

INLINE void fetch(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(at + i, 0, 2);
}

// Fetches the weights that the block itself reads soon, from the second-level cache into the first. With a
// row or two the processor has time to look ahead by itself.
enum { FEW_ROWS = 2, FETCH_NEAR = 1024 };

INLINE void fetch_near(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(at + FETCH_NEAR + i, 0, 3);
}

// Half a step of weights: the even or the odd columns of bf16, the lower or the upper half of other types.
INLINE Lanes load_half(Form form, const unsigned char *w, int half) {
    if (form == FORM_F32) return lanes_load((const float *)(const void *)w + half * LANES);
    const uint16_t *h = (const uint16_t *)(const void *)w;
    if (form == FORM_F16) return lanes_f16(h + half * LANES);
    return half ? lanes_bf16_odd(h) : lanes_bf16_even(h);
}

// Adds half a step to all sums of a block; pairs are added as one half.
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

// Adds a step to all sums of a block.
INLINE void add_step(Form form, int outputs, int rows, const unsigned char *const *w, const unsigned char *x,
                     Lanes (*sum)[BLOCK_ROWS]) {
    add_half(form, outputs, rows, w, x, 0, sum);
    if (form != FORM_PAIRS) add_half(form, outputs, rows, w, x, 1, sum);
}

// A block, apart from its counts.
typedef struct ProductBlock {
    const unsigned char *w; // of the first output
    int columns;
    size_t apart;           // bytes from one output's weights to the next one's
    const unsigned char *x; // of the first row
    float *y;               // output o of row r at y[r * stride + o * y_apart]
    size_t stride, y_apart;
    const unsigned char *ahead; // weights fetched meanwhile, with outputs `apart` like w
    int fetched;                // how many outputs of these
    bool near;                  // fetch the block's own weights into the first-level cache
} ProductBlock;

INLINE void product_put(int outputs, int rows, Lanes (*sum)[BLOCK_ROWS], const ProductBlock *b) {
    for (int r = 0; r < rows; r++) {
        float *y = b->y + (size_t)r * b->stride, sums[4];
        if (outputs == 4) lanes_sum_four(sum[0][r], sum[1][r], sum[2][r], sum[3][r], sums);
        for (int o = 0; o < outputs; o++)
            y[(size_t)o * b->y_apart] = outputs == 4 ? sums[o] : lanes_sum(sum[o][r]);
    }
}

// fetched: how many outputs; a constant if it's all of them, since with a loop here the processor sees less
// of the coming loads: a core read one row at 21 GB/s, and at 25 without the loop.
INLINE void product_block(Form form, int outputs, int rows, int fetched, const ProductBlock *b) {
    size_t size = weight_bytes(form), step = LANE_PAIRS * size;
    int whole = b->columns / LANE_PAIRS, rest = b->columns % LANE_PAIRS;
    const unsigned char *w[BLOCK_OUTPUTS], *x = b->x, *ahead = b->ahead;
    Lanes sum[BLOCK_OUTPUTS][BLOCK_ROWS];
    for (int o = 0; o < outputs; o++) {
        w[o] = b->w + (size_t)o * b->apart;
        for (int r = 0; r < rows; r++) sum[o][r] = lanes_set(0);
    }
    for (int k = 0; k < whole; k++, x += (size_t)rows * step_bytes(form)) {
        for (int o = 0; o < fetched; o++) fetch(ahead + (size_t)o * b->apart, step);
        for (int o = 0; rows > FEW_ROWS && b->near && o < outputs; o++) fetch_near(w[o], step);
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

// Turns the counts into constants, so that the sums above stay in registers. Cases beyond BLOCK_ROWS don't
// happen; they are clipped to compile.
INLINE void product_rows(Form form, int outputs, int rows, int fetched, const ProductBlock *b) {
#define ROWS(count) (count < BLOCK_ROWS ? count : BLOCK_ROWS)
    switch (rows) {
    case 1: product_block(form, outputs, ROWS(1), fetched, b); break;
    case 2: product_block(form, outputs, ROWS(2), fetched, b); break;
    case 3: product_block(form, outputs, ROWS(3), fetched, b); break;
    case 4: product_block(form, outputs, ROWS(4), fetched, b); break;
    case 5: product_block(form, outputs, ROWS(5), fetched, b); break;
    case 6: product_block(form, outputs, ROWS(6), fetched, b); break;
    }
#undef ROWS
}

// --- all blocks: chunks and prefetching

enum {
    CHUNK_BYTES = 448 << 10
}; // of activations, and half as much of weights: second-level caches have 1 MB

// Hardware prefetchers stop at the end of a page, so software prefetches. While a block is multiplied with
// one group of rows after another, the next block is fetched into the second-level cache, a part of it with
// each group; if there's only one group, each stream is fetched this many bytes ahead. With a row or two a
// Zen 4 has time to look ahead by itself: 1 KB takes 8% less time than 2 KB. With more rows, the weights are
// then fetched from the second level into the first (fetch_near): compared with 2 KB into the second level
// only, steps of 4, 6 and 8 tokens take 6, 10 and 9% less time. For short rows that several groups share, too
// much of this would be beyond their end: it costs 3 to 6%.
enum { FETCH_AHEAD = 4096, FETCH_AHEAD_FEW = 1024, LONG_ROW = 4096 };

static inline int fetch_ahead(int rows) { return rows <= FEW_ROWS ? FETCH_AHEAD_FEW : FETCH_AHEAD; }

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
        if (b.fetched == outputs) product_rows(form, outputs, rows, outputs, &b);
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
