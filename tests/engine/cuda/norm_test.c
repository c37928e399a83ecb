// The norm of rows of any width, those that a thread holds at once and wider ones, against sums in double;
// and the same bits whichever thread goes first, and whatever shares the launch. A norm that puts the parts
// which a product has left, against a put and a norm.
#include "tests/simt/settings.h"
#include "tests/support/check.h"

#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/kernels/runtime.h"

#include <math.h>
#include <string.h>

enum { NODES = 5, ROWS = 3, WIDEST = 20011 };

typedef struct World {
    float hidden[NODES][WIDEST], weight[WIDEST], want[ROWS][WIDEST], got[ROWS][WIDEST];
} World;

static const int NODE[ROWS] = {4, 0, 2};
static const float EPSILON = 1e-3f;

static void *take(size_t bytes, const void *from, void *stream) {
    void *block;
    assert_int_equal(gpu_take(&block, bytes), 0);
    gpu_copy(block, from, bytes, stream);
    return block;
}

static void reckon(World *w, int width, bool weighted) {
    for (int r = 0; r < ROWS; r++) {
        const float *x = w->hidden[0] + (size_t)NODE[r] * (size_t)width;
        double sum = 0, scale;
        for (int i = 0; i < width; i++) sum += (double)x[i] * (double)x[i];
        scale = 1 / sqrt(sum / width + (double)EPSILON);
        for (int i = 0; i < width; i++)
            w->want[r][i] = weighted ? (float)((double)x[i] * scale * (double)w->weight[i]) : x[i];
    }
}

// Rows [0, count) of the list, packed closely into `out`.
static void run(World *w, int width, bool weighted, int count, float *out) {
    void *stream;
    int rows[2 + ROWS] = {count, -1}; // a RowList
    size_t row = (size_t)width * sizeof(float);
    memcpy(rows + 2, NODE, sizeof NODE);
    assert_int_equal(gpu_stream_open(&stream), 0);
    memset(out, 0xff, ROWS * row);
    Norm n = {.rows = take(sizeof rows, rows, stream),
              .hidden = take(NODES * row, w->hidden, stream),
              .weight = weighted ? take(row, w->weight, stream) : NULL,
              .epsilon = EPSILON,
              .width = width,
              .stride = width,
              .to = {.data = take(ROWS * row, out, stream), .pitch = width}};
    gpu_norm(&n, 8, stream);
    gpu_copy(out, n.to.data, ROWS * row, stream);
    gpu_stream_wait(stream);
    void *const all[] = {(void *)(uintptr_t)n.rows, (void *)(uintptr_t)n.hidden, (void *)(uintptr_t)n.weight,
                         n.to.data};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_give(all[i]);
    gpu_stream_close(stream);
}

static void check(World *w, int width, bool weighted) {
    float *got = w->got[0], *other = w->want[0], alone[2];
    reckon(w, width, weighted);
    for (int order = 0; order < SIMT_ORDERS; order++) {
        float *to = order ? other : got; // the reckoned rows have been looked at by then
        simt_settings.order = (SimtOrder)order;
        simt_settings.early = order > 0;
        run(w, width, weighted, ROWS, to);
        if (width == 4096 && weighted)
            TEST_SAME_BITS(to, ROWS * (size_t)width * sizeof *to, (uint64_t)0xab43078d096d764e);
        if (order && memcmp(to, got, ROWS * (size_t)width * sizeof *to))
            fail_msg("%d wide: other bits in another order", width);
        for (int r = 0; order == 0 && r < ROWS; r++)
            for (int i = 0; i < width; i++) {
                float x = got[(size_t)r * (size_t)width + (size_t)i], want = w->want[r][i];
                if (!(fabsf(x - want) <= (weighted ? 2e-6f * fabsf(want) : 0)))
                    fail_msg("%d wide, row %d: number %d is %.9g, wanted %.9g", width, r, i, (double)x,
                             (double)want);
            }
    }
    simt_settings.order = SIMT_NATURAL;
    simt_settings.early = false;
    alone[0] = got[0], alone[1] = got[width - 1];
    run(w, width, weighted, 1, other);
    assert_memory_equal(&other[0], &alone[0], sizeof *alone);
    assert_memory_equal(&other[width - 1], &alone[1], sizeof *alone);
    assert_true(isnan(other[width])); // the next row's
}

static void any_width(void **state) {
    static const int WIDTHS[] = {1, 7, 255, 256, 257, 4096, 8191, 8192, 8193, WIDEST};
    static World w;
    Random r = test_random(512);
    (void)state;
    for (int i = 0; i < WIDEST; i++) {
        for (int node = 0; node < NODES; node++) w.hidden[node][i] = random_normal(&r);
        w.weight[i] = random_normal(&r);
    }
    for (size_t i = 0; i < sizeof WIDTHS / sizeof *WIDTHS; i++)
        for (int weighted = 0; weighted < 2; weighted++) check(&w, WIDTHS[i], weighted);
}

// A row's rounded numbers, and the first place that reported an infinity.
static unsigned round_row(const float *x, int count, Dtype dtype, unsigned place, uint16_t *out) {
    enum { NONE = 9 };
    void *stream;
    int rows[2] = {1, 0}; // a RowList
    unsigned least = NONE;
    size_t bytes = (size_t)count * sizeof *out;
    assert_int_equal(gpu_stream_open(&stream), 0);
    Norm n = {.rows = take(sizeof rows, rows, stream),
              .hidden = take((size_t)count * sizeof *x, x, stream),
              .width = count,
              .stride = count,
              .to = {.data = take(bytes, out, stream),
                     .pitch = count,
                     .form = FORM_ROWS,
                     .dtype = dtype,
                     .overflow = {take(sizeof least, &least, stream), place}}};
    gpu_norm(&n, 8, stream);
    gpu_copy(out, n.to.data, bytes, stream);
    gpu_copy(&least, n.to.overflow.least, sizeof least, stream);
    gpu_stream_wait(stream);
    void *const all[] = {(void *)(uintptr_t)n.rows, (void *)(uintptr_t)n.hidden, n.to.data,
                         n.to.overflow.least};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_give(all[i]);
    gpu_stream_close(stream);
    return least;
}

// Of all sizes that f16 has and some that it has not, the bits that the CPU gives.
static void any_number(void **state) {
    enum { COUNT = 6000, FINITE = 5000, UNTOLD = 9, PLACE = 4 };
    static float x[COUNT];
    static uint16_t got[COUNT];
    Random r = test_random(513);
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        x[i] = ldexpf(1 + (float)random_uniform(&r), test_between(&r, -28, i < FINITE ? 14 : 18));
        if (i % 3 == 0) x[i] = ldexpf((float)test_between(&r, 0, 5000), test_between(&r, -26, -23)); // ties
        if (i % 2) x[i] = -x[i];
    }
    x[0] = 65519.996f;
    for (Dtype dtype = DTYPE_F16; dtype <= DTYPE_BF16; dtype++)
        for (int count = FINITE; count <= COUNT; count += COUNT - FINITE) {
            bool infinite = dtype == DTYPE_F16 && count == COUNT;
            assert_int_equal(round_row(x, count, dtype, PLACE, got), infinite ? PLACE : UNTOLD);
            for (int i = 0; i < count; i++) {
                uint16_t want = dtype == DTYPE_F16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]);
                if (got[i] != want)
                    fail_msg("%a in %s is %04x, wanted %04x", (double)x[i], dtype_name(dtype), got[i], want);
            }
        }
    x[1] = 65520; // the first that is infinite; and a lower place stays
    assert_int_equal(round_row(x, FINITE, DTYPE_F16, PLACE, got), PLACE);
    assert_int_equal(round_row(x, FINITE, DTYPE_F16, UNTOLD + 1, got), UNTOLD);
}

// --- parts of a product

enum { LEFT_WIDEST = 8200, LEFT_PITCH = 8256 };
typedef struct Left {
    float hidden[NODES * LEFT_WIDEST], sums[PARTS_MAX * ROWS * LEFT_WIDEST], weight[LEFT_WIDEST],
        bias[LEFT_WIDEST];
} Left;
typedef struct Normed {
    float hidden[NODES * LEFT_WIDEST];
    uint16_t to[8 * LEFT_PITCH];
} Normed;

// Hidden states and normed rows; `fused`: by the norm, else by a put in front of it.
static void put_and_norm(const Left *l, int width, int parts, const Put *how, Dtype dtype, bool fused,
                         Normed *out) {
    void *stream;
    int rows[2 + ROWS] = {ROWS, -1}, pitch = (width + 63) / 64 * 64, stride = (width + 15) / 16 * 16;
    size_t row = (size_t)width * sizeof(float), part = (size_t)(ROWS * stride);
    memcpy(rows + 2, NODE, sizeof NODE);
    memset(out, 0, sizeof *out);
    assert_int_equal(gpu_stream_open(&stream), 0);
    Put put = *how;
    put.bias = how->bias ? take(row, how->bias, stream) : NULL;
    put.out = take(NODES * row, l->hidden, stream);
    put.stride = width;
    PutRows left = {.rows = take(sizeof rows, rows, stream),
                    .sums = take((size_t)parts * part * sizeof(float), l->sums, stream),
                    .outputs = width,
                    .stride = stride,
                    .parts = parts,
                    .part = part,
                    .put = put};
    Norm n = {.rows = left.rows,
              .hidden = put.out,
              .weight = take(row, l->weight, stream),
              .epsilon = EPSILON,
              .width = width,
              .stride = width,
              .to = {.data = take(sizeof out->to, out->to, stream),
                     .pitch = pitch,
                     .form = FORM_PACKED,
                     .dtype = dtype}};
    if (fused) n.left = left;
    else gpu_put_rows(&left, 8, stream);
    gpu_norm(&n, 8, stream);
    gpu_copy(out->hidden, put.out, NODES * row, stream);
    gpu_copy(out->to, n.to.data, sizeof out->to, stream);
    gpu_stream_wait(stream);
    void *const all[] = {(void *)(uintptr_t)left.rows,
                         (void *)(uintptr_t)left.sums,
                         (void *)(uintptr_t)n.weight,
                         n.to.data,
                         put.out,
                         (void *)(uintptr_t)put.bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_give(all[i]);
    gpu_stream_close(stream);
}

// The same bits of both, of rows that a thread holds at once and of wider ones.
static void parts_that_were_left(void **state) {
    static const int WIDTHS[] = {4, 68, 4096, LEFT_WIDEST};
    static Left l;
    static Normed apart, fused;
    Random r = test_random(514);
    (void)state;
    for (int i = 0; i < NODES * LEFT_WIDEST; i++) l.hidden[i] = random_normal(&r);
    for (int i = 0; i < PARTS_MAX * ROWS * LEFT_WIDEST; i++) l.sums[i] = random_normal(&r);
    for (int i = 0; i < LEFT_WIDEST; i++) l.weight[i] = random_normal(&r), l.bias[i] = random_normal(&r);
    for (size_t i = 0; i < sizeof WIDTHS / sizeof *WIDTHS; i++)
        for (int k = 0; k < 4; k++) {
            Put how = {.kind = PUT_RESIDUAL, .bias = k & 1 ? l.bias : NULL, .scale = k & 2 ? 0.37f : 0};
            int parts = k % 3 ? 4 : 2;
            Dtype dtype = k & 1 ? DTYPE_F16 : DTYPE_BF16;
            simt_settings.order = (SimtOrder)(k % SIMT_ORDERS);
            simt_settings.early = k > 1;
            put_and_norm(&l, WIDTHS[i], parts, &how, dtype, false, &apart);
            put_and_norm(&l, WIDTHS[i], parts, &how, dtype, true, &fused);
            assert_memory_equal(apart.hidden, fused.hidden, sizeof apart.hidden);
            assert_memory_equal(apart.to, fused.to, sizeof apart.to);
            assert_memory_not_equal(apart.hidden, l.hidden, sizeof(float) * 4); // node 0 is a row
        }
    simt_settings.order = SIMT_NATURAL;
    simt_settings.early = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_width), cmocka_unit_test(any_number),
                                       cmocka_unit_test(parts_that_were_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
