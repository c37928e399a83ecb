// Products by themselves: against sums in double, and a row's bits with other numbers of rows, in either
// kernel and in any order of threads and blocks. The shapes cover cases that models of a few layers lack:
// several tiles, sums in 1, 2 and 4 parts, several panels of rows.
#include "tests/support/check.h"
#include "tests/simt/settings.h"

#include "engine/base/memory.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/kernels/runtime.h"

#include <math.h>
#include <string.h>

enum { OUTPUTS = 401, INPUTS = 1100, ROWS = 200 };

typedef struct {
    void *stream;
    Matrix w;
    Activations x;
    float *hidden, *y, *parts;
    RowList *rows;
    GpuFacts card;
    uint16_t weights[OUTPUTS * INPUTS];
    float inputs[ROWS * INPUTS];
} World;

static void take(void *out, size_t bytes) {
    void *block;
    assert_int_equal(gpu_take(&block, bytes), 0);
    memcpy(out, &block, sizeof block);
}

static uint16_t to_half(Dtype dtype, float x) { return dtype == DTYPE_F16 ? f32_to_f16(x) : f32_to_bf16(x); }

// Inputs beyond bf16's precision where the format is f16.
static void make_numbers(World *w, Dtype dtype, Random *r) {
    for (size_t i = 0; i < OUTPUTS * INPUTS; i++) w->weights[i] = to_half(dtype, random_normal(r));
    for (size_t i = 0; i < ROWS * INPUTS; i++) {
        uint16_t h = to_half(dtype, random_normal(r));
        w->inputs[i] = dtype_load(dtype, &h, 0);
    }
}

static void world_open(World *w, bool packed, int splits, Dtype dtype) {
    int pitch = 1152; // 1100 up to a multiple of PACKED_K and of PLAIN_K
    w->w = (Matrix){.rows = OUTPUTS,
                    .columns = INPUTS,
                    .pitch = pitch,
                    .dtype = dtype,
                    .form = packed ? FORM_PACKED : FORM_PLAIN,
                    .splits = splits};
    w->x = (Activations){.pitch = pitch, .form = packed ? FORM_PACKED : FORM_PLAIN, .dtype = dtype};
    void *raw;
    assert_int_equal(gpu_facts(0, &w->card), 0);
    assert_int_equal(gpu_stream_open(&w->stream), 0);
    take(&w->w.data, gpu_matrix_bytes(&w->w));
    take(&w->x.data, ROWS * (size_t)pitch * (packed ? 2 : 4));
    take(&w->hidden, sizeof w->inputs);
    take(&w->y, ROWS * OUTPUTS * sizeof(float));
    take(&w->parts, (size_t)splits * 2 * PANEL_ROWS * ((OUTPUTS + 15) / 16 * 16) * sizeof(float));
    take(&w->rows, sizeof(RowList));
    take(&raw, sizeof w->weights);
    gpu_fill(w->w.data, 0, gpu_matrix_bytes(&w->w), w->stream);
    gpu_fill(w->x.data, 0, ROWS * (size_t)pitch * (packed ? 2 : 4), w->stream);
    gpu_copy(raw, w->weights, sizeof w->weights, w->stream);
    gpu_copy(w->hidden, w->inputs, sizeof w->inputs, w->stream);
    Pack p = {.from = raw, .dtype = dtype, .rows = OUTPUTS, .columns = INPUTS, .stride = 1, .to = w->w};
    gpu_pack(&p, w->stream);
    gpu_stream_wait(w->stream);
    gpu_give(raw);
}

static void world_close(World *w) {
    void *const all[] = {w->w.data, w->x.data, w->hidden, w->y, w->parts, w->rows};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_give(all[i]);
    gpu_stream_close(w->stream);
}

// y (ROWS, OUTPUTS) for the first `count` rows; `most`: the bound that launches are sized by.
static void run(World *w, int count, int most, const GpuFacts *card, float *y) {
    RowList rows = {.count = count, .first = 0};
    gpu_copy(w->rows, &rows, sizeof rows, w->stream);
    gpu_fill(w->y, 0xff, ROWS * OUTPUTS * sizeof(float), w->stream);
    Norm n = {.rows = w->rows, .hidden = w->hidden, .width = INPUTS, .stride = INPUTS, .to = w->x};
    Product p = {.rows = w->rows,
                 .w = w->w,
                 .x = w->x,
                 .put = {.kind = PUT_LOGITS, .out = w->y, .stride = OUTPUTS, .real = OUTPUTS},
                 .parts = w->parts};
    gpu_norm(&n, most, w->stream);
    gpu_product(&p, most, card, w->stream);
    gpu_copy(y, w->y, ROWS * OUTPUTS * sizeof(float), w->stream);
    gpu_stream_wait(w->stream);
}

static double worst_error(const World *w, const float *y, int count) {
    double worst = 0;
    for (int r = 0; r < count; r += 7)
        for (int m = 0; m < OUTPUTS; m++) {
            double sum = 0;
            for (int k = 0; k < INPUTS; k++)
                sum += (double)dtype_load(w->w.dtype, w->weights, (size_t)(m * INPUTS + k)) *
                       (double)w->inputs[r * INPUTS + k];
            double d = fabs(sum - (double)y[r * OUTPUTS + m]);
            worst = test_worse(worst, d);
        }
    return worst / sqrt(INPUTS);
}

static void compare(const float *got, const float *want, int count, const char *what) {
    for (int i = 0; i < count * OUTPUTS; i++)
        if (memcmp(&got[i], &want[i], sizeof *got))
            fail_msg("%s, %d rows: row %d, output %d is %.9g, wanted %.9g", what, count, i / OUTPUTS,
                     i % OUTPUTS, (double)got[i], (double)want[i]);
    for (int i = count * OUTPUTS; i < ROWS * OUTPUTS; i++)
        if (!isnan(got[i]))
            fail_msg("%s, %d rows: something was written to row %d", what, count, i / OUTPUTS);
}

// Every step'th size; every second of those, where not all is tried.
static void check(bool packed, int splits, Dtype dtype, size_t step, uint64_t bits) {
    static const struct {
        int count, most;
    } sizes[] = {{1, 8},   {7, 8},    {9, 16},    {8, 8},     {17, 32},  {33, 64},
                 {64, 64}, {65, 128}, {121, 128}, {128, 128}, {130, 256}};
    Random r = test_random(95);
    World *w = mem_new(1, sizeof *w);
    float *want = mem_new(ROWS * OUTPUTS, sizeof *want), *got = mem_new(ROWS * OUTPUTS, sizeof *got);
    make_numbers(w, dtype, &r);
    world_open(w, packed, splits, dtype);
    GpuFacts busy = w->card;    // every tile shares its processor with another
    GpuFacts differs = w->card; // products don't use wgmma
    busy.multiprocessors = 1;
    differs.wgmma_differs = true;
    run(w, ROWS, 256, &w->card, want);
    TEST_SAME_BITS(want, ROWS * OUTPUTS * sizeof *want, bits);
    double error = worst_error(w, want, ROWS);
    print_message("%s, %s: worst error %.2e\n", packed ? "tensor cores" : "plain", dtype_name(dtype), error);
    assert_true(error < 3e-5); // tensor cores cut where others round
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += step * (size_t)test_some(2, 1)) {
        simt_settings.order = (SimtOrder)(i % SIMT_ORDERS);
        run(w, sizes[i].count, sizes[i].most, &w->card, got);
        compare(got, want, sizes[i].count, packed ? "tensor cores" : "plain");
        for (int cut = 1; packed && step == 1 && cut < CUTS; cut++) { // however rows are cut
            if (!gpu_cut_takes((Cutting)cut, sizes[i].most) || (i + (size_t)cut) % 3) continue;
            w->w.cut[cut_size(sizes[i].most)] = (uint8_t)cut;
            run(w, sizes[i].count, sizes[i].most, &w->card, got);
            w->w.cut[cut_size(sizes[i].most)] = CUT_BY_ROWS;
            compare(got, want, sizes[i].count, "another cut");
        }
        if (!packed || sizes[i].most <= 16) continue; // they don't differ
        run(w, sizes[i].count, sizes[i].most, &busy, got);
        compare(got, want, sizes[i].count, "tensor cores, few stages");
        run(w, sizes[i].count, sizes[i].most, &differs, got);
        compare(got, want, sizes[i].count, "tensor cores, 16 rows at a time");
    }
    world_close(w);
    mem_free(w);
    mem_free(want);
    mem_free(got);
    assert_int_equal(simt_live_bytes(), 0);
}

static void tensor_cores(void **state) {
    (void)state;
    check(true, 2, DTYPE_BF16, 1, 0x1a288abb239e9189);
}
static void one_part(void **state) {
    (void)state;
    check(true, 1, DTYPE_BF16, 3, 0x640f1be28a2ca47b);
}
static void four_parts(void **state) {
    (void)state;
    check(true, 4, DTYPE_BF16, 2, 0x8c8a48f0a8df1a2);
}
static void tensor_cores_f16(void **state) {
    (void)state;
    check(true, 2, DTYPE_F16, 2, 0x6833df601ba96f40);
}
static void plain(void **state) {
    (void)state;
    check(false, 1, DTYPE_BF16, 1, 0x1c8eaa4f80d6d282);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tensor_cores), cmocka_unit_test(one_part),
                                       cmocka_unit_test(four_parts), cmocka_unit_test(tensor_cores_f16),
                                       cmocka_unit_test(plain)};
    simt_settings.locked = simt_settings.early = true; // what is touched too soon ends the program
    return cmocka_run_group_tests(tests, NULL, NULL);
}
