// Products of many rows (product_wide.cu) against those of product.cu, bit for bit: numbers of rows on both
// sides of every width, sums in 1, 2 and 4 parts, tiles that end anywhere, every put, both formats, rows
// that a launch doesn't have.
#include "tests/support/check.h"
#include "tests/simt/settings.h"

#include "engine/base/memory.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/kernels/runtime.h"

#include <string.h>

enum {
    OUTPUTS = 400,
    PITCH = 640,
    ROWS = 512,
    NODES = ROWS + 3,
    PAIRS = 8,
    HEAD = 16,
    OUT = NODES * OUTPUTS
};

typedef struct {
    void *stream;
    GpuFacts card;
    void *w, *x, *to; // to: packed activations
    float *out, *parts, *bias, *angles;
    RowList *rows;
    unsigned char *want, *got;
} World;

static const size_t OUT_BYTES = (size_t)OUT * sizeof(float), TO_BYTES = (size_t)ROWS * 448 * 2;

static void *take(size_t bytes) {
    void *block;
    assert_int_equal(gpu_take(&block, bytes), 0);
    return block;
}

static void *numbers(World *w, size_t count, Dtype dtype, Random *r) {
    size_t size = dtype == DTYPE_F32 ? 4 : 2;
    unsigned char *host = mem_new(count, size);
    for (size_t i = 0; i < count; i++) {
        float x = random_normal(r);
        uint16_t h = dtype == DTYPE_F16 ? f32_to_f16(x) : f32_to_bf16(x);
        if (dtype == DTYPE_F32) memcpy(host + i * size, &x, size);
        else memcpy(host + i * size, &h, size);
    }
    void *device = take(count * size);
    gpu_copy(device, host, count * size, w->stream);
    gpu_stream_wait(w->stream);
    mem_free(host);
    return device;
}

static void world_open(World *w, Dtype dtype) {
    Random r = test_random(11);
    assert_int_equal(gpu_facts(0, &w->card), 0);
    assert_int_equal(gpu_stream_open(&w->stream), 0);
    w->w = numbers(w, (size_t)512 * PITCH, dtype, &r);
    w->x = numbers(w, (size_t)ROWS * PITCH, dtype, &r);
    w->bias = numbers(w, OUTPUTS, DTYPE_F32, &r);
    w->angles = numbers(w, (size_t)NODES * PAIRS, DTYPE_F32, &r);
    w->to = take(TO_BYTES);
    w->out = take(OUT_BYTES);
    w->parts = take((size_t)PARTS_MAX * ROWS * OUTPUTS * sizeof(float));
    w->rows = take(sizeof(RowList) + ROWS * sizeof(int));
    w->want = mem_new(1, OUT_BYTES + TO_BYTES);
    w->got = mem_new(1, OUT_BYTES + TO_BYTES);
}

static void world_close(World *w) {
    void *const all[] = {w->w, w->x, w->bias, w->angles, w->to, w->out, w->parts, w->rows};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_give(all[i]);
    gpu_stream_close(w->stream);
    mem_free(w->want);
    mem_free(w->got);
    assert_int_equal(simt_live_bytes(), 0);
}

typedef struct {
    PutKind put;
    Dtype dtype;
    int outputs, pitch, splits, rows, most;
} Case;

static void run(World *w, const Case *c, Cutting cut, unsigned char *to) {
    RowList rows = {.count = c->rows, .first = 2};
    gpu_copy(w->rows, &rows, sizeof rows, w->stream);
    gpu_fill(w->out, 0x3d, OUT_BYTES, w->stream);
    gpu_fill(w->to, 0x3d, TO_BYTES, w->stream);
    gpu_fill(w->parts, 0xff, (size_t)PARTS_MAX * ROWS * OUTPUTS * sizeof(float), w->stream);
    char *area = (char *)w->out;
    Put put = {.kind = c->put,
               .bias = c->put == PUT_QKV ? w->bias : NULL,
               .out = w->out,
               .stride = c->outputs,
               .real = c->outputs - 3,
               .to = {.data = w->to, .pitch = 448, .form = FORM_PACKED, .dtype = c->dtype},
               .scale = c->put == PUT_RESIDUAL ? 0.5f : 0,
               .activation = ACTIVATION_SILU,
               .heads = {.heads = c->outputs / HEAD - 4,
                         .kv_heads = 2,
                         .head_dim = HEAD,
                         .pitch = HEAD,
                         .dtype = c->dtype,
                         .pairs = PAIRS},
               .q = area,
               .k = area + OUT_BYTES / 2,
               .v = area + OUT_BYTES / 4 * 3,
               .area = NODES,
               .cosine = w->angles,
               .sine = w->angles};
    Product p = {.rows = w->rows,
                 .w = {.data = w->w,
                       .rows = c->outputs,
                       .columns = c->pitch,
                       .pitch = c->pitch,
                       .dtype = c->dtype,
                       .form = FORM_PACKED,
                       .splits = c->splits},
                 .x = {.data = w->x, .pitch = c->pitch, .form = FORM_PACKED, .dtype = c->dtype},
                 .put = put,
                 .parts = w->parts};
    p.w.cut[cut_size(c->most)] = (uint8_t)cut;
    gpu_product(&p, c->most, &w->card, w->stream);
    assert_int_equal(gpu_launched(), 0);
    gpu_copy(to, w->out, OUT_BYTES, w->stream);
    gpu_copy(to + OUT_BYTES, w->to, TO_BYTES, w->stream);
    assert_int_equal(gpu_stream_wait(w->stream), 0);
}

static void compare(World *w, const Case *c, const Cutting *cuts, int count) {
    static int runs;
    run(w, c, CUT_BY_ROWS, w->want);
    for (int i = 0; i < count; i++) {
        simt_settings.order = (SimtOrder)(runs++ % SIMT_ORDERS);
        run(w, c, cuts[i], w->got);
        if (memcmp(w->got, w->want, OUT_BYTES + TO_BYTES))
            fail_msg("%d outputs of %d in %d parts, %d of %d rows, put %d, %s: cut %d differs", c->outputs,
                     c->pitch, c->splits, c->rows, c->most, (int)c->put, dtype_name(c->dtype), (int)cuts[i]);
    }
    simt_settings.order = SIMT_NATURAL;
}

static const Cutting ALL[] = {CUT_WIDE_128, CUT_WIDE_128_DEEP, CUT_WIDE_192, CUT_WIDE};

static void rows(void **state) {
    (void)state;
    static const int sizes[] = {33, 129, 257, 17, 31, 64, 65, 100, 121, 128, 192, 200, 256, 300, 384, 512};
    World w = {0};
    world_open(&w, DTYPE_BF16);
    for (int i = 0; i < test_some(3, sizeof sizes / sizeof *sizes); i++) {
        int splits = 1 << i % 3;
        // 330: three warpgroups' second tile has nine pieces of 16 rows
        Case c = {PUT_LOGITS, DTYPE_BF16, i % 2 ? OUTPUTS : 330,  576,
                  splits,     sizes[i],   8 << cut_size(sizes[i])};
        compare(&w, &c, ALL + test_some(i, 0), test_some(1, 3));
        if (i % 4 == 0) compare(&w, &(Case){PUT_LOGITS, DTYPE_BF16, 64, 64, 1, c.rows, c.most}, ALL, 3);
    }
    world_close(&w);
}

static void few_rows_of_many(void **state) {
    (void)state;
    static const Case cases[] = {{PUT_LOGITS, DTYPE_BF16, 330, 640, 4, 1, 64},
                                 {PUT_LOGITS, DTYPE_BF16, 330, 640, 1, 9, 128},
                                 {PUT_LOGITS, DTYPE_BF16, 330, 640, 2, 17, 512},
                                 {PUT_LOGITS, DTYPE_BF16, 330, 640, 4, 250, 512}};
    World w = {0};
    world_open(&w, DTYPE_BF16);
    for (int i = 0; i < test_some(2, sizeof cases / sizeof *cases); i++)
        compare(&w, &cases[i], ALL + test_some(i, 0), test_some(1, 4));
    world_close(&w);
}

static void puts_of(Dtype dtype, int step) {
    static const PutKind kinds[] = {PUT_LOGITS, PUT_RESIDUAL,  PUT_QKV,
                                    PUT_GATED,  PUT_ACTIVATED, PUT_ACTIVATED_RESIDUAL};
    static const int sizes[] = {40, 121, 150, 300};
    World w = {0};
    world_open(&w, dtype);
    for (int i = 0; i < 6; i++)
        for (int s = i % step; s < test_some(2, 4); s += step) {
            Case c = {kinds[i], dtype, OUTPUTS, 320, s == 2 ? 2 : 1, sizes[s], 8 << cut_size(sizes[s])};
            compare(&w, &c, ALL + (i + s) % 2, test_some(1, 2));
        }
    world_close(&w);
}
static void puts_bf16(void **state) {
    (void)state;
    puts_of(DTYPE_BF16, 2);
}
static void puts_f16(void **state) {
    (void)state;
    puts_of(DTYPE_F16, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(few_rows_of_many),
                                       cmocka_unit_test(puts_bf16), cmocka_unit_test(puts_f16)};
    simt_settings.locked = simt_settings.early = true; // what is touched too soon ends the program
    return cmocka_run_group_tests(tests, NULL, NULL);
}
