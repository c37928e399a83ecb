// Every kernel set of this processor against the reference on random data: within rounding of it, nothing
// read or written outside (borders are NaN), and each row the same bits whatever other rows run with it. Then
// timed in the same program. Sets that the processor lacks count as skipped, except tiles, whose instructions
// are then trapped; if OUTPACE_ISA names a set, all others are skipped.
#include "tests/support/check.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/cpu/kernels/ops.h"
#include "tests/support/amx_emulated.h"
#include "tests/support/tiles_trapped.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const DTYPES[] = {"f32", "f16", "bf16"};

// n floats between NaN borders; test_border fails if a border has changed.
enum { BORDER = 64 };

static float *new_floats(size_t n) {
    float *all = mem_new(n + 2 * BORDER, sizeof *all);
    assert_non_null(all);
    memset(all, 0xff, (n + 2 * BORDER) * sizeof *all);
    return all + BORDER;
}
static void free_floats(float *p) { mem_free(p - BORDER); }

static void check_border(const float *p, size_t n, const char *what) {
    for (size_t i = 0; i < BORDER; i++)
        if (!isnan(p[-1 - (long)i]) || !isnan(p[n + i])) fail_msg("%s wrote outside, %zu away", what, i);
}

static void fill(float *x, size_t n, float spread, Random *r) {
    for (size_t i = 0; i < n; i++) x[i] = spread * random_normal(r);
}

static size_t store(Dtype dtype, float x, void *at, size_t i) {
    uint16_t h = dtype == DTYPE_F16 ? f32_to_f16(x) : f32_to_bf16(x);
    if (dtype == DTYPE_F32) ((float *)at)[i] = x;
    else ((uint16_t *)at)[i] = h;
    return i;
}

// A random matrix in a block that is NaN before and behind.
static Tensor new_tensor(Dtype dtype, int rows, int columns, Random *r) {
    size_t n = (size_t)rows * (size_t)columns;
    float *data = new_floats(n);
    for (size_t i = 0; i < n; i++) store(dtype, random_normal(r), data, i);
    memset((char *)data + n * dtype_size(dtype), 0xff, n * sizeof *data - n * dtype_size(dtype));
    return (Tensor){.data = data, .dtype = dtype, .rows = rows, .columns = columns};
}
static void free_tensor(Tensor *t) { free_floats((float *)(size_t)t->data); }

// The set under test, with its tiles trapped if there are none. cmocka has a handler of its own until a test
// begins.
static const CpuOps *begin(void **state) {
    const CpuOps *ops = *state;
    if (ops == &cpu_ops_amx) tiles_trap();
    return ops;
}

// --- products

static void multiply(const CpuOps *ops, const Tensor *w, const float *x, int rows, Compute compute, float *y,
                     size_t stride, int from, int to) {
    Packed p = packed_for(w, compute, rows, mem_new(ops->packed_bytes(rows, w->columns), 1));
    if (w->codes.bits || w->dtype == DTYPE_F16)
        p.decoded = mem_new(MATMUL_UNIT * (size_t)w->columns, sizeof(uint16_t));
    assert_non_null(p.data);
    memset(p.data, 0xff, ops->packed_bytes(rows, w->columns));
    int half = rows / 2 / ops->pack_unit * ops->pack_unit; // as two threads would
    if (half) ops->pack(x, &p, 0, half);
    ops->pack(x, &p, half, rows);
    ops->matmul(w, &p, y, stride, from, to);
    mem_free(p.data);
    mem_free(p.decoded);
}

static double magnitude(const Tensor *w, int n, const float *x) {
    double sum = 0;
    for (int k = 0; k < w->columns; k++)
        sum += fabs((double)dtype_load(w->dtype, w->data, (size_t)n * (size_t)w->columns + (size_t)k) *
                    (double)x[k]);
    return sum;
}

// Tiles and emulated tiles give the same bits.
static void check_tiles(const Tensor *w, const float *x, int rows, const float *y, size_t stride, int from) {
    size_t count = (size_t)(w->rows - from), n = (size_t)(rows - 1) * stride + count;
    float *want = new_floats(n);
    multiply(&cpu_ops_amx_emulated, w, x, rows, COMPUTE_BF16, want, stride, from, w->rows);
    for (int row = 0; row < rows; row++)
        if (memcmp(want + (size_t)row * stride, y + (size_t)row * stride, count * sizeof *y) != 0)
            fail_msg("amx: row %d of %d is not what emulated tiles say (%d x %d)", row, rows, w->rows,
                     w->columns);
    free_floats(want);
}

// One product in two ways: all rows at once and each alone, outputs [from, to).
static void check_product(const CpuOps *ops, Dtype dtype, Compute compute, int rows, int outputs, int columns,
                          Random *r) {
    Tensor w = new_tensor(dtype, outputs, columns, r);
    int from = outputs > MATMUL_UNIT && random_below(r, 2) ? MATMUL_UNIT : 0, count = outputs - from;
    size_t stride = (size_t)count + 3, n = (size_t)(rows - 1) * stride + (size_t)count;
    float *x = new_floats((size_t)rows * (size_t)columns), *y = new_floats(n), *want = new_floats(n),
          *alone = new_floats((size_t)count);
    fill(x, (size_t)rows * (size_t)columns, 1, r);
    multiply(ops, &w, x, rows, compute, y, stride, from, outputs);
    multiply(&cpu_ops_reference, &w, x, rows, compute, want, stride, from, outputs);
    check_border(y, n, "matmul");
    if (ops != &cpu_ops_amx_emulated && strcmp(ops->name, "amx") == 0 && dtype == DTYPE_BF16 &&
        compute == COMPUTE_BF16)
        check_tiles(&w, x, rows, y, stride, from);
    for (int row = 0; row < rows; row++) {
        const float *in = x + (size_t)row * (size_t)columns, *got = y + (size_t)row * stride;
        multiply(ops, &w, in, 1, compute, alone, stride, from, outputs);
        if (memcmp(alone, got, (size_t)count * sizeof *got) != 0)
            fail_msg("%s %s: row %d of %d is not the row alone (%d x %d)", ops->name, DTYPES[dtype], row,
                     rows, outputs, columns);
        for (int i = 0; i < count; i++) {
            double error = fabs((double)got[i] - (double)want[(size_t)row * stride + (size_t)i]);
            if (!(error <= 1e-6 * magnitude(&w, from + i, in)))
                fail_msg("%s %s: output %d of row %d is %g, wanted %g (%d rows, %d x %d)", ops->name,
                         DTYPES[dtype], from + i, row, (double)got[i],
                         (double)want[(size_t)row * stride + (size_t)i], rows, outputs, columns);
        }
        for (size_t i = (size_t)count; row + 1 < rows && i < stride; i++) assert_true(isnan(got[i]));
    }
    int part = test_between(r, 1, count); // the same whichever outputs are asked for
    multiply(ops, &w, x, rows, compute, want, stride, from, from + part);
    for (int row = 0; row < rows; row++)
        if (memcmp(want + (size_t)row * stride, y + (size_t)row * stride, (size_t)part * sizeof *y) != 0)
            fail_msg("%s %s: row %d differs when %d of %d outputs are asked for", ops->name, DTYPES[dtype],
                     row, part, count);
    free_floats(x), free_floats(y), free_floats(want), free_floats(alone);
    free_tensor(&w);
}

static void products(void **state) {
    const CpuOps *ops = begin(state);
    Random r = test_random(20);
    for (int round = 0; round < 60; round++)
        check_product(ops, (Dtype)(round % 3), (Compute)(round / 3 % COMPUTE_KINDS), test_between(&r, 1, 40),
                      test_between(&r, 1, 90), test_between(&r, 1, 200), &r);
    for (int dtype = 0; dtype < 3; dtype++) check_product(ops, (Dtype)dtype, COMPUTE_BF16, 121, 70, 160, &r);
    check_product(ops, DTYPE_F16, COMPUTE_F16, 121, 70, 160, &r);
    check_product(ops, DTYPE_BF16, COMPUTE_BF16, 121, 70, 4100, &r); // beyond one chunk of activations
}

// --- codes

// Bits, groups and scales for a round: every kind.
static Codes pick_codes(int round, Random *r) {
    static const Codes kinds[] = {
        {4, 0, SCALES_F16, NULL},     {8, 0, SCALES_F16, NULL},     {5, 32, SCALES_F16, NULL},
        {6, 16, SCALES_TIMES, NULL},  {4, 0, SCALES_F32, NULL},     {8, 0, SCALES_F32, NULL},
        {5, 32, SCALES_HALVES, NULL}, {4, 0, SCALES_PAIRS, NULL},   {8, 16, SCALES_TIMES, NULL},
        {4, 0, SCALES_NESTED, NULL},  {5, 32, SCALES_NESTED, NULL}, {4, 0, SCALES_HALVES, NULL},
        {5, 32, SCALES_PAIRS, NULL}};
    Codes c = kinds[round % (int)(sizeof kinds / sizeof *kinds)];
    if (!c.group) c.group = 16 << test_between(r, c.bits == 4, 3);
    return c;
}

// Columns that scales of such codes come in.
static int codes_unit(const Codes *c) {
    if (c->kind == SCALES_NESTED) return c->group * GROUPS_NESTED;
    return c->kind == SCALES_TIMES ? c->group * GROUPS_TIMES : c->group < 32 ? 32 : c->group;
}

// Random codes with random scales, some of them 0 or negative.
static Tensor new_codes(int bits, int group, ScaleKind kind, int rows, int columns, Random *r) {
    Tensor t = {.dtype = DTYPE_BF16,
                .rows = rows,
                .columns = columns,
                .codes = {.bits = bits, .group = group, .kind = kind}};
    size_t bytes = (size_t)rows * tensor_row_bytes(&t), groups = (size_t)rows * (size_t)(columns / group);
    unsigned char *codes = mem_new(bytes, 1), *scales = mem_new((size_t)rows * tensor_row_scale_bytes(&t), 1);
    bool split = group == 16; // codes of 6 bits, long scales
    for (size_t i = 0; i < bytes; i++)
        codes[i] = (unsigned char)(split && bits == 8 ? random_below(r, 64) - 32 : random_below(r, 256));
    for (size_t i = 0; i < groups; i++) {
        float x = random_below(r, 9) ? 0.01f * random_normal(r) : 0, scale = f16_round(x);
        uint16_t half = f32_to_f16(scale);
        float longer = split ? scale * (float)(1 + random_below(r, 127)) / 64 : scale;
        ScalePair pair = {scale, -scale * (float)random_below(r, 16)};
        uint16_t two[2] = {half, f32_to_f16(pair.low)};
        size_t block = i / GROUPS_NESTED;
        ScaleTimes times = {.scale = half};
        for (int g = 0; g < GROUPS_TIMES; g++) times.factor[g] = (int8_t)(random_below(r, 256) - 128);
        ScaleNest nest = {.scale = half, .low = f32_to_f16(x * 3)};
        for (int g = 0; g < GROUPS_NESTED; g++) {
            nest.factor[g] = (uint8_t)random_below(r, 64);
            nest.lows[g] = (uint8_t)random_below(r, 64);
        }
        if (kind == SCALES_F16) memcpy(scales + 2 * i, &half, 2);
        if (kind == SCALES_F32) memcpy(scales + 4 * i, &longer, 4);
        if (kind == SCALES_PAIRS) memcpy(scales + i * sizeof pair, &pair, sizeof pair);
        if (kind == SCALES_NESTED && i % GROUPS_NESTED == 0)
            memcpy(scales + block * sizeof nest, &nest, sizeof nest);
        if (kind == SCALES_HALVES) memcpy(scales + i * sizeof two, two, sizeof two);
        if (kind == SCALES_TIMES && i % GROUPS_TIMES == 0)
            memcpy(scales + i / GROUPS_TIMES * sizeof times, &times, sizeof times);
    }
    t.data = codes;
    t.codes.scales = scales;
    return t;
}

// A product with codes is the product with their values, bit for bit; in compute int8, the reference's.
static void check_codes(const CpuOps *ops, const Tensor *w, Compute compute, int rows, Random *r) {
    size_t columns = (size_t)w->columns, n = (size_t)rows * (size_t)w->rows;
    uint16_t *values = mem_new((size_t)w->rows * columns, sizeof *values);
    Tensor plain = {.data = values, .dtype = DTYPE_BF16, .rows = w->rows, .columns = w->columns};
    float *x = new_floats((size_t)rows * columns), *y = new_floats(n), *want = new_floats(n);
    for (size_t i = 0; i < (size_t)w->rows; i++) tensor_decode_row(w, i, values + i * columns);
    fill(x, (size_t)rows * columns, 1, r);
    int from = w->rows > MATMUL_UNIT && random_below(r, 2) ? MATMUL_UNIT : 0;
    size_t stride = (size_t)w->rows;
    multiply(ops, w, x, rows, compute, y, stride, from, w->rows);
    if (compute != COMPUTE_INT8) multiply(ops, &plain, x, rows, compute, want, stride, from, w->rows);
    else multiply(&cpu_ops_reference, w, x, rows, compute, want, stride, from, w->rows);
    check_border(y, n, "matmul");
    for (size_t row = 0; row < (size_t)rows; row++)
        for (size_t i = 0; i < (size_t)(w->rows - from); i++)
            if (memcmp(&y[row * stride + i], &want[row * stride + i], sizeof *y) != 0)
                fail_msg("%s: output %zu of row %zu of %d is %a, wanted %a (%d bits, groups of %d, kind "
                         "%d, %s, %d x %d)",
                         ops->name, i + (size_t)from, row, rows, (double)y[row * stride + i],
                         (double)want[row * stride + i], w->codes.bits, w->codes.group, (int)w->codes.kind,
                         compute_name(compute), w->rows, w->columns);
    free_floats(x), free_floats(y), free_floats(want);
    mem_free(values);
}

static void coded_products(void **state) {
    const CpuOps *ops = begin(state);
    Random r = test_random(24);
    for (int round = 0; round < 120; round++) {
        Codes c = pick_codes(round, &r);
        int unit = codes_unit(&c);
        int most = round % 8 < 6 ? 640 : 4096; // more than the groups whose scales are read at a time
        int columns = unit * test_between(&r, 1, 1 + most / unit);
        Tensor w = new_codes(c.bits, c.group, c.kind, test_between(&r, 1, 70), columns, &r);
        check_codes(ops, &w, (Compute)(round / 8 % COMPUTE_KINDS), test_between(&r, 1, round % 3 ? 8 : 40),
                    &r);
        mem_free((void *)(size_t)w.data), mem_free((void *)(size_t)w.codes.scales);
    }
}

// Activations of all sizes, blocks of zeros, and numbers that aren't any: in compute int8 all sets have the
// reference's bits, whatever rows are multiplied together, and these are near the product in double.
static void integer_products(void **state) {
    const CpuOps *ops = begin(state);
    Random r = test_random(27);
    for (int round = 0; round < 130; round++) {
        Codes c = pick_codes(round, &r);
        int bits = c.bits, group = c.group, unit = codes_unit(&c);
        ScaleKind kind = c.kind;
        int columns = unit * test_between(&r, 1, 1 + (round % 8 < 6 ? 640 : 5000) / unit);
        int rows = round % 5 ? test_between(&r, 1, 9) : round + 1, outputs = test_between(&r, 1, 40);
        Tensor w = new_codes(bits, group, kind, outputs, columns, &r);
        size_t count = (size_t)rows * (size_t)columns, n = (size_t)rows * (size_t)outputs;
        float *x = new_floats(count), *y = new_floats(n), *want = new_floats(n), *alone = new_floats(n);
        fill(x, count, 1, &r);
        for (size_t b = 0; b < count / 32; b++) {
            float spread =
                random_below(&r, 4) ? ldexpf(1, test_between(&r, -8, 8)) : (float)random_below(&r, 2);
            for (size_t i = 0; i < 32; i++) x[32 * b + i] *= spread;
        }
        multiply(ops, &w, x, rows, COMPUTE_INT8, y, (size_t)outputs, 0, outputs);
        check_border(y, n, "matmul");
        multiply(&cpu_ops_reference, &w, x, rows, COMPUTE_INT8, want, (size_t)outputs, 0, outputs);
        for (int row = 0; row < rows; row++) {
            const float *in = x + (size_t)row * (size_t)columns;
            multiply(ops, &w, in, 1, COMPUTE_INT8, alone + (size_t)row * (size_t)outputs, (size_t)outputs, 0,
                     outputs);
            for (int o = 0; round % 5 && o < outputs; o++) {
                double exact = 0, most = 0;
                for (size_t k = 0; k < (size_t)columns; k++) {
                    double value = (double)tensor_value(&w, (size_t)o, k), largest = 0;
                    for (size_t i = k / 32 * 32; i < k / 32 * 32 + 32; i++)
                        largest = fmax(largest, fabs((double)in[i]));
                    exact += value * (double)in[k];
                    most += fabs(value) * (largest / 250 + fabs((double)in[k]) / 250);
                }
                double got = (double)want[(size_t)row * (size_t)outputs + (size_t)o];
                if (!(fabs(got - exact) <= most + 1e-6))
                    fail_msg("int8: output %d of row %d is %g, wanted %g within %g (%d bits, groups of %d)",
                             o, row, got, exact, most, bits, group);
            }
        }
        for (size_t i = 0; i < n; i++)
            if (memcmp(&y[i], &want[i], sizeof *y) != 0 || memcmp(&alone[i], &want[i], sizeof *y) != 0)
                fail_msg("%s: int8: output %zu is %a, alone %a, wanted %a (%d rows, %d bits, groups of %d, "
                         "kind %d, %d x %d)",
                         ops->name, i, (double)y[i], (double)alone[i], (double)want[i], rows, bits, group,
                         (int)kind, outputs, columns);
        for (int bad = 0; bad < 2; bad++) {
            size_t at = random_below(&r, (uint32_t)count);
            x[at] = bad ? INFINITY : NAN;
            multiply(ops, &w, x, rows, COMPUTE_INT8, y, (size_t)outputs, 0, outputs);
            for (size_t o = 0; o < (size_t)outputs; o++)
                if (!isnan(y[at / (size_t)columns * (size_t)outputs + o]))
                    fail_msg("%s: int8: a row with %g in it has the output %g", ops->name, (double)x[at],
                             (double)y[at / (size_t)columns * (size_t)outputs + o]);
        }
        free_floats(x), free_floats(y), free_floats(want), free_floats(alone);
        mem_free((void *)(size_t)w.data), mem_free((void *)(size_t)w.codes.scales);
    }
}

// Codes of 6 bits, and outside of int8 those of 5 without a low of their own, give the same bits as the same
// codes in 8 bits.
static void packed_codes(void **state) {
    const CpuOps *ops = begin(state);
    Random r = test_random(28);
    for (int round = 0; round < 40; round++) {
        bool six = round % 2 == 0, integers = six && round % 4 == 0;
        Compute compute = integers ? COMPUTE_INT8 : COMPUTE_BF16;
        int columns = six ? 256 * test_between(&r, 1, 9) : 32 * test_between(&r, 1, 70);
        int rows = test_between(&r, 1, round % 5 ? 6 : 40), outputs = test_between(&r, 1, 40);
        ScaleKind kind = six ? SCALES_TIMES : SCALES_F16;
        Tensor w = new_codes(six ? 6 : 5, six ? 16 : 32, kind, outputs, columns, &r), wide = w;
        size_t count = (size_t)outputs * (size_t)columns, groups = count / (size_t)w.codes.group;
        int8_t *codes = mem_new(count, 1);
        float *scales = mem_new(groups, sizeof *scales);
        for (size_t i = 0; i < count; i++)
            codes[i] = (int8_t)(tensor_code(&w, i / (size_t)columns, i % (size_t)columns) - (six ? 0 : 16));
        for (size_t i = 0; i < groups; i++) {
            size_t of_row = groups / (size_t)outputs;
            scales[i] = tensor_scale(&w, i / of_row, i % of_row).scale;
        }
        wide.data = codes;
        wide.codes = (Codes){8, w.codes.group, SCALES_F32, scales};
        size_t n = (size_t)rows * (size_t)outputs;
        float *x = new_floats((size_t)rows * (size_t)columns), *y = new_floats(n), *want = new_floats(n);
        fill(x, (size_t)rows * (size_t)columns, 1, &r);
        multiply(ops, &w, x, rows, compute, y, (size_t)outputs, 0, outputs);
        multiply(ops, &wide, x, rows, compute, want, (size_t)outputs, 0, outputs);
        if (memcmp(y, want, n * sizeof *y) != 0)
            fail_msg("%s: codes of %d bits aren't those of 8 (%s, %d rows, %d x %d)", ops->name, w.codes.bits,
                     compute_name(compute), rows, outputs, columns);
        free_floats(x), free_floats(y), free_floats(want);
        mem_free(codes), mem_free(scales);
        mem_free((void *)(size_t)w.data), mem_free((void *)(size_t)w.codes.scales);
    }
}

// --- rows

static void norms(void **state) {
    const CpuOps *ops = *state;
    Random r = test_random(21);
    for (int round = 0; round < 60; round++) {
        int n = test_between(&r, 1, 300);
        Tensor w = new_tensor((Dtype)(round % 3), 1, n, &r);
        float *x = new_floats((size_t)n), *y = new_floats((size_t)n), *want = new_floats((size_t)n);
        fill(x, (size_t)n, round % 5 ? 3 : 1e-4f, &r);
        ops->rmsnorm(x, &w, 1e-5f, n, y);
        cpu_ops_reference.rmsnorm(x, &w, 1e-5f, n, want);
        check_border(y, (size_t)n, "rmsnorm");
        for (int i = 0; i < n; i++) assert_true(fabsf(y[i] - want[i]) <= 2e-6f * fabsf(want[i]) + 1e-9f);
        free_floats(x), free_floats(y), free_floats(want);
        free_tensor(&w);
    }
}

static void rotations(void **state) {
    const CpuOps *ops = *state;
    Random r = test_random(22);
    for (int round = 0; round < 60; round++) {
        size_t pairs = (size_t)test_between(&r, 1, 130);
        float *x = new_floats(2 * pairs), *want = new_floats(2 * pairs), *c = new_floats(pairs),
              *s = new_floats(pairs);
        fill(x, 2 * pairs, 2, &r);
        memcpy(want, x, 2 * pairs * sizeof *x);
        for (size_t i = 0; i < pairs; i++) {
            double angle = 100 * random_uniform(&r);
            c[i] = (float)cos(angle);
            s[i] = (float)sin(angle);
        }
        ops->rope(x, c, s, (int)pairs);
        cpu_ops_reference.rope(want, c, s, (int)pairs);
        check_border(x, 2 * pairs, "rope");
        for (size_t i = 0; i < 2 * pairs; i++) assert_true(fabsf(x[i] - want[i]) <= 3e-6f);
        free_floats(x), free_floats(want), free_floats(c), free_floats(s);
    }
}

static void gates(void **state) {
    const CpuOps *ops = *state;
    Random r = test_random(23);
    static const float ends[] = {-1e30f, -200, -88, -87.3f, -20, -1e-9f, 0, 1e-9f, 20, 88, 200, 1e30f};
    for (int round = 0; round < 40; round++) {
        size_t n = (size_t)test_between(&r, 12, 200);
        float *x = new_floats(n), *want = new_floats(n), *up = new_floats(n);
        Activation activation = round % 2 ? ACTIVATION_SILU : ACTIVATION_GELU_TANH;
        fill(x, n, 5, &r);
        fill(up, n, 1, &r);
        memcpy(x, ends, sizeof ends);
        memcpy(want, x, n * sizeof *x);
        ops->gate(x, up, (int)n, activation);
        cpu_ops_reference.gate(want, up, (int)n, activation);
        check_border(x, n, "gate");
        for (size_t i = 0; i < n; i++)
            if (!(fabsf(x[i] - want[i]) <= 3e-6f * fabsf(want[i]) + 2e-6f))
                fail_msg("%s: gate %zu is %.9g, wanted %.9g", ops->name, i, (double)x[i], (double)want[i]);
        free_floats(x), free_floats(want), free_floats(up);
    }
}

static void sums_of_powers(void **state) {
    const CpuOps *ops = *state;
    Random r = test_random(24);
    for (int round = 0; round < 60; round++) {
        size_t n = (size_t)test_between(&r, 1, 70);
        float *x = new_floats(n), highest, want;
        fill(x, n, round % 3 ? 5 : 200, &r);
        for (size_t i = 0; i < n && round % 4 == 0; i++)
            if (round % 8 == 0 || test_between(&r, 0, 1)) x[i] = -INFINITY;
        double sum = (double)ops->exp_sum(x, (int)n, &highest);
        double slow = (double)cpu_ops_reference.exp_sum(x, (int)n, &want);
        assert_true(highest == want);
        if (!(fabs(sum - slow) <= 1e-6 * slow)) fail_msg("%s: %.9g, wanted %.9g", ops->name, sum, slow);
        free_floats(x);
    }
}

// --- attention

enum { MAX_NODES = 20, MAX_SPANS = 200, KEYS = 150, MAX_COUNT = 40, MAX_BEFORE = 2 * MAX_COUNT };
enum { MAX_SHARED = 3 * KEYS, MAX_POSITION = MAX_BEFORE + 70 + MAX_SHARED + 3 * MAX_COUNT };

typedef struct {
    KeyLayout layout;
    Attend a;
    KeySpan spans[MAX_SPANS];
    int before_spans[MAX_NODES], after_spans[MAX_NODES], before[MAX_NODES], visible[MAX_NODES];
    int first[MAX_NODES];
    void *k, *v;
    size_t used[2]; // elements of k and v
} Case;

// A random run of keys, written; all others are NaN.
static KeySpan random_span(Case *c, Random *r, int head, int most) {
    KeySpan s = {.first = random_below(r, 3) ? test_between(r, 0, KEYS - 1) : 0};
    s.count = test_between(r, 1, KEYS - s.first);
    if (s.count > most) s.count = most;
    size_t size = dtype_size(c->layout.dtype);
    s.k = (char *)c->k + key_head(&c->layout, head) * size;
    s.v = (char *)c->v + value_head(&c->layout, head) * size;
    for (int i = s.first; i < s.first + s.count; i++)
        for (int d = 0; d < c->layout.head_dim; d++) {
            store(c->layout.dtype, random_normal(r), (void *)(size_t)s.k, key_at(&c->layout, i, d));
            store(c->layout.dtype, random_normal(r), (void *)(size_t)s.v, value_at(&c->layout, i, d));
        }
    return s;
}

static void make_case(Case *c, Random *r, int round) {
    static const int sizes[] = {2, 4, 10, 16, 32, 64, 80, 96, 128, 256, 288};
    Shape shape = {.heads = 1, .kv_heads = test_between(r, 1, 3), .head_dim = sizes[random_below(r, 11)]};
    c->layout = key_layout(&shape, round % 2 ? DTYPE_BF16 : round % 4 ? DTYPE_F16 : DTYPE_F32);
    size_t size = dtype_size(c->layout.dtype);
    c->used[0] = key_area(&c->layout, KEYS) * size;
    c->used[1] = value_area(&c->layout, KEYS) * size;
    c->k = mem_new(c->used[0], 1);
    c->v = mem_new(c->used[1], 1);
    memset(c->k, 0xff, c->used[0]);
    memset(c->v, 0xff, c->used[1]);
    c->a = (Attend){.nodes = test_between(r, 1, MAX_NODES),
                    .group = test_between(r, 1, 5),
                    .head_dim = shape.head_dim,
                    .layout = &c->layout,
                    .scale = 0.3f,
                    .span = c->spans,
                    .shared_spans = test_between(r, 0, 3),
                    .before_spans = c->before_spans,
                    .after_spans = c->after_spans,
                    .before = c->before,
                    .visible = c->visible,
                    .first = c->first};
    int n = 0, head = test_between(r, 0, shape.kv_heads - 1);
    for (; n < c->a.shared_spans; n++) {
        c->spans[n] = random_span(c, r, head, KEYS);
        c->a.shared += c->spans[n].count;
    }
    for (int node = 0; node < c->a.nodes; node++) {
        c->before_spans[node] = test_between(r, 0, 2);
        c->after_spans[node] = test_between(r, c->a.shared || c->before_spans[node] ? 0 : 1, 3);
        c->before[node] = 0;
        c->visible[node] = c->a.shared;
        for (int i = 0; i < c->before_spans[node] + c->after_spans[node]; i++) {
            c->spans[n] = random_span(c, r, head, MAX_COUNT);
            if (i < c->before_spans[node]) c->before[node] += c->spans[n].count;
            c->visible[node] += c->spans[n++].count;
        }
    }
    int start = test_between(r, MAX_BEFORE, MAX_BEFORE + 70); // of what is shared, for all of them
    for (int node = 0; node < c->a.nodes; node++) c->first[node] = start - c->before[node];
}

static float *run_attend(const CpuOps *ops, Attend a) {
    size_t n = (size_t)(a.nodes * a.group) * (size_t)a.head_dim, queries = attend_queries(a.nodes, a.group);
    float *out = new_floats(n);
    a.out = out;
    a.score_row = MAX_POSITION + SCORE_PAD;
    a.scores = new_floats(queries * a.score_row);
    a.sums = new_floats(queries * key_value_pad(a.head_dim));
    if (a.part == ATTEND_WHOLE) ops->attend(&a);
    else
        for (int part = ATTEND_SCORES; part <= ATTEND_VALUES; part++) {
            a.part = (AttendPart)part;
            ops->attend(&a);
        }
    check_border(out, n, "attend");
    check_border(a.scores, queries * a.score_row, "attend's scores");
    check_border(a.sums, queries * key_value_pad(a.head_dim), "attend's sums");
    free_floats(a.scores), free_floats(a.sums);
    return out;
}

// Node `node` by itself, all its spans its own.
static float *run_one_node(const CpuOps *ops, const Case *c, int node) {
    Attend a = c->a;
    KeySpan spans[MAX_SPANS];
    const KeySpan *own = c->spans + a.shared_spans;
    int none = 0, n = 0;
    for (int i = 0; i < node; i++) own += c->before_spans[i] + c->after_spans[i];
    for (int i = 0; i < c->before_spans[node]; i++) spans[n++] = *own++;
    for (int i = 0; i < a.shared_spans; i++) spans[n++] = c->spans[i];
    for (int i = 0; i < c->after_spans[node]; i++) spans[n++] = *own++;
    a.nodes = 1;
    a.q += (size_t)node * a.row;
    a.span = spans;
    a.shared = a.shared_spans = 0;
    a.before_spans = a.before = &none;
    a.after_spans = &n;
    a.visible = &c->visible[node];
    a.first = &c->first[node];
    return run_attend(ops, a);
}

// Weights rounded to bf16 are up to 2^-9 of themselves off, and with them the weighted values, which are
// below 5 here. A query of zeros weighs all keys equally, exactly, which shows whether each of them is
// counted.
static float allowed(const CpuOps *ops, const Case *c, bool alike) {
    bool rounds = strcmp(ops->name, "amx") == 0 && c->layout.dtype == DTYPE_BF16;
    return rounds && !alike ? 5.0f / 512 : 2e-5f;
}

static void attention(void **state) {
    const CpuOps *ops = begin(state);
    Random r = test_random(24);
    for (int round = 0; round < 40; round++) {
        Case c;
        make_case(&c, &r, round);
        bool alike = round % 3 == 0;
        size_t row = (size_t)(c.a.group * c.a.head_dim), n = (size_t)c.a.nodes * row;
        float *q = new_floats(n);
        fill(q, n, alike ? 0 : 1, &r);
        for (size_t i = 0; i < n; i++) q[i] = bf16_round(q[i]);
        c.a.q = q;
        c.a.row = row;
        float *got = run_attend(ops, c.a), *want = run_attend(&cpu_ops_reference, c.a);
        for (size_t i = 0; i < n; i++)
            if (!(fabsf(got[i] - want[i]) <= allowed(ops, &c, alike)))
                fail_msg("%s: attention %zu of %zu is %g, wanted %g", ops->name, i, n, (double)got[i],
                         (double)want[i]);
        Attend plain = c.a;
        plain.part = ATTEND_SCORES;
        bool tiles = strstr(ops->name, "amx") != NULL; // their scores differ when attention is one call
        float *parts = run_attend(ops, plain);
        for (size_t i = 0; i < n; i++)
            if (tiles ? !(fabsf(parts[i] - want[i]) <= allowed(ops, &c, alike))
                      : memcmp(&parts[i], &got[i], sizeof *got) != 0)
                fail_msg("%s: attention %zu of %zu is %g in parts, %g whole", ops->name, i, n,
                         (double)parts[i], (double)got[i]);
        free_floats(parts);
        for (int node = 0; node < c.a.nodes; node++) {
            float *alone = run_one_node(ops, &c, node);
            if (memcmp(alone, got + (size_t)node * row, row * sizeof *got) != 0)
                fail_msg("%s: node %d of %d attends otherwise when alone", ops->name, node, c.a.nodes);
            free_floats(alone);
        }
        free_floats(q), free_floats(got), free_floats(want);
        mem_free(c.k), mem_free(c.v);
    }
}

// --- speed, to be read

static double seconds_of_product(const CpuOps *ops, const Tensor *w, int rows, Random *r) {
    float *x = new_floats((size_t)rows * (size_t)w->columns), *y = new_floats((size_t)rows * (size_t)w->rows);
    Packed p = packed_for(w, COMPUTE_BF16, rows, mem_new(ops->packed_bytes(rows, w->columns), 1));
    double best = 1e9;
    fill(x, (size_t)rows * (size_t)w->columns, 1, r);
    ops->pack(x, &p, 0, rows);
    for (int i = 0; i < 3; i++) {
        double start = clock_now(clock_monotonic());
        ops->matmul(w, &p, y, (size_t)w->rows, 0, w->rows);
        double took = clock_now(clock_monotonic()) - start;
        if (took < best) best = took;
    }
    mem_free(p.data);
    free_floats(x), free_floats(y);
    return best;
}

static void speed(void **state) {
    const CpuOps *ops = *state;
    Random r = test_random(25);
    for (int dtype = 0; dtype < 3; dtype++) {
        Tensor w = new_tensor((Dtype)dtype, 512, 1024, &r);
        print_message("%-10s %-4s", ops->name, DTYPES[dtype]);
        for (int rows = 1; rows <= 64; rows *= 4) {
            double s = seconds_of_product(ops, &w, rows, &r);
            print_message("  %d rows %.1f GFLOP/s", rows, 2e-9 * 512 * 1024 * rows / s);
            assert_true(s > 0);
        }
        print_message("\n");
        free_tensor(&w);
    }
    double f32 = ops->peak(COMPUTE_F32, 1600), bf16 = ops->peak(COMPUTE_BF16, 1600);
    assert_true(f32 > 0 && bf16 > 0);
    if (strcmp(ops->name, "avx512_bf16") == 0) assert_true(bf16 == 2 * f32); // pairs, in as many rounds
    assert_true(amx_emulated_works()); // the test that real tiles must pass before they're used
}

// The sets of this build, then the emulated tiles.
static const CpuOps *set_at(size_t i, bool *available) {
    *available = true;
    return i < cpu_ops_count() ? cpu_ops_at(i, available) : &cpu_ops_amx_emulated;
}

// Where not all is tried: neither the plain set nor the best, nor tiles.
static bool left_out(const CpuOps *ops, bool emulated) {
    return !test_long() && !getenv("OUTPACE_ISA") && !emulated && ops != &cpu_ops_amx &&
           strcmp(ops->name, "portable") && ops != cpu_ops_find(NULL, NULL);
}

static bool asked_for(const CpuOps *ops, bool emulated) {
    const char *only = getenv("OUTPACE_ISA");
    return !only || !*only || (!emulated && strcmp(only, ops->name) == 0);
}

static void missing(void **state) {
    (void)state;
    skip();
}

int main(void) {
    static const struct CMUnitTest all[] = {
        {"products", products, NULL, NULL, NULL},
        {"coded products", coded_products, NULL, NULL, NULL},
        {"norms", norms, NULL, NULL, NULL},
        {"rotations", rotations, NULL, NULL, NULL},
        {"gates", gates, NULL, NULL, NULL},
        {"attention", attention, NULL, NULL, NULL},
        {"speed", speed, NULL, NULL, NULL},
        {"sums of powers", sums_of_powers, NULL, NULL, NULL},
        {"integer products", integer_products, NULL, NULL, NULL},
        {"packed codes", packed_codes, NULL, NULL, NULL},
    };
    enum { CHECKS = sizeof all / sizeof *all, SETS = 16 };
    static char names[SETS * CHECKS][64];
    struct CMUnitTest tests[SETS * CHECKS];
    size_t count = 0, sets = cpu_ops_count() + 1;
    bool trapped = tiles_trap() && tiles_trap_end() == 0;
    for (size_t i = 0; i < sets; i++)
        for (size_t k = 0; k < CHECKS; k++, count++) {
            bool available, emulated = i == sets - 1;
            const CpuOps *ops = set_at(i, &available);
            if (left_out(ops, emulated)) break;
            bool by_hand = trapped && ops == &cpu_ops_amx;
            snprintf(names[count], sizeof names[count], "%s%s: %s", ops->name,
                     emulated  ? ", emulated"
                     : by_hand ? ", trapped"
                               : "",
                     all[k].name);
            tests[count] = all[k];
            tests[count].name = names[count];
            tests[count].initial_state = (void *)(size_t)ops;
            bool runs = available || (by_hand && all[k].test_func != speed); // trapped tiles have no speed
            if (!runs || !asked_for(ops, emulated)) tests[count].test_func = missing;
        }
    return _cmocka_run_group_tests("ops", tests, count, NULL, NULL);
}
