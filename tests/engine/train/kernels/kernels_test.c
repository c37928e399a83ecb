// Every training kernel of every set: products against sums in double, with guards around the result; forward
// passes against plain ones in double, backward passes against finite differences of those.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/train/kernels/kernels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 100, POISON = 12345 };

static float uniform(Random *r) { return (float)(2 * random_uniform(r) - 1); }

static float *numbers(size_t n, Random *r) {
    float *x = mem_new(n, sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = uniform(r);
    return x;
}

static void for_sets(void (*check)(const TrainKernels *k, Random *r), uint64_t which) {
    for (size_t i = 0; i < train_kernels_count(); i++) {
        bool available;
        const TrainKernels *k = train_kernels_at(i, &available);
        Random r = test_random(which);
        if (available) check(k, &r);
        print_message("%s: %s\n", k->name, available ? "checked" : "not on this processor");
    }
}

// --- the product -----------------------------------------------------------------------------------------

static float at(const View *v, int i, int j) { return v->data[(size_t)i * v->row + (size_t)j * v->column]; }

static View random_view(int rows, int columns, float **block, Random *r) {
    bool turned = random_below(r, 2);
    size_t stride = (size_t)((turned ? rows : columns) + test_between(r, 0, 5));
    *block = numbers(stride * (size_t)(turned ? columns : rows), r);
    return turned ? view_transposed(*block, stride) : view_rows(*block, stride);
}

// What a product makes of an operand.
static double operand(const TrainKernels *k, float x) {
    uint32_t bits;
    if (!k->rounds_to_bf16) return (double)x;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000; // to nearest even
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static void compare_product(const TrainKernels *k, const Product *p, const float *before) {
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < (int)p->stride; j++) {
            size_t place = (size_t)i * p->stride + (size_t)j;
            double want = p->add || j >= p->n ? (double)before[place] : 0;
            for (int x = 0; j < p->n && x < p->k; x++)
                want += operand(k, at(&p->a, i, x)) * operand(k, at(&p->b, x, j));
            if (fabs((double)p->c[place] - want) > 2e-6 * sqrt(p->k) + 1e-6 * fabs(want))
                fail_msg("%s: %d x %d x %d, add %d, element (%d, %d): wanted %.8g, got %.8g", k->name, p->m,
                         p->n, p->k, p->add, i, j, want, (double)p->c[place]);
        }
}

// The same rows in two pieces, cut anywhere: not a bit may differ.
static void compare_pieces(const TrainKernels *k, const Product *p, const float *before, float *scratch,
                           Random *r) {
    size_t bytes = (size_t)p->m * p->stride * sizeof(float);
    int cut = test_between(r, 0, p->m);
    float *c = mem_new(bytes, 1);
    Product low = *p, high = *p;
    memcpy(c, before, bytes);
    low.c = c;
    low.m = cut;
    high.c = c + (size_t)cut * p->stride;
    high.a.data += (size_t)cut * p->a.row;
    high.m = p->m - cut;
    k->product(&low, scratch);
    k->product(&high, scratch);
    if (memcmp(c, p->c, bytes)) fail_msg("%s: rows depend on those beside them (cut at %d)", k->name, cut);
    mem_free(c);
}

// The same from panels that two threads packed, of the whole of b or of what stands left and above in it: not
// a bit may differ.
static void compare_panels(const TrainKernels *k, const Product *whole, const float *before, float *scratch,
                           Random *r) {
    size_t bytes = (size_t)whole->m * whole->stride * sizeof(float);
    size_t size = k->panels_size(whole->k, whole->n);
    Panels panels = {numbers(size + 1, r), whole->k, whole->n};
    int cut = test_between(r, 0, whole->n / k->panel_unit) * k->panel_unit;
    panels.data[size] = POISON;
    k->pack(&whole->b, &panels, cut, whole->n);
    k->pack(&whole->b, &panels, 0, cut);
    assert_true(panels.data[size] == POISON);
    for (int part = 0; part < 2; part++) {
        float *plain = mem_new(bytes, 1), *packed = mem_new(bytes, 1);
        Product p = *whole;
        if (part) {
            p.n = test_between(r, 1, p.n);
            p.k = test_between(r, 1, p.k);
        }
        p.c = memcpy(plain, before, bytes);
        k->product(&p, scratch);
        p.c = memcpy(packed, before, bytes);
        p.panels = panels;
        p.b = (View){0};
        k->product(&p, scratch);
        if (memcmp(plain, packed, bytes))
            fail_msg(
                "%s: %d x %d x %d of panels %d deep, %d wide, cut at %d: not the bits of the plain product",
                k->name, p.m, p.n, p.k, panels.k, panels.n, cut);
        mem_free(plain);
        mem_free(packed);
    }
    mem_free(panels.data);
}

static void check_product(const TrainKernels *k, Random *r) {
    float *scratch = mem_new(k->scratch, sizeof *scratch);
    for (int round = 0; round < 300; round++) {
        int large = round % 20 == 0 ? 500 : 40;
        Product p = {
            .m = test_between(r, 1, large), .n = test_between(r, 1, large), .add = random_below(r, 2)};
        p.k = test_between(r, 1, large);
        float *a, *b, *before;
        p.a = random_view(p.m, p.k, &a, r);
        p.b = random_view(p.k, p.n, &b, r);
        p.stride = (size_t)(p.n + test_between(r, 0, 3));
        before = numbers((size_t)p.m * p.stride, r);
        p.c = mem_new((size_t)p.m * p.stride, sizeof *p.c);
        memcpy(p.c, before, (size_t)p.m * p.stride * sizeof *p.c);
        k->product(&p, scratch);
        compare_product(k, &p, before);
        compare_pieces(k, &p, before, scratch, r);
        compare_panels(k, &p, before, scratch, r);
        mem_free(a);
        mem_free(b);
        mem_free(before);
        mem_free(p.c);
    }
    mem_free(scratch);
}

// Columns beyond one block of b: more than COLUMN_BLOCK of them.
static void check_wide_product(const TrainKernels *k, Random *r) {
    float *scratch = mem_new(k->scratch, sizeof *scratch), *a, *b;
    Product p = {.m = 3, .n = 2100, .k = 5, .stride = 2100};
    p.a = random_view(p.m, p.k, &a, r);
    p.b = random_view(p.k, p.n, &b, r);
    p.c = numbers(3 * 2100, r);
    k->product(&p, scratch);
    compare_product(k, &p, p.c);
    compare_panels(k, &p, p.c, scratch, r);
    mem_free(a);
    mem_free(b);
    mem_free(p.c);
    mem_free(scratch);
}

static void products(void **state) {
    (void)state;
    for_sets(check_product, 1);
    for_sets(check_wide_product, 2);
}

// --- rows ------------------------------------------------------------------------------------------------

// One operation on one row: inputs of n numbers each, outputs of n numbers, constants of its own.
typedef struct Row {
    int n, inputs;
    double in[3][LONGEST]; // what derivatives are taken of
    double angle[LONGEST];
    int visible, target;
    double scale, epsilon;
} Row;

typedef void Plain(const Row *row, double *y);

static void plain_rmsnorm(const Row *row, double *y) {
    double sum = 0;
    for (int i = 0; i < row->n; i++) sum += row->in[0][i] * row->in[0][i];
    for (int i = 0; i < row->n; i++) y[i] = row->in[0][i] / sqrt(sum / row->n + row->epsilon) * row->in[1][i];
}

static void plain_rope(const Row *row, double *y) {
    for (int i = 0; i < row->n / 2; i++) {
        double a = row->in[0][i], b = row->in[0][i + row->n / 2];
        y[i] = a * cos(row->angle[i]) - b * sin(row->angle[i]);
        y[i + row->n / 2] = b * cos(row->angle[i]) + a * sin(row->angle[i]);
    }
}

static void plain_swiglu(const Row *row, double *y) {
    for (int i = 0; i < row->n; i++) y[i] = row->in[0][i] / (1 + exp(-row->in[0][i])) * row->in[1][i];
}

static void plain_softmax(const Row *row, double *y) {
    double sum = 0;
    for (int i = 0; i < row->visible; i++) sum += exp(row->scale * row->in[0][i]);
    for (int i = 0; i < row->n; i++) y[i] = i < row->visible ? exp(row->scale * row->in[0][i]) / sum : 0;
}

// One output only.
static void plain_cross_entropy(const Row *row, double *y) {
    double sum = 0;
    memset(y, 0, LONGEST * sizeof *y);
    for (int i = 0; i < row->n; i++) sum += exp(row->in[0][i]);
    y[0] = log(sum) - row->in[0][row->target];
}

// The second input is any numbers: their softmax is wanted, and learned by the first alone.
static void plain_wanted(const Row *row, double *wanted) {
    double sum = 0;
    for (int i = 0; i < row->n; i++) sum += wanted[i] = exp(row->in[1][i]);
    for (int i = 0; i < row->n; i++) wanted[i] /= sum;
}

static void plain_distillation(const Row *row, double *y) {
    double sum = 0, wanted[LONGEST];
    plain_wanted(row, wanted);
    memset(y, 0, LONGEST * sizeof *y);
    for (int i = 0; i < row->n; i++) sum += exp(row->in[0][i]);
    for (int i = 0; i < row->n; i++) y[0] += wanted[i] * (log(sum) - row->in[0][i]);
}

// What a kernel gives for the same row: outputs, and gradients of the inputs for those of the outputs.
typedef void Fast(const TrainKernels *k, const Row *row, const float (*in)[LONGEST], float *y,
                  const float *dy, float (*gradient)[LONGEST]);

static void fast_rmsnorm(const TrainKernels *k, const Row *row, const float (*in)[LONGEST], float *y,
                         const float *dy, float (*gradient)[LONGEST]) {
    float past[LONGEST] = {0};
    float inverse = k->rmsnorm_forward(in[0], in[1], (float)row->epsilon, row->n, y);
    k->rmsnorm_backward(dy, in[0], in[1], inverse, row->n, past, gradient[0], gradient[1]);
}

static void fast_rope(const TrainKernels *k, const Row *row, const float (*in)[LONGEST], float *y,
                      const float *dy, float (*gradient)[LONGEST]) {
    float cosine[LONGEST], sine[LONGEST];
    for (int i = 0; i < row->n / 2; i++) {
        cosine[i] = (float)cos(row->angle[i]);
        sine[i] = (float)sin(row->angle[i]);
    }
    memcpy(y, in[0], LONGEST * sizeof *y);
    memcpy(gradient[0], dy, LONGEST * sizeof *dy);
    k->rope_forward(y, cosine, sine, row->n / 2);
    k->rope_backward(gradient[0], cosine, sine, row->n / 2);
}

static void fast_swiglu(const TrainKernels *k, const Row *row, const float (*in)[LONGEST], float *y,
                        const float *dy, float (*gradient)[LONGEST]) {
    k->swiglu_forward(in[0], in[1], row->n, y);
    k->swiglu_backward(dy, in[0], in[1], row->n, gradient[0], gradient[1]);
}

static void fast_softmax(const TrainKernels *k, const Row *row, const float (*in)[LONGEST], float *y,
                         const float *dy, float (*gradient)[LONGEST]) {
    memcpy(y, in[0], LONGEST * sizeof *y);
    memcpy(gradient[0], dy, LONGEST * sizeof *dy);
    k->softmax_forward(y, (float)row->scale, row->visible, row->n);
    k->softmax_backward(gradient[0], y, (float)row->scale, row->visible, row->n);
}

static void fast_cross_entropy(const TrainKernels *k, const Row *row, const float (*in)[LONGEST], float *y,
                               const float *dy, float (*gradient)[LONGEST]) {
    memcpy(gradient[0], in[0], LONGEST * sizeof *y);
    memset(y, 0, LONGEST * sizeof *y);
    y[0] = k->cross_entropy_forward(gradient[0], row->target, row->n);
    k->cross_entropy_backward(gradient[0], row->target, dy[0], row->n);
}

static void fast_distillation(const TrainKernels *k, const Row *row, const float (*in)[LONGEST], float *y,
                              const float *dy, float (*gradient)[LONGEST]) {
    double exact[LONGEST];
    float wanted[LONGEST];
    plain_wanted(row, exact);
    for (int i = 0; i < row->n; i++) wanted[i] = (float)exact[i];
    memcpy(gradient[0], in[0], LONGEST * sizeof *y);
    memset(y, 0, LONGEST * sizeof *y);
    y[0] = k->distillation_forward(gradient[0], wanted, row->n);
    k->distillation_backward(gradient[0], wanted, dy[0], row->n);
}

static const struct {
    const char *name;
    int inputs; // whose gradients are looked at
    Plain *plain;
    Fast *fast;
} OPERATIONS[] = {
    {"rmsnorm", 2, plain_rmsnorm, fast_rmsnorm},
    {"rope", 1, plain_rope, fast_rope},
    {"swiglu", 2, plain_swiglu, fast_swiglu},
    {"softmax", 1, plain_softmax, fast_softmax},
    {"cross entropy", 1, plain_cross_entropy, fast_cross_entropy},
    {"distillation", 1, plain_distillation, fast_distillation},
};
enum { OPERATION_COUNT = sizeof OPERATIONS / sizeof *OPERATIONS };

static double weighted(Plain *plain, const Row *row, const float *dy) {
    double y[LONGEST], sum = 0;
    plain(row, y);
    for (int i = 0; i < row->n; i++) sum += (double)dy[i] * y[i];
    return sum;
}

static double slope(Plain *plain, Row *row, double *x, const float *dy) {
    const double step = 1e-5;
    double there = *x;
    *x = there + step;
    double high = weighted(plain, row, dy);
    *x = there - step;
    double low = weighted(plain, row, dy);
    *x = there;
    return (high - low) / (2 * step);
}

static void expect_near(const char *set, const char *what, const Row *row, int i, double want, double got) {
    if (!(fabs(got - want) <= 4e-6 + 1e-5 * fabs(want)))
        fail_msg("%s: %s of %d numbers, number %d: wanted %.8g, got %.8g (seed %llu)", set, what, row->n, i,
                 want, got, (unsigned long long)test_seed());
}

static void check_operation(const TrainKernels *k, int which, Random *r) {
    Row row = {.n = 2 * test_between(r, 1, LONGEST / 2), .inputs = OPERATIONS[which].inputs, .epsilon = 1e-5};
    float in[3][LONGEST], y[LONGEST] = {0}, dy[LONGEST] = {0}, gradient[3][LONGEST] = {{0}};
    double want[LONGEST] = {0}, spread = random_below(r, 3) ? 2 : 20;
    row.visible = test_between(r, 1, row.n);
    row.target = test_between(r, 0, row.n - 1);
    row.scale = 0.1 + random_uniform(r);
    for (int i = 0; i < LONGEST; i++) {
        row.angle[i] = 6 * random_uniform(r);
        dy[i] = uniform(r);
        for (int x = 0; x < 3; x++) row.in[x][i] = (double)(in[x][i] = (float)spread * uniform(r));
    }
    OPERATIONS[which].plain(&row, want);
    OPERATIONS[which].fast(k, &row, (const float(*)[LONGEST])in, y, dy, gradient);
    for (int i = 0; i < row.n; i++)
        expect_near(k->name, OPERATIONS[which].name, &row, i, want[i], (double)y[i]);
    for (int x = 0; x < row.inputs; x++)
        for (int i = 0; i < row.n; i++)
            expect_near(k->name, OPERATIONS[which].name, &row, i,
                        slope(OPERATIONS[which].plain, &row, &row.in[x][i], dy), (double)gradient[x][i]);
}

static void check_operations(const TrainKernels *k, Random *r) {
    for (int round = 0; round < 40 * OPERATION_COUNT; round++) check_operation(k, round % OPERATION_COUNT, r);
}

static void operations(void **state) {
    (void)state;
    for_sets(check_operations, 3);
}

// What rmsnorm_backward is given is added to, not replaced.
static void check_residual(const TrainKernels *k, Random *r) {
    float x[8], w[8], dy[8], past[8], y[8], dx[8], alone[8], dw[8] = {0}, zero[8] = {0};
    for (int i = 0; i < 8; i++)
        x[i] = uniform(r), w[i] = uniform(r), dy[i] = uniform(r), past[i] = uniform(r);
    float inverse = k->rmsnorm_forward(x, w, 1e-5f, 8, y);
    k->rmsnorm_backward(dy, x, w, inverse, 8, zero, alone, dw);
    float once = dw[0];
    k->rmsnorm_backward(dy, x, w, inverse, 8, past, dx, dw);
    assert_float_equal(dw[0], 2 * once, 1e-6);
    for (int i = 0; i < 8; i++) assert_float_equal(dx[i], alone[i] + past[i], 1e-6);
}

static void residual(void **state) {
    (void)state;
    for_sets(check_residual, 4);
}

// --- the optimiser ---------------------------------------------------------------------------------------

static void check_adamw(const TrainKernels *k, Random *r) {
    enum { N = 37, STEPS = 20 };
    float w[N], g[N], mean[N] = {0}, square[N] = {0};
    double ww[N], m[N] = {0}, v[N] = {0};
    const double rate = 0.01, decay = 0.1, b1 = 0.9, b2 = 0.95, epsilon = 1e-8, clip = 0.5;
    for (int i = 0; i < N; i++) ww[i] = (double)(w[i] = uniform(r));
    for (int t = 1; t <= STEPS; t++) {
        AdamStep s = {.rate = (float)rate,
                      .decay = (float)decay,
                      .beta1 = (float)b1,
                      .beta2 = (float)b2,
                      .epsilon = (float)epsilon,
                      .gradient_scale = (float)clip};
        s.unbias1 = (float)(1 / (1 - pow(b1, t)));
        s.unbias2 = (float)(1 / (1 - pow(b2, t)));
        for (int i = 0; i < N; i++) {
            double gi = clip * (double)(g[i] = uniform(r));
            m[i] = b1 * m[i] + (1 - b1) * gi;
            v[i] = b2 * v[i] + (1 - b2) * gi * gi;
            ww[i] -=
                rate * (m[i] / (1 - pow(b1, t)) / (sqrt(v[i] / (1 - pow(b2, t))) + epsilon) + decay * ww[i]);
        }
        k->adamw(&s, w, g, mean, square, N);
    }
    for (int i = 0; i < N; i++) assert_float_equal(w[i], (float)ww[i], 2e-5);
}

static void check_sums(const TrainKernels *k, Random *r) {
    float x[99], y[99];
    double want = 0;
    for (int i = 0; i < 99; i++) {
        x[i] = uniform(r);
        y[i] = 1;
        want += (double)x[i] * (double)x[i];
    }
    assert_true(fabs(k->sum_of_squares(x, 99) - want) < 1e-12);
    k->add(y, x, 98);
    assert_true(y[98] == 1);
    for (int i = 0; i < 98; i++) assert_true(y[i] == x[i] + 1);
}

static void optimiser(void **state) {
    (void)state;
    for_sets(check_adamw, 5);
    for_sets(check_sums, 6);
}

static void names(void **state) {
    (void)state;
    Error e = {0};
    assert_string_equal(train_kernels_find("portable", &e)->name, "portable");
    assert_non_null(train_kernels_find(NULL, &e));
    assert_null(train_kernels_find("sse9", &e));
    assert_non_null(strstr(e.text, "'sse9'"));
    assert_non_null(strstr(e.text, "portable"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(operations),
                                       cmocka_unit_test(residual), cmocka_unit_test(optimiser),
                                       cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
