// Every operation as its definition says, summed in double. Nothing here is fast, and nothing should be.
#include "engine/cpu/ops.h"

#include <math.h>

static bool always(void) { return true; }

static size_t packed_bytes(int rows, int columns) { return (size_t)rows * (size_t)columns * sizeof(float); }

static void pack(const float *x, int rows, int columns, Compute compute, void *packed) {
    float *out = packed;
    for (size_t i = 0; i < (size_t)rows * (size_t)columns; i++)
        out[i] = compute == COMPUTE_BF16 ? bf16_round(x[i]) : x[i];
}

static void matmul(const Tensor *w, const void *packed, int rows, Compute compute, float *y, size_t stride,
                   int from, int to) {
    (void)compute;
    const float *x = packed;
    size_t columns = (size_t)w->columns;
    for (int r = 0; r < rows; r++)
        for (int n = from; n < to; n++) {
            double sum = 0;
            for (size_t k = 0; k < columns; k++)
                sum += (double)dtype_load(w->dtype, w->data, (size_t)n * columns + k) *
                       (double)x[(size_t)r * columns + k];
            y[(size_t)r * stride + (size_t)(n - from)] = (float)sum;
        }
}

static void rmsnorm(const float *x, const Tensor *weight, float epsilon, int n, float *y) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    double scale = 1 / sqrt(sum / n + (double)epsilon);
    for (int i = 0; i < n; i++)
        y[i] = (float)((double)x[i] * scale * (double)dtype_load(weight->dtype, weight->data, (size_t)i));
}

static void rope(float *head, const float *cosine, const float *sine, int pairs) {
    for (int i = 0; i < pairs; i++) {
        double a = (double)head[i], b = (double)head[i + pairs], c = (double)cosine[i], s = (double)sine[i];
        head[i] = (float)(a * c - b * s);
        head[i + pairs] = (float)(b * c + a * s);
    }
}

static double activate(double x, Activation activation) {
    if (activation == ACTIVATION_SILU) return x / (1 + exp(-x));
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void gate(float *gate, const float *up, int n, Activation activation) {
    for (int i = 0; i < n; i++) gate[i] = (float)(activate((double)gate[i], activation) * (double)up[i]);
}

static double dot(const float *q, const void *k, size_t at, Dtype dtype, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)q[i] * (double)dtype_load(dtype, k, at + (size_t)i);
    return sum;
}

// softmax(scale * q K) V for one query head.
static void attend_head(const Attend *a, const float *q, float *scores, float *out) {
    double highest = -INFINITY, total = 0;
    int i = 0;
    for (int s = 0; s < a->span_count; s++)
        for (int j = 0; j < a->spans[s].count; j++, i++) {
            double score =
                (double)a->scale * dot(q, a->spans[s].k, (size_t)j * a->stride, a->dtype, a->head_dim);
            scores[i] = (float)score;
            highest = fmax(highest, (double)scores[i]);
        }
    for (i = 0; i < a->visible; i++) total += exp((double)scores[i] - highest);
    for (int d = 0; d < a->head_dim; d++) {
        double sum = 0;
        i = 0;
        for (int s = 0; s < a->span_count; s++)
            for (int j = 0; j < a->spans[s].count; j++, i++)
                sum += exp((double)scores[i] - highest) *
                       (double)dtype_load(a->dtype, a->spans[s].v, (size_t)j * a->stride + (size_t)d);
        out[d] = (float)(sum / total);
    }
}

static void attend(const Attend *a) {
    for (int g = 0; g < a->group; g++)
        attend_head(a, a->q + g * a->head_dim, a->scores, a->out + g * a->head_dim);
}

const CpuOps cpu_ops_reference = {.name = "reference",
                                  .available = always,
                                  .packed_bytes = packed_bytes,
                                  .pack = pack,
                                  .matmul = matmul,
                                  .rmsnorm = rmsnorm,
                                  .rope = rope,
                                  .gate = gate,
                                  .attend = attend};
