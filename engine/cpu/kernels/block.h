// One block of a product: outputs of a group of rows, summed in registers; part of each kernel set (see
// lanes.h).
#pragma once
#include "engine/cpu/kernels/pack.h"

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

enum { CACHE_LINE = 64, FEW_ROWS = 2 };

INLINE void fetch(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(at + i, 0, 2);
}

INLINE void product_put(int outputs, int rows, Lanes (*sum)[BLOCK_ROWS], const ProductBlock *b) {
    for (int r = 0; r < rows; r++) {
        float *y = b->y + (size_t)r * b->stride, sums[4];
        if (outputs == 4) lanes_sum_four(sum[0][r], sum[1][r], sum[2][r], sum[3][r], sums);
        for (int o = 0; o < outputs; o++)
            y[(size_t)o * b->y_apart] = outputs == 4 ? sums[o] : lanes_sum(sum[o][r]);
    }
}

#if LANES_HALVED
// Sums of sixteen lanes would take 24 of the sixteen registers, which have eight lanes. So lanes 0 to 7 are
// added for a strip of the columns, and then lanes 8 to 15 for the same strip, which is in the first-level
// cache by then; the other half's sums are in memory. With one row or two, all sums fit.
//
//      registers   12 sums | 3 weights | 1 input: 24 multiply-adds, 8 inputs, 3 weights read twice
//
// Some lines are in assembly, since gcc 12 puts sums into the weights' registers, and moves them back.
enum { STRIP = 24 }; // steps
typedef __m256 HalfSums[BLOCK_OUTPUTS][BLOCK_ROWS];

// Lanes 8 * part to 8 * part + 7 of half a step: the even or the odd columns of bf16, the lower or the upper
// half of other types.
INLINE __m256 load_weights(Form form, const unsigned char *w, int half, int part) {
    static const int32_t odd[] = {-65536, -65536, -65536, -65536, -65536, -65536, -65536, -65536};
    const uint16_t *h = (const uint16_t *)(const void *)w;
    int at = half * LANES + part * LANES / 2;
    __m256 x;
    if (form == FORM_F32) return _mm256_loadu_ps((const float *)(const void *)w + at);
    if (form == FORM_F16) return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(h + at)));
    const __m256i_u *bits = (const __m256i_u *)(const void *)(h + part * LANES);
    if (half) __asm__("vmovdqu %1, %0\n\tvpand %2, %0, %0" : "=&x"(x) : "m"(odd), "m"(*bits));
    else __asm__("vmovdqu %1, %0\n\tvpslld $16, %0, %0" : "=x"(x) : "m"(*bits));
    return x;
}

// sum of each output += weight * x
INLINE void add_row(int outputs, int row, const __m256 *weight, const float *x, __m256 (*sum)[BLOCK_ROWS]) {
    __m256 in;
    if (outputs == 1) sum[0][row] = _mm256_fmadd_ps(weight[0], _mm256_loadu_ps(x), sum[0][row]);
    else
        __asm__("vmovups %4, %3\n\t"
                "vfmadd231ps %3, %5, %0\n\tvfmadd231ps %3, %6, %1\n\tvfmadd231ps %3, %7, %2"
                : "+x"(sum[0][row]), "+x"(sum[1][row]), "+x"(sum[2][row]), "=&x"(in)
                : "m"(*(const __m256_u *)(const void *)x), "x"(weight[0]), "x"(weight[1]), "x"(weight[2]));
}

// The next steps of a block.
typedef struct Strip {
    const unsigned char *w[BLOCK_OUTPUTS], *x, *ahead[BLOCK_OUTPUTS];
    int steps;
    bool first; // of the block's strips: sums begin at zero
} Strip;

// Adds eight lanes, or with `part` 0 and `end` 2 all sixteen. Weights ahead of two outputs are fetched with
// the first lanes, those of the third with the others.
INLINE void add_parts(Form form, int outputs, int rows, int part, int end, const Strip *s, HalfSums *kept) {
    size_t step = LANE_PAIRS * weight_bytes(form), at = 0;
    const unsigned char *x = s->x;
    HalfSums sum[2];
#pragma GCC unroll 2
    for (int i = part; i < end; i++)
#pragma GCC unroll 4
        for (int o = 0; o < outputs; o++)
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) sum[i][o][r] = s->first ? _mm256_setzero_ps() : kept[i][o][r];
    for (int k = 0; k < s->steps; k++, at += step, x += (size_t)rows * step_bytes(form)) {
        for (int o = part ? 2 : 0; o < (end == 2 ? outputs : outputs - 1); o++) fetch(s->ahead[o] + at, step);
#pragma GCC unroll 4
        for (int i = 2 * part; i < 2 * end; i++) {
            const float *in = (const float *)(const void *)x + i % 2 * LANES + i / 2 * LANES / 2;
            __m256 weight[BLOCK_OUTPUTS];
#pragma GCC unroll 4
            for (int o = 0; o < outputs; o++) weight[o] = load_weights(form, s->w[o] + at, i % 2, i / 2);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) add_row(outputs, r, weight, in + r * LANE_PAIRS, sum[i / 2]);
        }
    }
#pragma GCC unroll 2
    for (int i = part; i < end; i++)
#pragma GCC unroll 4
        for (int o = 0; o < outputs; o++)
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) kept[i][o][r] = sum[i][o][r];
}

INLINE void add_strip(Form form, int outputs, int rows, const Strip *s, HalfSums *kept) {
    if (rows <= FEW_ROWS) add_parts(form, outputs, rows, 0, 2, s, kept);
    else {
        add_parts(form, outputs, rows, 0, 1, s, kept);
        add_parts(form, outputs, rows, 1, 2, s, kept);
    }
}

// A function for each kind of block: gcc runs out of registers when they are parts of a larger one.
typedef void AddStrip(const Strip *s, HalfSums *kept);
#define STRIPS(apply)                                                                                 \
    apply(F32, 1) apply(F32, 2) apply(F32, 3) apply(F32, 4) apply(F16, 1) apply(F16, 2) apply(F16, 3) \
        apply(F16, 4) apply(BF16, 1) apply(BF16, 2) apply(BF16, 3) apply(BF16, 4)
#define ADD_STRIP(form, rows)                                                                            \
    static __attribute__((noinline)) void strip_##form##_##rows(const Strip *s, HalfSums *kept) {        \
        add_strip(FORM_##form, BLOCK_OUTPUTS, rows, s, kept);                                            \
    }                                                                                                    \
    static __attribute__((noinline)) void strip_##form##_##rows##_rest(const Strip *s, HalfSums *kept) { \
        add_strip(FORM_##form, 1, rows, s, kept);                                                        \
    }
STRIPS(ADD_STRIP)
static AddStrip *const ADD[FORM_PAIRS][BLOCK_ROWS][2] = {
#define ROW(form, rows) [FORM_##form][rows - 1] = {strip_##form##_##rows##_rest, strip_##form##_##rows},
    STRIPS(ROW)};

INLINE void product_rows(Form form, int outputs, int rows, int fetched, const ProductBlock *b) {
    size_t size = weight_bytes(form), step = LANE_PAIRS * size;
    int whole = b->columns / LANE_PAIRS, rest = b->columns % LANE_PAIRS;
    unsigned char end[BLOCK_OUTPUTS][LANE_PAIRS * sizeof(float)];
    HalfSums kept[2];
    AddStrip *add = ADD[form][rows - 1][outputs > 1];
    Strip s = {.x = b->x, .first = true};
    for (int o = 0; o < outputs; o++) {
        s.w[o] = b->w + (size_t)o * b->apart;
        s.ahead[o] = o < fetched ? b->ahead + (size_t)o * b->apart : s.w[o];
    }
    for (int k = 0; k < whole + (rest > 0); k += s.steps, s.first = false) {
        s.steps = rows <= FEW_ROWS || whole - k < STRIP ? whole - k : STRIP;
        if (!s.steps) {
            s.steps = 1;
            memset(end, 0, sizeof end);
            for (int o = 0; o < outputs; o++) s.w[o] = memcpy(end[o], s.w[o], (size_t)rest * size);
        }
        add(&s, kept);
        for (int o = 0; o < outputs; o++) {
            s.w[o] += (size_t)s.steps * step;
            s.ahead[o] += (size_t)s.steps * step;
        }
        s.x += (size_t)s.steps * (size_t)rows * step_bytes(form);
    }
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outputs; o++)
            b->y[(size_t)r * b->stride + (size_t)o * b->y_apart] =
                lanes_sum((Lanes){kept[0][o][r], kept[1][o][r]});
}

#else
// Fetches the weights that the block itself reads soon, from the second-level cache into the first. With a
// row or two the processor has time to look ahead by itself.
enum { FETCH_NEAR = 1024 };

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
#endif
