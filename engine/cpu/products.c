// Products of rows with weights (products.h): rows are made ready, then multiplied by the weights of one
// packing at a time; and the small operations around them.
#include "engine/cpu/products.h"

#include <assert.h>
#include <string.h>

void cpu_add_bias(const Tensor *bias, float *row) {
    for (int i = 0; bias->data && i < bias->columns; i++)
        row[i] += dtype_load(bias->dtype, bias->data, (size_t)i);
}

// The least of the weights that a thread takes at a time, some microseconds of reading.
enum { PART_BYTES = 128 << 10 };

int cpu_least_units(const Tensor *w) {
    size_t unit = MATMUL_UNIT * tensor_row_bytes(w);
    return unit < PART_BYTES ? (int)(PART_BYTES / unit) : 1;
}

typedef struct EachRow {
    const Work *work;
    RowTask *task;
    const void *argument;
} EachRow;

static void run_rows(void *argument, int thread, UNUSED int threads) {
    const EachRow *e = argument;
    int first, last;
    while (pool_take(e->work->c->pool, e->work->rows, 1, thread, &first, &last))
        for (int r = first; r < last; r++) e->task(e->argument, r);
}

void cpu_each_row(const Work *k, RowTask *task, const void *argument) {
    if (k->rows == 1) task(argument, 0); // less work than waking a thread
    else pool_run(k->c->pool, run_rows, &(EachRow){k, task, argument});
}

void cpu_watch(Cpu *c, const float *x, size_t n, unsigned place) {
    const uint32_t least = 0x477ff000u, infinite = 0x7f800000u; // 65520
    uint32_t found = 0, u;
    if (c->compute != COMPUTE_F16) return;
    for (size_t i = 0; i < n; i++) {
        memcpy(&u, &x[i], sizeof u);
        found |= (u & 0x7fffffffu) - least <= infinite - least; // a NaN has another cause
    }
    unsigned known = atomic_load(&c->overflow);
    while (found && place < known && !atomic_compare_exchange_weak(&c->overflow, &known, place)) {}
}

void cpu_watch_row(const Work *k, int row, const float *x, int n, Rounded what) {
    cpu_watch(cpu_member(k, row)->c, x, (size_t)n, overflow_place(k->layer, what));
}

static int panel_row(const Products *p, int row) { return p->rows ? p->rows[row] : row; }

// Rows [first, last) of a batch.
static void ready_batch(const Products *p, const Batch *b, int first, int last) {
    int columns = b->packed.columns;
    float *x = p->x + (size_t)b->first * (size_t)columns;
    for (int r = first; r < last; r++) {
        float *row = x + (size_t)r * (size_t)columns;
        if (p->ready && !p->filled) p->ready(p->work, b->first + r, row);
        cpu_watch_row(p->work, panel_row(p, b->first + r), row, columns, p->what);
    }
    p->work->c->ops->pack(x, &b->packed, first, last);
}

static int packs_of(const Products *p, const Batch *b) {
    int unit = p->work->c->ops->pack_unit;
    return (b->rows + unit - 1) / unit;
}

// Packs [first, last) of all batches.
static void ready_packs(const Products *p, int first, int last) {
    int unit = p->work->c->ops->pack_unit;
    for (int i = 0, at = 0; i < p->batch_count && at < last; at += packs_of(p, &p->batches[i++])) {
        const Batch *b = &p->batches[i];
        int from = first > at ? (first - at) * unit : 0, to = (last - at) * unit;
        if (to > b->rows) to = b->rows;
        if (from < to) ready_batch(p, b, from, to);
    }
}

static void ready_rows(void *argument, int thread, UNUSED int threads) {
    const Products *p = argument;
    int packs = 0, first, last;
    for (int i = 0; i < p->batch_count; i++) packs += packs_of(p, &p->batches[i]);
    while (pool_take(p->work->c->pool, packs, 1, thread, &first, &last)) ready_packs(p, first, last);
}

// The row of a batch in a step of a single row. Each thread makes it ready for itself: that takes less time
// than waiting for another thread, and for its cache lines to move from core to core.
static Packed ready_own_row(const Products *p, const Batch *b, int thread) {
    ThreadScratch *own = &p->work->c->threads[thread];
    Packed packed = b->packed;
    packed.data = own->packed;
    const float *x = p->ready ? own->row : p->x + (size_t)b->first * (size_t)packed.columns;
    if (p->ready) p->ready(p->work, b->first, own->row);
    cpu_watch_row(p->work, panel_row(p, b->first), x, packed.columns, p->what);
    p->work->c->ops->pack(x, &packed, 0, 1);
    return packed;
}

// Adds columns [from, to) of delta, with a bias and times the model's factor, if it has them.
static void add_residual(const Work *k, const Tensor *bias, int from, int to) {
    const float *delta = k->c->panel.delta;
    const Shape *s = &k->c->model->shape;
    size_t width = (size_t)s->width;
    float scale = shape_or_one(s->residual_scale);
    bool plain = !bias->data && s->residual_scale == 0;
    for (int r = 0; r < k->rows; r++, delta += width) {
        float *x = cpu_hidden_row(k, r);
        for (int i = from; plain && i < to; i++) x[i] += delta[i];
        for (int i = from; !plain && i < to; i++) {
            float b = bias->data ? dtype_load(bias->dtype, bias->data, (size_t)i) : 0;
            x[i] += (delta[i] + b) * scale;
        }
    }
}

static int units_of(const Tensor *w) { return (w->rows + MATMUL_UNIT - 1) / MATMUL_UNIT; }

// Multiplies a batch's weights i, which begin at unit `at` of all weights, as far as they are in units
// [first, last).
static void multiply_part(const Products *p, const Batch *b, const Packed *x, int i, int at, int first,
                          int last) {
    const Tensor *w = b->w[i];
    size_t outputs = (size_t)w->rows;
    int from = first > at ? (first - at) * MATMUL_UNIT : 0;
    int to = last - at < units_of(w) ? (last - at) * MATMUL_UNIT : w->rows;
    p->work->c->ops->matmul(w, x, p->y[i] + (size_t)b->first * outputs + from, outputs, from, to);
    if (p->residual) add_residual(p->work, p->bias, from, to);
}

static bool alike(const Products *p, const Tensor *w) {
    return packed_alike(w, p->like, p->work->c->compute);
}

// Units [first, last) of all weights of one packing. `mine`: the batch that this thread made ready last.
static void multiply_units(const Products *p, int thread, const Batch **mine, Packed *x, int first,
                           int last) {
    for (int j = 0, at = 0; j < p->batch_count && at < last; j++) {
        const Batch *b = &p->batches[j];
        for (int i = 0; i < p->count; i++) {
            if (!alike(p, b->w[i])) continue;
            int begin = at;
            at += units_of(b->w[i]);
            if (at <= first || begin >= last) continue;
            if (*mine != b) *x = p->work->rows == 1 ? ready_own_row(p, b, thread) : b->packed;
            *mine = b;
            x->decoded = p->work->c->threads[thread].decoded;
            multiply_part(p, b, x, i, begin, first, last);
        }
    }
}

static void multiply(void *argument, int thread, UNUSED int threads) {
    const Products *p = argument;
    const Batch *mine = NULL;
    Packed x;
    int first, last;
    while (pool_take(p->work->c->pool, p->units, p->least, thread, &first, &last))
        multiply_units(p, thread, &mine, &x, first, last);
}

static void place_packed(Products *p) {
    const Work *k = p->work;
    unsigned char *to = k->c->panel.packed;
    for (int j = 0; j < p->batch_count; j++) {
        Batch *b = &p->batches[j];
        b->packed = packed_for(p->like, k->c->compute, b->rows, to);
        to += (k->c->ops->packed_bytes(b->rows, b->packed.columns) + PACKED_ALIGN - 1) / PACKED_ALIGN *
              PACKED_ALIGN;
    }
}

static const Tensor *weight_of(const Products *p, int i) { return p->batches[i / p->count].w[i % p->count]; }

// The weights of one packing; `first` is one of them.
static void multiply_alike(Products *p, const Tensor *first) {
    const Work *k = p->work;
    p->like = first;
    p->units = 0;
    for (int i = 0; i < p->batch_count * p->count; i++)
        if (alike(p, weight_of(p, i))) p->units += units_of(weight_of(p, i));
    p->least = cpu_least_units(first);
    assert(p->units >= 1 && k->rows >= 1 && k->rows <= PANEL);
    place_packed(p);
    if (k->rows > 1) pool_run(k->c->pool, ready_rows, p);
    pool_run(k->c->pool, multiply, p);
    p->filled = true;
}

void cpu_project(const Products *p) {
    Batch all = {.rows = p->work->rows, .w = {p->w[0], p->w[1], p->w[2]}};
    Products own = *p;
    if (!p->batches) {
        own.batches = &all;
        own.batch_count = 1;
    }
    for (int i = 0; i < own.batch_count * own.count; i++) { // the weights of each packing together
        int first = 0;
        own.like = weight_of(&own, i);
        while (!alike(&own, weight_of(&own, first))) first++;
        if (first == i) multiply_alike(&own, weight_of(&own, i));
    }
}

void cpu_norm(const Cpu *c, const Tensor *weight, const Tensor *bias, const float *x, float *y) {
    const Shape *s = &c->model->shape;
    if (s->norm_kind == NORM_LAYER) c->ops->layernorm(x, weight, bias, s->norm_epsilon, s->width, y);
    else c->ops->rmsnorm(x, weight, s->norm_epsilon, s->width, y);
}

void cpu_norm_layer(const Work *k, Weight which, const float *from, float *x) {
    cpu_norm(k->c, &k->w[which], &k->w[which + 1], from, x);
}
void cpu_copy_hidden(const Work *k, int row, float *x) {
    memcpy(x, cpu_hidden_row(k, row), (size_t)k->c->model->shape.width * sizeof *x);
}

void cpu_norm_mlp(const Work *k, int row, float *x) {
    const Shape *s = &k->c->model->shape;
    const float *parallel = k->c->panel.before + (size_t)row * (size_t)s->width;
    const float *from = s->mlp_input == MLP_AFTER ? cpu_hidden_row(k, row) : parallel;
    if (k->w[W_MLP_NORM].data) cpu_norm_layer(k, W_MLP_NORM, from, x);
    else cpu_copy_hidden(k, row, x);
}

typedef struct PostNorm {
    const Work *work;
    Weight norm;
    const Tensor *bias;
} PostNorm;

static void norm_output(const void *argument, int row) {
    const PostNorm *p = argument;
    const Work *k = p->work;
    float *x = k->c->panel.delta + (size_t)row * (size_t)k->c->model->shape.width;
    cpu_add_bias(p->bias, x);
    cpu_norm(k->c, &k->w[p->norm], &(Tensor){.data = NULL}, x, x);
}

void cpu_add_output(const Work *k, const Tensor *bias, Weight post) {
    static const Tensor none;
    PostNorm task = {k, post, bias};
    bool normed = k->w[post].data != NULL;
    if (normed) cpu_each_row(k, norm_output, &task);
    add_residual(k, normed ? &none : bias, 0, k->c->model->shape.width);
}

void cpu_gate(const Work *k, const float *gate, const float *up, int n, float *x) {
    if (x != gate) memcpy(x, gate, (size_t)n * sizeof *x);
    cpu_add_bias(&k->w[W_GATE_BIAS], x);
    k->c->ops->gate(x, up, n, k->c->model->shape.activation);
}
