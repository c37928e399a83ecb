// Newton-Schulz iterations on whichever side of X is smaller. If X is wide, A = X X^T, and X becomes
// (a I + b A + c A^2) X. If it is tall, A = X^T X, and the polynomial is multiplied from the right.
#include "engine/train/muon.h"

#include <math.h>
#include <string.h>

static size_t smaller_side(int rows, int columns) { return (size_t)(rows < columns ? rows : columns); }

// X twice, A and its polynomial.
size_t muon_scratch(int rows, int columns) {
    size_t side = smaller_side(rows, columns);
    return 2 * (size_t)rows * (size_t)columns + 2 * side * side;
}

static void multiply(const MuonStep *s, View a, View b, float *c, int m, int n, int k) {
    Product p = {.a = a, .b = b, .c = c, .stride = (size_t)n, .m = m, .n = n, .k = k};
    s->kernels->product(&p, s->product);
}

// p = 3.4445 I - 4.7750 a + 2.0315 a a
static void polynomial(const MuonStep *s, const float *a, float *p, int side) {
    size_t n = (size_t)side;
    multiply(s, view_rows(a, n), view_rows(a, n), p, side, side, side);
    for (size_t i = 0; i < n * n; i++) p[i] = 2.0315f * p[i] - 4.7750f * a[i];
    for (size_t i = 0; i < n; i++) p[i * n + i] += 3.4445f;
}

void muon_orthogonalise(const MuonStep *s, float *x, int rows, int columns) {
    enum { STEPS = 5 };
    size_t n = (size_t)rows * (size_t)columns, width = (size_t)columns;
    int side = (int)smaller_side(rows, columns);
    float *next = s->scratch + n, *a = next + n, *p = a + (size_t)side * (size_t)side;
    float by = 1 / ((float)sqrt(s->kernels->sum_of_squares(x, n)) + 1e-7f);
    for (size_t i = 0; i < n; i++) x[i] *= by;
    for (int step = 0; step < STEPS; step++) {
        bool wide = rows <= columns;
        View here = view_rows(x, width), turned = view_transposed(x, width);
        multiply(s, wide ? here : turned, wide ? turned : here, a, side, side, wide ? columns : rows);
        polynomial(s, a, p, side);
        View by_side = view_rows(p, (size_t)side);
        multiply(s, wide ? by_side : here, wide ? here : by_side, next, rows, columns, side);
        memcpy(x, next, n * sizeof *x);
    }
}

// Nesterov momentum: the step is along the average, moved on by the gradient a second time.
void muon(const MuonStep *s, float *weight, const float *gradient, float *mean, int rows, int columns) {
    size_t n = (size_t)rows * (size_t)columns;
    float *x = s->scratch, by = s->rate * 0.2f * sqrtf((float)(rows > columns ? rows : columns));
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i] * s->gradient_scale;
        mean[i] += (1.0f - s->momentum) * (g - mean[i]);
        x[i] = g + s->momentum * (mean[i] - g);
    }
    muon_orthogonalise(s, x, rows, columns);
    for (size_t i = 0; i < n; i++) weight[i] -= by * x[i] + s->rate * s->decay * weight[i];
}
