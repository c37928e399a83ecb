// The life of an instance, and its row of backend.h. All memory that a step needs is taken at open, by
// mem_try: its size follows from the model and the options, and a refusal is an error that names the context.
// After that only LAYOUT_COPIED allocates, when a step has more rows than any before.
#include "engine/cpu/cpu.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/cpu/instance.h"
#include "engine/cpu/kernels/features.h"
#include "engine/cpu/products.h"
#include "engine/model/weights.h"

#include <assert.h>
#include <string.h>

static bool take(Cpu *c, void *out, size_t count, size_t size) {
    return mem_take(&c->blocks, out, count, size);
}

// The widest input of a layer's norms and of fc, and of any product.
static size_t widest_normed(const Shape *s) {
    int w = shape_attention_width(s, 0);
    return (size_t)(w > shape_fc_width(s) ? w : shape_fc_width(s));
}

static size_t widest(const Shape *s) {
    size_t w = widest_normed(s), q = (size_t)shape_q_width(s), mlp = (size_t)s->mlp_width;
    if (w < q) w = q;
    if (w < mlp) w = mlp;
    if (w < (size_t)s->experts.width) w = (size_t)s->experts.width;
    if (w < (size_t)s->block.rank) w = (size_t)s->block.rank;
    if (w < (size_t)block_gate_width(&s->block, s->width)) w = (size_t)block_gate_width(&s->block, s->width);
    return w > (size_t)s->experts.shared_width ? w : (size_t)s->experts.shared_width;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

// Rows of experts are packed expert by expert, each rounded up to at most twice its rows.
static size_t packed_size(const Cpu *c, size_t rows) {
    const Shape *s = &c->model->shape;
    int slots = 2 * (int)rows * s->experts.chosen;
    int columns = s->width > s->experts.width ? s->width : s->experts.width;
    size_t dense = c->ops->packed_bytes((int)rows, (int)widest(s));
    size_t sparse = slots ? c->ops->packed_bytes(slots, columns) : 0;
    return larger(dense, sparse + (size_t)s->experts.count * PACKED_ALIGN);
}

static size_t panel_rows(const Cpu *c) { return (size_t)c->panel_rows; }

static bool take_panel(Cpu *c) {
    const Shape *s = &c->model->shape;
    size_t rows = panel_rows(c), f = sizeof(float);
    size_t q = (size_t)shape_q_width(s), kv = (size_t)shape_kv_width(s);
    // Products of an MLP's gate, or of all the experts' that the rows of a panel choose.
    size_t dense = larger((size_t)s->mlp_width, (size_t)s->experts.shared_width);
    size_t gate = rows * larger(dense, (size_t)s->experts.chosen * (size_t)s->experts.width);
    Panel *p = &c->panel;
    return take(c, &p->normed, rows * widest_normed(s), f) && take(c, &p->q, rows * q, f) &&
           take(c, &p->k, rows * kv, f) && take(c, &p->v, rows * kv, f) && take(c, &p->mixed, rows * q, f) &&
           take(c, &p->delta, rows * (size_t)s->width, f) && take(c, &p->gate, gate, f) &&
           take(c, &p->up, gate, f) &&
           (s->mlp_input == MLP_AFTER || take(c, &p->before, rows * (size_t)s->width, f)) &&
           take(c, &p->packed, packed_size(c, rows), 1) && cpu_mixture_open(c, rows);
}

// In an MLP without `up` (all layers have it, or none), activations are multiplied by ones: that changes no
// bit, and no step overwrites the ones.
static void fill_ones(Cpu *c) {
    const Tensor *w = c->model->layers[0].w;
    size_t count = w[W_GATE].data && !w[W_UP].data ? panel_rows(c) * (size_t)c->model->shape.mlp_width : 0;
    for (size_t i = 0; i < count; i++) c->panel.up[i] = 1;
}

// Whether products may need their weights' values in scratch memory.
static bool decodes(const Model *m) {
    bool found = false;
    for (int i = 0; i < weights_count(m) && !found; i++) {
        WeightSpec s = weights_at(m, i);
        const Tensor *t = weight_tensor(m, s.layer, s.expert, s.which);
        found = t->data && (t->codes.bits || t->dtype == DTYPE_F16);
    }
    return found;
}

static bool take_thread(Cpu *c, ThreadScratch *t) {
    const Shape *s = &c->model->shape;
    size_t nodes = (size_t)c->max_nodes, rows = panel_rows(c), f = sizeof(float);
    size_t block = (size_t)cpu_block_nodes(s), queries = attend_queries((int)block, s->heads / s->kv_heads);
    return take(c, &t->row, widest(s), f) &&
           take(c, &t->packed, c->ops->packed_bytes(1, (int)widest(s)), 1) &&
           (!decodes(c->model) || take(c, &t->decoded, MATMUL_UNIT * widest(s), sizeof(uint16_t))) &&
           take(c, &t->scores, queries * cpu_score_row(c), f) &&
           take(c, &t->sums, queries * key_value_pad(s->head_dim), f) &&
           take(c, &t->spans, (block + 1) * (nodes + 4), sizeof *t->spans) &&
           take(c, &t->before_spans, block, sizeof *t->before_spans) &&
           take(c, &t->after_spans, block, sizeof *t->after_spans) &&
           take(c, &t->before, block, sizeof *t->before) && take(c, &t->visible, block, sizeof *t->visible) &&
           take(c, &t->first, block, sizeof *t->first) && take(c, &t->logits, HEAD_SCRATCH, f) &&
           take(c, &t->top_id, rows * HEAD_TOP_MAX, sizeof *t->top_id) &&
           take(c, &t->top_logit, rows * HEAD_TOP_MAX, f);
}

// Keys and values of `count` slots or nodes in every layer.
static bool take_keys(Cpu *c, KeyValues *area, int count) {
    size_t layers = (size_t)c->model->shape.layers, size = dtype_size(c->layout.dtype);
    area->k_bytes = key_area(&c->layout, count) * size;
    area->v_bytes = value_area(&c->layout, count) * size;
    return take(c, &area->k, layers, area->k_bytes) && take(c, &area->v, layers, area->v_bytes);
}

// Of the sequence alone. Only a model of tokens and hidden states has given rows.
static bool take_own(Cpu *c) {
    const Shape *s = &c->model->shape;
    Paths *p = &c->paths;
    size_t nodes = (size_t)c->max_nodes, f = sizeof(float);
    if (!take_keys(c, &c->cache, c->slots)) return false;
    c->cache_bytes = c->blocks.bytes;
    return take_keys(c, &c->step, c->max_nodes) && take(c, &c->hidden, nodes * (size_t)s->width, f) &&
           take(c, &p->runs, nodes * (nodes + 1) / 2, sizeof *p->runs) &&
           take(c, &p->from, nodes, sizeof *p->from) && take(c, &p->size, nodes, sizeof *p->size) &&
           take(c, &p->row, nodes, sizeof *p->row) &&
           (!shape_reads_both(s) ||
            take(c, &c->given, nodes * (size_t)shape_given_width(s), sizeof *c->given));
}

// Of all sequences. Only a model of tokens and hidden states has a head that sums.
static bool take_shared(Cpu *c, bool plain) {
    const Shape *s = &c->model->shape;
    size_t angles = (size_t)c->context * (size_t)(shape_ropes(s) * s->rope.pairs);
    size_t threads = (size_t)pool_threads(c->pool), f = sizeof(float);
    bool ok = take(c, &c->cosine, angles, f) && take(c, &c->sine, angles, f) &&
              take(c, &c->threads, threads, sizeof *c->threads) && take_panel(c) &&
              (!shape_reads_both(s) ||
               take(c, &c->unit_sums, panel_rows(c) * cpu_units(s), sizeof *c->unit_sums)) &&
              (s->input != INPUT_BLOCK || take(c, &c->following, cpu_following(s), f));
    for (size_t i = 0; ok && i < threads; i++) ok = take_thread(c, &c->threads[i]);
    if (ok && plain)
        ok = take(c, &c->scores, (size_t)s->heads * panel_rows(c), cpu_score_row(c) * sizeof *c->scores);
    return ok;
}

static void cpu_close(void *self) {
    Cpu *c = self;
    if (!c) return;
    mem_free_all(&c->blocks);
    MEM_FREE(c->kept, c->copies, c->copied);
    if (c->first == c && !c->shares_pool) pool_close(c->pool);
    mem_free(c);
}

static void cpu_check(const Cpu *c) {
    size_t nodes = (size_t)c->max_nodes;
    assert(c->context >= 1 && c->max_nodes >= 1 && c->max_nodes <= TREE_MAX_NODES);
    assert(c->slots >= 1 && c->slots % KEY_BLOCK == 0); // whole blocks of keys
    assert(c->copy_rows <= c->max_nodes && c->rope_filled <= c->context);
    assert((size_t)c->paths.used <= nodes * (nodes + 1) / 2 && c->paths.rows <= c->max_nodes);
}

// All that the first sequence has for everyone.
static void share(Cpu *c) {
    const Cpu *first = c->first;
    assert(c->model == first->model && c->context == first->context && c->max_nodes == first->max_nodes);
    c->pool = first->pool;
    c->panel = first->panel;
    c->panel_rows = first->panel_rows;
    c->scores = first->scores;
    c->following = first->following;
}

bool cpu_open(const Model *model, const BackendOptions *o, void **self, Error *e) {
    const Shape *s = &model->shape;
    Cache slots;
    *self = NULL;
    const CpuOps *ops = cpu_ops_find(o->isa, e);
    if (!ops) return false;
    Cpu *c = mem_new(1, sizeof *c);
    *c = (Cpu){.model = model, .ops = ops, .compute = o->compute, .overflow = OVERFLOW_NONE};
    c->layout = key_layout(s, compute_dtype(o->compute));
    c->context = o->context > 0 && o->context < s->context ? o->context : s->context;
    c->max_nodes = o->max_nodes > 0 && o->max_nodes < TREE_MAX_NODES ? o->max_nodes : TREE_MAX_NODES;
    cache_init(&slots, c->context, s->window, o->slack > 0 ? o->slack : CACHE_SLACK);
    c->slots = slots.capacity;
    size_t rows = (size_t)c->max_nodes * (size_t)(o->sequences > 1 ? o->sequences : 1);
    c->panel_rows = rows < PANEL ? (int)rows : PANEL;
    c->first = o->first ? o->first : c;
    if (c->first == c) {
        c->shares_pool = o->beside != NULL;
        c->pool = c->shares_pool ? ((const Cpu *)o->beside)->pool
                                 : pool_open(o->threads > 0 ? o->threads : pool_cores(), e);
    }
    bool ok = c->first != c || c->pool;
    if (ok && !(take_own(c) && (c->first != c || take_shared(c, o->plain))))
        ok = error_system(e, "out of memory for a context of %d tokens; a smaller --context needs less",
                          c->context);
    if (!ok) {
        cpu_close(c);
        return false;
    }
    if (c->first == c) fill_ones(c);
    else share(c);
    cpu_check(c);
    *self = c;
    return true;
}

// Adds the time since `start`.
static void add_since(double start, double *seconds) { *seconds += clock_now(clock_monotonic()) - start; }

// Reports an overflow once: the next call may be for another text.
static bool nothing_overflowed(Cpu *c, Error *e) {
    unsigned place = atomic_exchange(&c->overflow, OVERFLOW_NONE);
    return place == OVERFLOW_NONE || overflow_refuse(place, c->model->shape.layers, e);
}

static void cpu_run_together(RunCall *calls, int count) {
    Cpu *c[SEQUENCES_MAX];
    const StepRun *runs[SEQUENCES_MAX];
    int ready = 0;
    assert(count >= 1 && count <= SEQUENCES_MAX);
    for (int i = 0; i < count; i++) {
        Cpu *own = calls[i].self;
        const Tree *t = calls[i].run.tree;
        int copies = 0; // of the cache, if the run reads them
        own->run_context = t->context;
        for (int n = 0; n < t->count; n++) copies += t->parent[n] == TREE_NONE;
        calls[i].ok = t->layout != LAYOUT_COPIED || cpu_take_copies(own, copies, &calls[i].error);
        if (!calls[i].ok) continue;
        c[ready] = own;
        runs[ready++] = &calls[i].run;
    }
    if (ready == 0) return;
    double start = clock_now(clock_monotonic());
    cpu_forward(c, runs, ready);
    add_since(start, &c[0]->seconds.run);
    for (int i = 0; i < count; i++) {
        cpu_check(calls[i].self);
        calls[i].ok = calls[i].ok && nothing_overflowed(calls[i].self, &calls[i].error);
    }
}

static bool cpu_run(void *self, const StepRun *run, Error *e) {
    RunCall call = {.self = self, .run = *run};
    cpu_run_together(&call, 1);
    if (!call.ok && e) *e = call.error;
    return call.ok;
}

static void cpu_head_together(HeadCall *calls, int count, unsigned want) {
    Cpu *first = ((Cpu *)calls[0].self)->first;
    HeadRow rows[PANEL];
    int n = 0;
    double start = clock_now(clock_monotonic());
    for (HeadCall *call = calls; call < calls + count; call++) {
        int top = call->out->top;
        call->ok = !(want & HEAD_TOP) || (top >= 1 && top <= HEAD_TOP_MAX) ||
                   error_input(&call->error, "the head cannot list the %d best tokens, only from 1 to %d",
                               top, HEAD_TOP_MAX);
        for (int i = 0; call->ok && i < call->count; i++) {
            rows[n++] = (HeadRow){call->self, call->nodes[i], call->out, i};
            if (n < first->panel_rows) continue;
            cpu_head(first, rows, n, want);
            n = 0;
        }
    }
    if (n) cpu_head(first, rows, n, want);
    add_since(start, &((Cpu *)calls[0].self)->seconds.head);
    for (int i = 0; i < count; i++)
        calls[i].ok = calls[i].ok && nothing_overflowed(calls[i].self, &calls[i].error);
}

static bool cpu_run_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    HeadCall call = {.self = self, .nodes = nodes, .count = count, .out = out};
    cpu_head_together(&call, 1, want);
    if (!call.ok && e) *e = call.error;
    return call.ok;
}

static bool cpu_get_hidden(void *self, const int *nodes, int count, HiddenKind kind, float *rows,
                           UNUSED Error *e) {
    Cpu *c = self;
    bool captured = kind == HIDDEN_CAPTURED;
    const float *from = captured ? c->kept : c->hidden;
    size_t width = (size_t)c->model->shape.width * (captured ? (size_t)c->captures.count : 1);
    double start = clock_now(clock_monotonic());
    for (int i = 0; i < count; i++) {
        float *row = rows + (size_t)i * width;
        if (kind == HIDDEN_NORMED) cpu_normed(c, nodes[i], row);
        else memcpy(row, from + (size_t)nodes[i] * width, width * sizeof *row);
    }
    add_since(start, &c->seconds.head);
    return true;
}

static bool cpu_set_hidden(void *self, int first, int count, const float *rows, UNUSED Error *e) {
    Cpu *c = self;
    const Shape *s = &c->model->shape;
    assert(s->input != INPUT_TOKENS && first >= 0 && first + count <= c->max_nodes);
    size_t width = (size_t)shape_given_width(s);
    float *to = shape_reads_both(s) ? c->given : c->hidden;
    double start = clock_now(clock_monotonic());
    memcpy(to + (size_t)first * width, rows, (size_t)count * width * sizeof *rows);
    add_since(start, &c->seconds.run);
    return true;
}

static bool cpu_capture(void *self, const Captures *captures, Error *e) {
    Cpu *c = self;
    size_t row = (size_t)captures->count * (size_t)c->model->shape.width;
    size_t need = row * (size_t)c->max_nodes;
    if (need > c->kept_capacity) {
        mem_free(c->kept);
        c->kept_capacity = 0;
        c->kept = mem_try(need, sizeof *c->kept);
        if (!c->kept) return error_system(e, "out of memory for the states of %d layers", captures->count);
        c->kept_capacity = need;
    }
    c->captures = *captures;
    return true;
}

static bool cpu_commit(void *self, const int *nodes, const int *slots, int count, UNUSED Error *e) {
    Cpu *c = self;
    double start = clock_now(clock_monotonic());
    for (int i = 0; i < count; i++) {
        assert(slots[i] >= 0 && slots[i] < c->slots);
        assert(nodes[i] >= 0 && nodes[i] < c->max_nodes);
    }
    cpu_forget_copies(c, c->run_context);
    for (size_t layer = 0; layer < (size_t)c->model->shape.layers; layer++) {
        const unsigned char *k = (const unsigned char *)c->step.k + layer * c->step.k_bytes,
                            *v = (const unsigned char *)c->step.v + layer * c->step.v_bytes;
        unsigned char *to_k = (unsigned char *)c->cache.k + layer * c->cache.k_bytes,
                      *to_v = (unsigned char *)c->cache.v + layer * c->cache.v_bytes;
        for (int i = 0; i < count; i++) keys_copy(&c->layout, k, v, nodes[i], to_k, to_v, slots[i]);
    }
    add_since(start, &c->seconds.commit);
    cpu_check(c);
    return true;
}

// Nothing to do: a new sequence writes each slot of the cache before it reads it.
static void cpu_reset(void *self) { (void)self; }

const char *cpu_kernels_refused(void) { return tiles_refused(); }

const char *cpu_isa(const char *isa, Error *e) {
    const CpuOps *ops = cpu_ops_find(isa, e);
    return ops ? ops->name : NULL;
}

static void cpu_report(const void *self, BackendReport *out) {
    const Cpu *c = self;
    const Model *m = c->model;
    size_t kv_elements = 2 * (size_t)m->shape.layers * (size_t)shape_kv_width(&m->shape);
    *out = (BackendReport){
        .name = "cpu",
        .device = "cpu",
        .isa = c->ops->name,
        .layer_bytes = model_layer_bytes(m, 0),
        .expert_bytes = model_expert_bytes(m),
        .experts_read = c->experts_read,
        .head_bytes = tensor_bytes(&m->markov_to) + tensor_bytes(&m->head) + tensor_bytes(&m->head_bias) +
                      tensor_bytes(&m->final_norm) + tensor_bytes(&m->final_norm_bias),
        .cache_bytes = c->cache_bytes,
        .step_bytes = c->blocks.bytes - c->cache_bytes + c->kept_capacity * sizeof *c->kept,
        .kv_bytes_per_position = kv_elements * dtype_size(c->layout.dtype),
        .score_bytes = c->scores ? shape_score_bytes(&m->shape) : 0,
        .seconds = c->seconds};
    out->weight_bytes = out->head_bytes + model_fc_bytes(m);
    for (int i = 0; i < m->shape.layers; i++) out->weight_bytes += model_layer_bytes(m, i);
}

static bool cpu_run_follow(void *self, int node, Follow *f, Error *e) {
    Cpu *c = self;
    double start = clock_now(clock_monotonic());
    cpu_follow(c, node, f);
    add_since(start, &c->seconds.head);
    return nothing_overflowed(c, e);
}

const Backend cpu_backend = {BACKEND_ROW(cpu), .cuts = true, .head = cpu_run_head, .follow = cpu_run_follow};
