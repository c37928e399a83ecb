// AdamW works on runs of the whole array, which threads divide at any number; Muon works on whole matrices,
// one thread each. Neither depends on the number of threads, and the squares of the gradient are summed by
// chunks of fixed size, so no result does.
#include "engine/train/optimizer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { CHUNK = 1 << 15 }; // numbers whose squares are summed together

static const double PI = 3.14159265358979323846;

static size_t chunks_of(const Network *n) { return (n->parameters.total + CHUNK - 1) / CHUNK; }

static bool is_embedding(const Parameters *p, const Parameter *x) {
    return x->at == p->at[W_EMBEDDING] || x->at == p->at[W_HEAD] || x->at == p->at[W_MARKOV_FROM] ||
           x->at == p->at[W_MARKOV_TO];
}

bool optimizer_is_muon(const Optimizer *o, const Parameters *p, const Parameter *x) {
    return o->options.kind == OPTIMIZER_MUON && !x->vector && !is_embedding(p, x);
}

static bool take_scratch(Optimizer *o, const Network *n) {
    size_t all;
    for (int i = 0; i < n->parameters.count; i++) {
        const Parameter *x = &n->parameters.list[i];
        size_t need = optimizer_is_muon(o, &n->parameters, x) ? muon_scratch(x->rows, x->columns) : 0;
        if (need > o->scratch_size) o->scratch_size = need;
    }
    if (!o->scratch_size) return true;
    assert(o->options.kind == OPTIMIZER_MUON);
    return size_mul(o->scratch_size, (size_t)pool_threads(n->pool), &all) &&
           mem_take(&o->blocks, &o->scratch, all, sizeof *o->scratch);
}

bool optimizer_open(Optimizer *o, const OptimizerOptions *options, const Network *n, Error *e) {
    *o = (Optimizer){.options = *options};
    if (mem_take(&o->blocks, &o->mean, n->parameters.total, sizeof *o->mean) &&
        mem_take(&o->blocks, &o->square, n->parameters.total, sizeof *o->square) &&
        mem_take(&o->blocks, &o->sums, chunks_of(n), sizeof *o->sums) && take_scratch(o, n))
        return true;
    optimizer_close(o);
    return error_system(e, "out of memory for the moments of %zu parameters", n->parameters.total);
}

void optimizer_close(Optimizer *o) {
    mem_free_all(&o->blocks);
    *o = (Optimizer){0};
}

// --- Muon ------------------------------------------------------------------------------------------------

// Newton-Schulz iterations on the smaller side of X. If X is wide, A = X X^T, and X becomes
// (a I + b A + c A^2) X. If it is tall, A = X^T X, and the polynomial multiplies X from the right.

static size_t smaller_side(int rows, int columns) { return (size_t)(rows < columns ? rows : columns); }

// Room for X twice, A and its polynomial.
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
    assert(rows > 0 && columns > 0);
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

// Nesterov momentum: the step follows the average after the gradient is applied to it a second time.
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

// --- a step ----------------------------------------------------------------------------------------------

bool optimizer_is_open(const OptimizerOptions *o, int64_t step) {
    return o->schedule == SCHEDULE_STABLE && (double)(o->steps - step) >= o->cooldown * o->steps;
}

static double scheduled_rate(const OptimizerOptions *o, int step) {
    if (step <= o->warmup) return o->rate * step / o->warmup;
    double done = (double)(step - o->warmup) / (o->steps > o->warmup ? o->steps - o->warmup : 1);
    if (optimizer_is_open(o, step)) return o->rate;
    if (o->schedule == SCHEDULE_STABLE)
        return o->last_rate + (o->rate - o->last_rate) * (o->steps - step) / (o->cooldown * o->steps);
    return o->last_rate + (o->rate - o->last_rate) * (1 + cos(PI * done)) / 2;
}

double optimizer_rate(const OptimizerOptions *o, int step) {
    int since = step - o->begun;
    return scheduled_rate(o, step) * (o->begun && since < o->warmup ? (double)since / o->warmup : 1);
}

typedef struct Update {
    Optimizer *o;
    Network *n;
    AdamStep step;
    float embedding_rate;
} Update;

static void sum_chunks(void *argument, int thread, int threads) {
    const Update *u = argument;
    size_t total = u->n->parameters.total;
    for (size_t i = (size_t)thread; i < chunks_of(u->n); i += (size_t)threads) {
        size_t at = i * CHUNK;
        u->o->sums[i] =
            u->n->kernels->sum_of_squares(u->n->gradients + at, total - at < CHUNK ? total - at : CHUNK);
    }
}

// Updates numbers [from, to) of the array, all of parameter x, by AdamW.
static void move(const Update *u, const Parameter *x, size_t from, size_t to) {
    AdamStep s = u->step;
    bool embedding = is_embedding(&u->n->parameters, x);
    float *gradient = u->n->gradients + from;
    if (x->vector || (embedding && u->o->options.decays == DECAY_LAYERS)) s.decay = 0;
    if (embedding) s.rate = u->embedding_rate;
    u->n->kernels->adamw(&s, u->n->weights + from, gradient, u->o->mean + from, u->o->square + from,
                         to - from);
    memset(gradient, 0, (to - from) * sizeof *gradient);
}

static void move_share(void *argument, int thread, int threads) {
    const Update *u = argument;
    const Parameters *p = &u->n->parameters;
    size_t first = p->total * (size_t)thread / (size_t)threads;
    size_t last = p->total * ((size_t)thread + 1) / (size_t)threads;
    for (int i = 0; i < p->count; i++) {
        size_t from = p->list[i].at, to = from + parameter_size(&p->list[i]);
        if (optimizer_is_muon(u->o, p, &p->list[i])) continue;
        if (from < first) from = first;
        if (to > last) to = last;
        if (from < to) move(u, &p->list[i], from, to);
    }
}

// Each matrix is updated by one thread, whichever takes it.
static void move_matrices(void *argument, int thread, UNUSED int threads) {
    const Update *u = argument;
    const Network *n = u->n;
    int from, to;
    MuonStep s = {.kernels = n->kernels,
                  .product = n->scratch[thread],
                  .scratch = u->o->scratch + (size_t)thread * u->o->scratch_size,
                  .rate = u->step.rate,
                  .decay = u->step.decay,
                  .momentum = (float)u->o->options.momentum,
                  .gradient_scale = u->step.gradient_scale};
    while (pool_take(n->pool, n->parameters.count, 1, thread, &from, &to))
        for (const Parameter *x = n->parameters.list + from; x < n->parameters.list + to; x++) {
            if (!optimizer_is_muon(u->o, &n->parameters, x)) continue;
            muon(&s, n->weights + x->at, n->gradients + x->at, u->o->mean + x->at, x->rows, x->columns);
            memset(n->gradients + x->at, 0, parameter_size(x) * sizeof *n->gradients);
        }
}

double optimizer_step(Optimizer *o, Network *n, int step) {
    const OptimizerOptions *c = &o->options;
    Update u = {.o = o, .n = n};
    assert(step > c->begun && step <= c->steps);
    double squares = 0;
    pool_run(n->pool, sum_chunks, &u);
    for (size_t i = 0; i < chunks_of(n); i++) squares += o->sums[i];
    double length = sqrt(squares);
    u.step = (AdamStep){.rate = (float)optimizer_rate(c, step),
                        .decay = (float)c->weight_decay,
                        .beta1 = (float)c->beta1,
                        .beta2 = (float)c->beta2,
                        .epsilon = (float)c->epsilon,
                        .unbias1 = (float)(1 / (1 - pow(c->beta1, step - c->begun))),
                        .unbias2 = (float)(1 / (1 - pow(c->beta2, step - c->begun))),
                        .gradient_scale = c->clip > 0 && length > c->clip ? (float)(c->clip / length) : 1.0f};
    u.embedding_rate = u.step.rate;
    if (c->embedding_rate > 0) u.embedding_rate *= (float)(c->embedding_rate / c->rate);
    pool_run(n->pool, move_share, &u);
    if (o->scratch) pool_run(n->pool, move_matrices, &u);
    return length;
}
