// One forward pass over nodes of a token tree, layer by layer, PANEL rows at a time.
//
// A node's keys: cached positions from the first visible one, in the one or two runs in which the slots
// stand, then its ancestors in the step area, then itself; always in ascending order of position. Ancestors
// that were added one behind the other (a chain, a chunk of a prompt) form one span.
#include "engine/cpu/instance.h"

#include <math.h>
#include <string.h>

// A part of the work of one panel in one layer, for all threads.
typedef struct Work {
    Cpu *c;
    const StepRun *run;
    const LayerWeights *w;
    int layer;
    int first, rows; // nodes of the panel
} Work;

static float *hidden_row(const Work *k, int row) {
    return k->c->hidden + (size_t)(k->first + row) * (size_t)k->c->model->shape.width;
}

static const void *row_at(const void *base, size_t row, size_t row_bytes) {
    return (const unsigned char *)base + row * row_bytes;
}

// --- norms and products
// --------------------------------------------------------------------------------------------

typedef struct {
    const Work *work;
    const Tensor *weight;
} NormTask;

static void norm_rows(void *argument, int thread, int threads) {
    const NormTask *t = argument;
    const Shape *s = &t->work->c->model->shape;
    int from, to;
    pool_share(t->work->rows, 1, thread, threads, &from, &to);
    for (int r = from; r < to; r++)
        t->work->c->ops->rmsnorm(hidden_row(t->work, r), t->weight, s->norm_epsilon, s->width,
                                 t->work->c->panel.normed + (size_t)r * (size_t)s->width);
}

static void pack(const Work *k, const float *rows, int columns) {
    k->c->ops->pack(rows, k->rows, columns, k->c->compute, k->c->panel.packed);
}

static void norm_and_pack(const Work *k, const Tensor *weight) {
    NormTask t = {k, weight};
    if (k->rows == 1) norm_rows(&t, 0, 1); // less work than waking anybody
    else pool_run(k->c->pool, norm_rows, &t);
    pack(k, k->c->panel.normed, k->c->model->shape.width);
}

static void product(const Work *k, const Tensor *w, float *y, int thread, int threads) {
    int from, to;
    pool_share(w->rows, MATMUL_UNIT, thread, threads, &from, &to);
    k->c->ops->matmul(w, k->c->panel.packed, k->rows, k->c->compute, y + from, (size_t)w->rows, from, to);
}

static void add_bias(const Tensor *bias, float *row) {
    for (int i = 0; bias->data && i < bias->columns; i++)
        row[i] += dtype_load(bias->dtype, bias->data, (size_t)i);
}

// --- attention
// -----------------------------------------------------------------------------------------------------

static void project_qkv(void *argument, int thread, int threads) {
    const Work *k = argument;
    product(k, &k->w->q, k->c->panel.q, thread, threads);
    product(k, &k->w->k, k->c->panel.k, thread, threads);
    product(k, &k->w->v, k->c->panel.v, thread, threads);
}

static void store_row(const Cpu *c, const float *row, void *base, size_t at, int n) {
    unsigned char *to = (unsigned char *)base + at * kv_row_bytes(c);
    if (c->kv_dtype == DTYPE_F32) {
        memcpy(to, row, (size_t)n * sizeof *row);
        return;
    }
    uint16_t *h = (uint16_t *)(void *)to;
    for (int i = 0; i < n; i++) h[i] = f32_to_bf16(row[i]);
}

static void rotate_heads(const Cpu *c, float *row, int heads, int position) {
    const Shape *s = &c->model->shape;
    size_t at = (size_t)position * (size_t)s->rope.pairs;
    for (int h = 0; h < heads; h++)
        c->ops->rope(row + h * s->head_dim, c->cosine + at, c->sine + at, s->rope.pairs);
}

// Biases, rotation, and keys and values into the step area.
static void place_rows(void *argument, int thread, int threads) {
    const Work *k = argument;
    Cpu *c = k->c;
    const Shape *s = &c->model->shape;
    int q_width = shape_q_width(s), kv_width = shape_kv_width(s), from, to;
    unsigned char *keys = (unsigned char *)c->step.k + (size_t)k->layer * c->step.layer_bytes;
    unsigned char *values = (unsigned char *)c->step.v + (size_t)k->layer * c->step.layer_bytes;
    pool_share(k->rows, 1, thread, threads, &from, &to);
    for (int r = from; r < to; r++) {
        float *q = c->panel.q + (size_t)r * (size_t)q_width, *key = c->panel.k + (size_t)r * (size_t)kv_width,
              *value = c->panel.v + (size_t)r * (size_t)kv_width;
        int position = tree_position(k->run->tree, k->first + r);
        add_bias(&k->w->q_bias, q);
        add_bias(&k->w->k_bias, key);
        add_bias(&k->w->v_bias, value);
        rotate_heads(c, q, s->heads, position);
        rotate_heads(c, key, s->kv_heads, position);
        for (int i = 0; c->compute == COMPUTE_BF16 && i < q_width; i++) q[i] = bf16_round(q[i]);
        store_row(c, key, keys, (size_t)(k->first + r), kv_width);
        store_row(c, value, values, (size_t)(k->first + r), kv_width);
    }
}

// The spans of all positions that a node sees in this layer, for key head 0; gives their number.
static int find_spans(const Work *k, int node, ThreadScratch *t, int *visible) {
    const Cpu *c = k->c;
    const Tree *tree = k->run->tree;
    size_t row = kv_row_bytes(c), cached = (size_t)k->layer * c->cache.layer_bytes,
           open = (size_t)k->layer * c->step.layer_bytes;
    const unsigned char *ck = (const unsigned char *)c->cache.k + cached,
                        *cv = (const unsigned char *)c->cache.v + cached;
    const unsigned char *sk = (const unsigned char *)c->step.k + open,
                        *sv = (const unsigned char *)c->step.v + open;
    int first = cache_first_visible(k->run->cache, tree_position(tree, node));
    SlotRun runs[2];
    int n = cache_runs(k->run->cache, first, tree->context, runs), length = tree_path(tree, node, t->path);
    for (int i = 0; i < n; i++)
        t->spans[i] = (KeySpan){row_at(ck, (size_t)runs[i].slot, row), row_at(cv, (size_t)runs[i].slot, row),
                                runs[i].count};
    for (int i = first > tree->context ? first - tree->context : 0; i < length; i++) {
        bool neighbour = i > 0 && n > 0 && t->path[i] == t->path[i - 1] + 1 &&
                         t->spans[n - 1].k >= (const void *)sk &&
                         row_at(t->spans[n - 1].k, (size_t)t->spans[n - 1].count, row) ==
                             row_at(sk, (size_t)t->path[i], row);
        if (neighbour) t->spans[n - 1].count++;
        else
            t->spans[n++] =
                (KeySpan){row_at(sk, (size_t)t->path[i], row), row_at(sv, (size_t)t->path[i], row), 1};
    }
    *visible = tree_position(tree, node) - first + 1;
    return n;
}

static void attend_node(const Work *k, int r, int head_from, int head_to, ThreadScratch *t) {
    const Cpu *c = k->c;
    const Shape *s = &c->model->shape;
    size_t head_bytes = (size_t)s->head_dim * dtype_size(c->kv_dtype);
    int group = s->heads / s->kv_heads;
    Attend a = {.group = group,
                .head_dim = s->head_dim,
                .scale = 1.0f / sqrtf((float)s->head_dim),
                .spans = t->spans,
                .stride = (size_t)shape_kv_width(s),
                .dtype = c->kv_dtype,
                .scores = t->scores};
    a.span_count = find_spans(k, k->first + r, t, &a.visible);
    for (int i = 0; i < a.span_count; i++) {
        t->spans[i].k = row_at(t->spans[i].k, (size_t)head_from, head_bytes);
        t->spans[i].v = row_at(t->spans[i].v, (size_t)head_from, head_bytes);
    }
    for (int h = head_from; h < head_to; h++) {
        size_t at = (size_t)r * (size_t)shape_q_width(s) + (size_t)(h * group * s->head_dim);
        a.q = c->panel.q + at;
        a.out = c->panel.mixed + at;
        c->ops->attend(&a);
        for (int i = 0; i < a.span_count; i++) {
            t->spans[i].k = row_at(t->spans[i].k, 1, head_bytes);
            t->spans[i].v = row_at(t->spans[i].v, 1, head_bytes);
        }
    }
}

// A thread takes a run of (row, key head) pairs; with few rows, the heads of one row are shared out.
static void attend_rows(void *argument, int thread, int threads) {
    const Work *k = argument;
    int heads = k->c->model->shape.kv_heads, from, to;
    pool_share(k->rows * heads, 1, thread, threads, &from, &to);
    for (int i = from; i < to;) {
        int r = i / heads, end = (r + 1) * heads < to ? (r + 1) * heads : to;
        attend_node(k, r, i - r * heads, end - r * heads, &k->c->threads[thread]);
        i = end;
    }
}

static void project_o(void *argument, int thread, int threads) {
    const Work *k = argument;
    product(k, &k->w->o, k->c->panel.delta, thread, threads);
}

// --- MLP
// -----------------------------------------------------------------------------------------------------------

// A thread applies the gate to the columns that it has just computed.
static void project_gate_up(void *argument, int thread, int threads) {
    const Work *k = argument;
    const Shape *s = &k->c->model->shape;
    Panel *p = &k->c->panel;
    int from, to;
    product(k, &k->w->gate, p->gate, thread, threads);
    product(k, &k->w->up, p->up, thread, threads);
    pool_share(s->mlp_width, MATMUL_UNIT, thread, threads, &from, &to);
    for (int r = 0; r < k->rows; r++) {
        size_t at = (size_t)r * (size_t)s->mlp_width + (size_t)from;
        k->c->ops->gate(p->gate + at, p->up + at, to - from, s->activation);
    }
}

static void project_down(void *argument, int thread, int threads) {
    const Work *k = argument;
    product(k, &k->w->down, k->c->panel.delta, thread, threads);
}

// --- the pass
// ------------------------------------------------------------------------------------------------------

static void add_residual(const Work *k) {
    size_t n = (size_t)k->rows * (size_t)k->c->model->shape.width;
    float *x = hidden_row(k, 0);
    for (size_t i = 0; i < n; i++) x[i] += k->c->panel.delta[i];
}

static void run_layer(Work *k) {
    const Shape *s = &k->c->model->shape;
    Pool *pool = k->c->pool;
    norm_and_pack(k, &k->w->attention_norm);
    pool_run(pool, project_qkv, k);
    if (k->rows == 1) place_rows(k, 0, 1);
    else pool_run(pool, place_rows, k);
    pool_run(pool, attend_rows, k);
    pack(k, k->c->panel.mixed, shape_q_width(s));
    pool_run(pool, project_o, k);
    add_residual(k);
    if (s->mlp_width == 0) return;
    norm_and_pack(k, &k->w->mlp_norm);
    pool_run(pool, project_gate_up, k);
    pack(k, k->c->panel.gate, s->mlp_width);
    pool_run(pool, project_down, k);
    add_residual(k);
}

static void embed(Cpu *c, const StepRun *run) {
    const Tensor *e = &c->model->embedding;
    size_t width = (size_t)c->model->shape.width;
    for (int i = run->first; i < run->last; i++)
        for (size_t j = 0; j < width; j++)
            c->hidden[(size_t)i * width + j] =
                dtype_load(e->dtype, e->data, (size_t)run->tree->token[i] * width + j);
}

// Panels of one layer follow each other, so that a node's ancestors have stored their keys before it asks.
void cpu_forward(Cpu *c, const StepRun *run) {
    if (run->a == 0 && c->model->shape.input == INPUT_TOKENS) embed(c, run);
    for (int layer = run->a; layer < run->b; layer++)
        for (int first = run->first; first < run->last; first += PANEL) {
            int rows = run->last - first < PANEL ? run->last - first : PANEL;
            Work k = {c, run, &c->model->layers[layer], layer, first, rows};
            run_layer(&k);
        }
}
