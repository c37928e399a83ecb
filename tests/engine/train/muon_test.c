// Muon's orthogonalisation with every kernel set, against the same steps in double and against its purpose;
// and one whole step.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/train/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 96 };

typedef struct Buffers {
    float x[MOST * MOST], was[MOST * MOST], scratch[4 * MOST * MOST], *product;
} Buffers;

static MuonStep step_of(const TrainKernels *k, Buffers *b) {
    b->product = mem_new(k->scratch, sizeof *b->product);
    return (MuonStep){.kernels = k, .product = b->product, .scratch = b->scratch, .gradient_scale = 1};
}

static void fill(Random *r, float *x, int n) {
    for (int i = 0; i < n; i++) x[i] = (float)(random_uniform(r) - 0.5);
}

// c (m, n) = a b, of which either may be read turned.
static void plain_product(const double *a, bool turn_a, const double *b, bool turn_b, double *c, int m, int n,
                          int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int t = 0; t < k; t++)
                sum += (turn_a ? a[t * m + i] : a[i * k + t]) * (turn_b ? b[j * k + t] : b[t * n + j]);
            c[i * n + j] = sum;
        }
}

// X becomes a X + b X X^T X + c (X X^T)^2 X, five times.
static void plain(double *x, int rows, int columns) {
    static double gram[MOST * MOST], cube[MOST * MOST], fifth[MOST * MOST];
    double sum = 0;
    int n = rows * columns;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    for (int i = 0; i < n; i++) x[i] /= sqrt(sum);
    for (int step = 0; step < 5; step++) {
        plain_product(x, false, x, true, gram, rows, rows, columns);
        plain_product(gram, false, x, false, cube, rows, columns, rows);
        plain_product(gram, false, cube, false, fifth, rows, columns, rows);
        for (int i = 0; i < n; i++) x[i] = 3.4445 * x[i] - 4.7750 * cube[i] + 2.0315 * fifth[i];
    }
}

static void check_shape(const TrainKernels *k, Random *r, int rows, int columns) {
    static Buffers b;
    static double want[MOST * MOST];
    MuonStep s = step_of(k, &b);
    int n = rows * columns;
    double apart = 0, length = 0;
    fill(r, b.x, n);
    for (int i = 0; i < n; i++) want[i] = (double)b.x[i];
    assert_true(muon_scratch(rows, columns) <= sizeof b.scratch / sizeof *b.scratch);
    muon_orthogonalise(&s, b.x, rows, columns);
    plain(want, rows, columns);
    for (int i = 0; i < n; i++) {
        apart += ((double)b.x[i] - want[i]) * ((double)b.x[i] - want[i]);
        length += want[i] * want[i];
    }
    double most = k->rounds_to_bf16 ? 0.05 : 1e-4, mean = length / (rows < columns ? rows : columns);
    if (!(sqrt(apart / length) < most)) // written so that NaN fails
        fail_msg("%s, %d x %d: %g of its length off, wanted less than %g", k->name, rows, columns,
                 sqrt(apart / length), most);
    if (mean < 0.3 || mean > 1.7) fail_msg("%d x %d: singular values squared are %g", rows, columns, mean);
    mem_free(b.product);
}

static void orthogonal(void **state) {
    (void)state;
    Random r = test_random(1);
    for (size_t i = 0; i < train_kernels_count(); i++) {
        bool available;
        const TrainKernels *k = train_kernels_at(i, &available);
        if (!available) continue;
        check_shape(k, &r, 32, 32);
        check_shape(k, &r, 16, 96);
        check_shape(k, &r, 96, 16);
        for (int round = 0; round < 6; round++)
            check_shape(k, &r, test_between(&r, 1, MOST), test_between(&r, 1, MOST));
    }
}

// The first step from no momentum: along the gradient made orthogonal, 0.2 * rate * the root of the larger
// side, whatever the gradient's length; and decay.
static void one_step(void **state) {
    (void)state;
    static Buffers b;
    static float mean[32 * 64], weight[32 * 64];
    Random r = test_random(2);
    Error e = {0};
    const TrainKernels *k = train_kernels_find("portable", &e);
    assert_non_null(k);
    MuonStep s = step_of(k, &b);
    s.rate = 0.01f;
    s.decay = 0.5f;
    s.momentum = 0.9f;
    fill(&r, b.was, 32 * 64);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 32 * 64; i++) {
            b.x[i] = b.was[i] * (round ? 100.0f : 1.0f);
            weight[i] = 2;
            mean[i] = 0;
        }
        muon(&s, weight, b.x, mean, 32, 64);
        for (int i = 0; i < 32 * 64; i++)
            assert_float_equal(mean[i], 0.1f * b.x[i], 1e-5f * fabsf(b.x[i]) + 1e-9f);
        muon_orthogonalise(&s, b.x, 32, 64);
        for (int i = 0; i < 32 * 64; i++)
            assert_float_equal(weight[i], 2 - 0.01f * 0.2f * 8 * b.x[i] - 0.01f * 0.5f * 2, 1e-5);
    }
    mem_free(b.product);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(orthogonal), cmocka_unit_test(one_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
