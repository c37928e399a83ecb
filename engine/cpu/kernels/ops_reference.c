// Every operation by its definition, summed in double. Nothing here is fast, and nothing should be: all tests
// compare with it. Products in compute int8 are defined to the bit (int8.h), and so are those here.
#include "engine/cpu/kernels/int8.h"
#include "engine/cpu/kernels/ops.h"

#include <math.h>

static size_t packed_bytes(int rows, int columns) { return (size_t)rows * (size_t)columns * sizeof(float); }

static void pack(const float *x, const Packed *p, int first, int last) {
    float *out = p->data;
    size_t blocks = (size_t)(p->columns / INT8_BLOCK);
    for (size_t b = (size_t)first * blocks; p->bits && b < (size_t)last * blocks; b++)
        int8_round(x + b * INT8_BLOCK, (Int8Block *)p->data + b);
    if (p->bits) return;
    for (size_t i = (size_t)first * (size_t)p->columns; i < (size_t)last * (size_t)p->columns; i++)
        out[i] = dtype_round(compute_dtype(p->compute), x[i]);
}

// Adds the product of a block's columns [first, first + count), and as many `apart` further on, to a lane.
static void add_integers(const Tensor *w, size_t n, size_t b, const Int8Block *x, int first, int count,
                         int apart, float *lane) {
    int sum = 0;
    size_t group = (b * INT8_BLOCK + (size_t)first) / (size_t)w->codes.group;
    float scale = tensor_scale(w, n, group).scale * x[b].scale;
    for (int i = 0; i < (apart ? 2 : 1) * count; i++) {
        int k = first + i % count + i / count * apart;
        sum += tensor_code(w, n, b * INT8_BLOCK + (size_t)k) * x[b].code[k];
    }
    *lane = fmaf((float)sum, scale, *lane);
}

static void add_lows(const Tensor *w, size_t n, size_t first, size_t count, const Int8Block *x, float *lane) {
    for (size_t i = 0; codes_lowered(w->codes.bits) && i < count; i++) {
        size_t group = (first + i) * INT8_BLOCK / (size_t)w->codes.group;
        lane[i] = fmaf(tensor_scale(w, n, group).low, x[first + i].sum, lane[i]);
    }
}

static float int8_product(const Tensor *w, size_t n, const Int8Block *x) {
    enum { LANES = 16, HALF = INT8_BLOCK / 2 };
    float lane[LANES] = {0};
    size_t blocks = (size_t)(w->columns / INT8_BLOCK), whole = blocks / INT8_WIDE * INT8_WIDE;
    bool halves = w->codes.group < INT8_BLOCK, four = w->codes.bits == 4;
    for (size_t b = 0; b < whole; b++) {
        if (b % INT8_WIDE == 0) add_lows(w, n, b, INT8_WIDE, x, lane);
        add_integers(w, n, b, x, 0, halves ? HALF : INT8_BLOCK, 0, &lane[b % INT8_WIDE]);
        if (halves) add_integers(w, n, b, x, HALF, HALF, 0, &lane[b % INT8_WIDE]);
    }
    add_lows(w, n, whole, blocks - whole, x, lane);
    for (size_t b = whole; b < blocks; b++)
        for (int j = 0; j < 4; j++) {
            float *at = &lane[4 * (b % INT8_NARROW) + (size_t)j];
            add_integers(w, n, b, x, four ? 8 * j : 4 * j, four ? 8 : 4, four || halves ? 0 : HALF, at);
            if (halves) add_integers(w, n, b, x, HALF + 4 * j, 4, 0, at);
        }
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

static void matmul(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    size_t blocks = (size_t)(w->columns / INT8_BLOCK);
    for (int r = 0; p->bits && r < p->rows; r++)
        for (int n = from; n < to; n++)
            y[(size_t)r * stride + (size_t)(n - from)] =
                int8_product(w, (size_t)n, (const Int8Block *)p->data + (size_t)r * blocks);
    if (p->bits) return;
    const float *x = p->data;
    size_t columns = (size_t)w->columns;
    for (int r = 0; r < p->rows; r++)
        for (int n = from; n < to; n++) {
            double sum = 0;
            for (size_t k = 0; k < columns; k++)
                sum += (double)tensor_value(w, (size_t)n, k) * (double)x[(size_t)r * columns + k];
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

static void layernorm(const float *x, const Tensor *weight, const Tensor *bias, float epsilon, int n,
                      float *y) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i];
    for (int i = 0; i < n; i++) squares += ((double)x[i] - sum / n) * ((double)x[i] - sum / n);
    double mean = sum / n, scale = 1 / sqrt(squares / n + (double)epsilon);
    for (int i = 0; i < n; i++) {
        double b = bias->data ? (double)dtype_load(bias->dtype, bias->data, (size_t)i) : 0;
        y[i] = (float)(((double)x[i] - mean) * scale *
                           (double)dtype_load(weight->dtype, weight->data, (size_t)i) +
                       b);
    }
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
    if (activation == ACTIVATION_GELU) return 0.5 * x * (1 + erf(x * 0.7071067811865476));
    if (activation == ACTIVATION_RELU2) return x > 0 ? x * x : 0;
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void gate(float *gate, const float *up, int n, Activation activation) {
    for (int i = 0; i < n; i++) gate[i] = (float)(activate((double)gate[i], activation) * (double)up[i]);
}

// A walk over the keys of one node, in order of position: its spans before the shared ones, the shared ones,
// its spans after them.
typedef struct Walk {
    const KeySpan *part[3]; // the next span of each part
    int left[3];            // spans left in it
    int now, in_span;       // the current part, keys taken of its span
} Walk;

static Walk walk_begin(const Attend *a, int node) {
    const KeySpan *own = a->span + a->shared_spans;
    for (int n = 0; n < node; n++) own += a->before_spans[n] + a->after_spans[n];
    return (Walk){.part = {own, a->span, own + a->before_spans[node]},
                  .left = {a->before_spans[node], a->shared_spans, a->after_spans[node]}};
}

// Returns the next key's span, and in *key its number in the area.
static const KeySpan *walk_next(Walk *w, int *key) {
    while (w->left[w->now] == 0) w->now++;
    const KeySpan *s = w->part[w->now];
    *key = s->first + w->in_span++;
    if (w->in_span == s->count) {
        w->in_span = 0;
        w->part[w->now]++;
        w->left[w->now]--;
    }
    return s;
}

static double score(const Attend *a, const float *q, const KeySpan *s, int key) {
    double sum = 0;
    for (int d = 0; d < a->head_dim; d++)
        sum += (double)q[d] * (double)dtype_load(a->layout->dtype, s->k, key_at(a->layout, key, d));
    sum *= (double)a->scale;
    return a->cap > 0 ? (double)a->cap * tanh(sum / (double)a->cap) : sum;
}

static void take_scores(const Attend *a, int node, const float *q, float *scores) {
    Walk w = walk_begin(a, node);
    for (int i = 0, key; i < a->visible[node]; i++) {
        const KeySpan *s = walk_next(&w, &key);
        scores[i] = (float)score(a, q, s, key);
    }
}

static void weigh(float *scores, int visible) {
    double highest = -INFINITY, total = 0;
    for (int i = 0; i < visible; i++) highest = fmax(highest, (double)scores[i]);
    for (int i = 0; i < visible; i++) total += exp((double)scores[i] - highest);
    for (int i = 0; i < visible; i++) scores[i] = (float)(exp((double)scores[i] - highest) / total);
}

static void sum_values(const Attend *a, int node, const float *weights, float *out) {
    for (int d = 0, key; d < a->head_dim; d++) {
        double sum = 0;
        Walk w = walk_begin(a, node);
        for (int i = 0; i < a->visible[node]; i++) {
            const KeySpan *s = walk_next(&w, &key);
            sum +=
                (double)weights[i] * (double)dtype_load(a->layout->dtype, s->v, value_at(a->layout, key, d));
        }
        out[d] = (float)sum;
    }
}

// softmax(scale * q K) V for each query head, or the part of it that a->part names.
static void attend(const Attend *a) {
    for (int n = 0; n < a->nodes; n++)
        for (int g = 0; g < a->group; g++) {
            size_t at = (size_t)n * a->row + (size_t)(g * a->head_dim);
            float *scores = a->scores + (size_t)(n * a->group + g) * a->score_row;
            if (attend_does(a, ATTEND_SCORES)) take_scores(a, n, a->q + at, scores);
            if (attend_does(a, ATTEND_WEIGHTS)) weigh(scores, a->visible[n]);
            if (attend_does(a, ATTEND_VALUES)) sum_values(a, n, scores, a->out + at);
        }
}

static float exp_sum(const float *x, int n, float *highest) {
    double sum = 0;
    *highest = -INFINITY;
    for (int i = 0; i < n; i++) *highest = fmaxf(*highest, x[i]);
    for (int i = 0; i<n && * highest> - INFINITY; i++) sum += exp((double)x[i] - (double)*highest);
    return (float)sum;
}

static double peak(UNUSED Compute compute, long rounds) {
    volatile double sum = 1;
    for (long i = 0; i < rounds; i++) sum = sum * 0.999 + 0.001;
    return 2.0 * (double)rounds;
}

const CpuOps cpu_ops_reference = CPU_OPS_ROW("reference");
