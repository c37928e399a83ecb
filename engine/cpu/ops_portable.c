// Plain C in a fixed lane structure (lanes.h): readable, fast enough anywhere, and the set that others fall
// back to.
//
// A product takes ROWS rows at a time, so that a weight is converted once for all of them; each (row, output)
// has lanes of its own, so the number of rows changes no bit.
#include "engine/cpu/lanes.h"
#include "engine/cpu/ops.h"

enum { ROWS = 4 };

static bool always(void) { return true; }

static size_t packed_bytes(int rows, int columns) { return (size_t)rows * (size_t)columns * sizeof(float); }

static void pack(const float *x, int rows, int columns, Compute compute, void *packed) {
    float *out = packed;
    size_t n = (size_t)rows * (size_t)columns;
    if (compute == COMPUTE_F32) memcpy(out, x, n * sizeof *out);
    else
        for (size_t i = 0; i < n; i++) out[i] = bf16_round(x[i]);
}

// LANES weights from element `at` of a row on, as f32; fewer at the row's end, the rest 0.
static inline void load_lanes(const Tensor *w, size_t at, int n, float out[LANES]) {
    for (int i = n; i < LANES; i++) out[i] = 0;
    switch (w->dtype) {
    case DTYPE_F32: memcpy(out, (const float *)w->data + at, (size_t)n * sizeof *out); break;
    case DTYPE_F16:
        for (int i = 0; i < n; i++) out[i] = f16_to_f32(((const uint16_t *)w->data)[at + (size_t)i]);
        break;
    case DTYPE_BF16:
        for (int i = 0; i < n; i++) out[i] = bf16_to_f32(((const uint16_t *)w->data)[at + (size_t)i]);
        break;
    }
}

// Output n of up to ROWS rows, to y[r * stride].
static void dot_rows(const Tensor *w, int n, const float *x, int rows, float *y, size_t stride) {
    size_t columns = (size_t)w->columns, start = (size_t)n * columns;
    float lane[ROWS][LANES] = {{0}}, weight[LANES];
    for (size_t k = 0; k < columns; k += LANES) {
        int count = columns - k < LANES ? (int)(columns - k) : LANES;
        load_lanes(w, start + k, count, weight);
        for (int r = 0; r < rows; r++) {
            const float *in = x + (size_t)r * columns + k;
            if (count == LANES)
                for (int i = 0; i < LANES; i++) lane[r][i] += weight[i] * in[i];
            else
                for (int i = 0; i < count; i++) lane[r][i] += weight[i] * in[i];
        }
    }
    for (int r = 0; r < rows; r++) y[(size_t)r * stride] = lanes_sum(lane[r]);
}

static void matmul(const Tensor *w, const void *packed, int rows, Compute compute, float *y, size_t stride,
                   int from, int to) {
    (void)compute;
    const float *x = packed;
    for (int n = from; n < to; n++, y++)
        for (int r = 0; r < rows; r += ROWS)
            dot_rows(w, n, x + (size_t)r * (size_t)w->columns, rows - r < ROWS ? rows - r : ROWS,
                     y + (size_t)r * stride, stride);
}

static void rmsnorm(const float *x, const Tensor *weight, float epsilon, int n, float *y) {
    float lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += x[i + j] * x[i + j];
    for (; i < n; i++) lane[i % LANES] += x[i] * x[i];
    float scale = 1.0f / sqrtf(lanes_sum(lane) / (float)n + epsilon);
    for (i = 0; i < n; i++) y[i] = x[i] * scale * dtype_load(weight->dtype, weight->data, (size_t)i);
}

static void rope(float *head, const float *cosine, const float *sine, int pairs) {
    for (int i = 0; i < pairs; i++) {
        float a = head[i], b = head[i + pairs];
        head[i] = a * cosine[i] - b * sine[i];
        head[i + pairs] = b * cosine[i] + a * sine[i];
    }
}

static void gate(float *gate, const float *up, int n, Activation activation) {
    if (activation == ACTIVATION_SILU)
        for (int i = 0; i < n; i++) gate[i] = lanes_silu(gate[i]) * up[i];
    else
        for (int i = 0; i < n; i++) gate[i] = lanes_gelu_tanh(gate[i]) * up[i];
}

static float dot_f32(const float *a, const float *b, int n) {
    float lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += a[i + j] * b[i + j];
    for (; i < n; i++) lane[i % LANES] += a[i] * b[i];
    return lanes_sum(lane);
}

static float dot_bf16(const float *a, const uint16_t *b, int n) {
    float lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += a[i + j] * bf16_to_f32(b[i + j]);
    for (; i < n; i++) lane[i % LANES] += a[i] * bf16_to_f32(b[i]);
    return lanes_sum(lane);
}

static void score_head(const Attend *a, const float *q, float *scores) {
    for (int s = 0; s < a->span_count; s++)
        for (int j = 0; j < a->spans[s].count; j++) {
            size_t at = (size_t)j * a->stride;
            *scores++ = a->scale * (a->dtype == DTYPE_F32
                                        ? dot_f32(q, (const float *)a->spans[s].k + at, a->head_dim)
                                        : dot_bf16(q, (const uint16_t *)a->spans[s].k + at, a->head_dim));
        }
}

// Scores become weights that sum to one. Lane i holds positions i, i + LANES, ... counted from the first
// visible one, which is a function of the query's position alone.
static void softmax(float *scores, int n) {
    float highest = -INFINITY, lane[LANES] = {0};
    for (int i = 0; i < n; i++) highest = scores[i] > highest ? scores[i] : highest;
    for (int i = 0; i < n; i++) scores[i] = lanes_exp(scores[i] - highest);
    for (int i = 0; i < n; i++) lane[i % LANES] += scores[i];
    float scale = 1.0f / lanes_sum(lane);
    for (int i = 0; i < n; i++) scores[i] *= scale;
}

static void add_values(const Attend *a, const float *weights, float *out) {
    for (int d = 0; d < a->head_dim; d++) out[d] = 0;
    for (int s = 0; s < a->span_count; s++)
        for (int j = 0; j < a->spans[s].count; j++, weights++) {
            size_t at = (size_t)j * a->stride;
            const float *f = (const float *)a->spans[s].v + at;
            const uint16_t *h = (const uint16_t *)a->spans[s].v + at;
            if (a->dtype == DTYPE_F32)
                for (int d = 0; d < a->head_dim; d++) out[d] += *weights * f[d];
            else
                for (int d = 0; d < a->head_dim; d++) out[d] += *weights * bf16_to_f32(h[d]);
        }
}

static void attend(const Attend *a) {
    for (int g = 0; g < a->group; g++) {
        score_head(a, a->q + g * a->head_dim, a->scores);
        softmax(a->scores, a->visible);
        add_values(a, a->scores, a->out + g * a->head_dim);
    }
}

const CpuOps cpu_ops_portable = {.name = "portable",
                                 .available = always,
                                 .packed_bytes = packed_bytes,
                                 .pack = pack,
                                 .matmul = matmul,
                                 .rmsnorm = rmsnorm,
                                 .rope = rope,
                                 .gate = gate,
                                 .attend = attend};
