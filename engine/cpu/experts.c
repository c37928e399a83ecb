// Layers with experts (engine/core/experts.h) on a panel of rows:
//
//      norm, router     every row, and the choice of its experts
//      sort             a slot for each row and expert that it chose; an expert's slots are neighbours
//      gate, up, down   each expert that any row chose is read once, for all of its slots
//      sum              each row's outputs, in ascending order of experts, on top of the shared MLP's
//
// A row's numbers depend on its own choice only: slots differ in place, and a product's sums don't.
#include "engine/cpu/products.h"

#include <assert.h>
#include <string.h>

typedef struct Mixture {
    float *logits; // (rows, experts)
    float *shared; // (rows): the product that weighs the shared MLP
    Route *routes; // (rows)
    int *slot;     // (rows, chosen)
    int *row;      // (slots): which row of the panel it is
    int *first;    // (experts): the next free slot
    float *slots;  // (slots, width): the experts' inputs, then their outputs
    Batch *batches;
    int batch_count; // experts that rows of this panel chose
} Mixture;

bool cpu_mixture_open(Cpu *c, size_t rows) {
    const Experts *x = &c->model->shape.experts;
    size_t slots = rows * (size_t)x->chosen, width = (size_t)c->model->shape.width, count = (size_t)x->count;
    MemBlocks *b = &c->blocks;
    if (!count) return true;
    assert(!c->model->shape.ungated);
    if (!mem_take(b, &c->mixture, 1, sizeof *c->mixture)) return false;
    Mixture *m = c->mixture;
    return mem_take(b, &m->logits, rows * count, sizeof *m->logits) &&
           mem_take(b, &m->shared, rows, sizeof *m->shared) &&
           mem_take(b, &m->routes, rows, sizeof *m->routes) &&
           mem_take(b, &m->slot, slots, sizeof *m->slot) && mem_take(b, &m->row, slots, sizeof *m->row) &&
           mem_take(b, &m->first, count, sizeof *m->first) &&
           mem_take(b, &m->slots, slots * width, sizeof *m->slots) &&
           mem_take(b, &m->batches, count, sizeof *m->batches);
}

static const Experts *experts_of(const Work *k) { return &k->c->model->shape.experts; }

// --- which rows go where

static void choose(const void *work, int r) {
    const Work *k = work;
    const Experts *x = experts_of(k);
    Mixture *m = k->c->mixture;
    experts_choose(x, m->logits + (size_t)r * (size_t)x->count, &m->routes[r]);
}

static void route(const Work *k) {
    Mixture *m = k->c->mixture;
    float *normed = k->c->panel.normed;
    Products p = {.work = k,
                  .ready = k->rows > 1 ? cpu_norm_mlp : NULL,
                  .x = normed,
                  .w = {&k->w[W_ROUTER], &k->w[W_SHARED_ROUTER]},
                  .y = {m->logits, m->shared},
                  .count = k->w[W_SHARED_ROUTER].data ? 2 : 1,
                  .what = ROUNDED_MLP_INPUT};
    if (k->rows == 1) cpu_norm_mlp(k, 0, normed);
    cpu_project(&p);
    cpu_each_row(k, choose, k);
}

// Counts each expert's rows, and makes a batch of those that have any.
static void make_batches(const Work *k) {
    const Experts *x = experts_of(k);
    Mixture *m = k->c->mixture;
    memset(m->first, 0, (size_t)x->count * sizeof *m->first);
    for (int r = 0; r < k->rows; r++)
        for (int i = 0; i < x->chosen; i++) m->first[m->routes[r].expert[i]]++;
    m->batch_count = 0;
    for (int e = 0, at = 0; e < x->count; e++) {
        int rows = m->first[e];
        m->first[e] = at;
        if (!rows) continue;
        m->batches[m->batch_count++] = (Batch){.first = at, .rows = rows, .w = {NULL}, .expert = e};
        at += rows;
    }
}

static void sort(const Work *k) {
    const Experts *x = experts_of(k);
    Mixture *m = k->c->mixture;
    make_batches(k);
    for (int r = 0; r < k->rows; r++)
        for (int i = 0; i < x->chosen; i++) {
            int slot = m->first[m->routes[r].expert[i]]++;
            m->slot[r * x->chosen + i] = slot;
            m->row[slot] = r;
        }
}

// --- MLPs

static void gate_shared(const Work *k, int row, float *x) {
    const Panel *p = &k->c->panel;
    int n = experts_of(k)->shared_width;
    size_t at = (size_t)row * (size_t)n;
    cpu_gate(k, p->gate + at, p->up + at, n, x);
}

// The MLP of all rows: its outputs are in `delta`.
static void run_shared(const Work *k) {
    const Panel *p = &k->c->panel;
    Products in = {.work = k,
                   .x = p->normed,
                   .w = {&k->w[W_SHARED_GATE], &k->w[W_SHARED_UP]},
                   .y = {p->gate, p->up},
                   .count = 2,
                   .what = ROUNDED_MLP_INPUT};
    Products out = {.work = k,
                    .ready = gate_shared,
                    .x = p->gate,
                    .w = {&k->w[W_SHARED_DOWN]},
                    .y = {p->delta},
                    .count = 1,
                    .what = ROUNDED_MLP_PRODUCT};
    cpu_project(&in);
    cpu_project(&out);
}

static void copy_normed(const Work *k, int slot, float *x) {
    size_t width = (size_t)k->c->model->shape.width;
    memcpy(x, k->c->panel.normed + (size_t)k->c->mixture->row[slot] * width, width * sizeof *x);
}

static void gate_slot(const Work *k, int slot, float *x) {
    const Panel *p = &k->c->panel;
    int n = experts_of(k)->width;
    size_t at = (size_t)slot * (size_t)n;
    cpu_gate(k, p->gate + at, p->up + at, n, x);
}

static void multiply_batches(const Work *k, Products *p, Weight first) {
    Mixture *m = k->c->mixture;
    const Tensor *experts = k->c->model->layers[k->layer].experts;
    for (int i = 0; i < m->batch_count; i++)
        for (int j = 0; j < p->count; j++)
            m->batches[i].w[j] =
                &experts[m->batches[i].expert * EXPERT_WEIGHTS + (int)(first - W_EXPERT_GATE) + j];
    p->batches = m->batches;
    p->batch_count = m->batch_count;
    cpu_project(p);
}

static void run_slots(const Work *k) {
    const Panel *p = &k->c->panel;
    Mixture *m = k->c->mixture;
    Products in = {.work = k,
                   .ready = copy_normed,
                   .x = m->slots,
                   .rows = m->row,
                   .y = {p->gate, p->up},
                   .count = 2,
                   .what = ROUNDED_MLP_INPUT};
    Products out = {.work = k,
                    .ready = gate_slot,
                    .x = p->gate,
                    .rows = m->row,
                    .y = {m->slots},
                    .count = 1,
                    .what = ROUNDED_MLP_PRODUCT};
    multiply_batches(k, &in, W_EXPERT_GATE);
    multiply_batches(k, &out, W_EXPERT_DOWN);
    k->c->experts_read += (size_t)m->batch_count;
}

// --- the sum

static void sum_row(const void *work, int r) {
    const Work *k = work;
    const Experts *x = experts_of(k);
    const Mixture *m = k->c->mixture;
    size_t width = (size_t)k->c->model->shape.width;
    float *sum = k->c->panel.delta + (size_t)r * width;
    float shared = x->shared_gate ? experts_shared_weight(m->shared[r]) : 1;
    for (size_t i = 0; i < width; i++) sum[i] = x->shared_width ? shared * sum[i] : 0;
    for (int j = 0; j < x->chosen; j++) {
        const float *y = m->slots + (size_t)m->slot[r * x->chosen + j] * width;
        float weight = m->routes[r].weight[j];
        for (size_t i = 0; i < width; i++) sum[i] += weight * y[i];
    }
}

void cpu_run_experts(const Work *k) {
    route(k);
    sort(k);
    if (k->w[W_SHARED_GATE].data) run_shared(k);
    run_slots(k);
    cpu_each_row(k, sum_row, k);
    cpu_add_output(k, &(Tensor){.data = NULL}, W_MLP_POST);
}
