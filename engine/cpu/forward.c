// One forward pass over nodes of a token tree, layer by layer, PANEL rows at a time.
//
//      by rows      norm, pack       a single row: every thread for itself
//      by columns   q k v
//      by rows      bias, norm of heads, rotate, store keys and values
//      by heads     attend
//      by rows      pack
//      by columns   o, added to the residual stream; or, by rows, normed before that
//      by rows      norm, pack
//      by columns   gate, up
//      by rows      gate, pack
//      by columns   down, as o
//
// Each thread takes its own share of the rows, columns or heads, in parts, and then parts of the others'
// shares (pool.h).
//
// A parallel MLP (shape.h) reads a copy of the rows from before attention.
//
// A model of tokens and hidden states begins with its own first rows: fc's products by columns, or the
// parent's output. After a captured layer, the rows are copied. A block's context (block.h) stays as it
// begins: each layer makes its keys and values, and no more.
//
// A row's numbers depend on its own inputs only, never on the panel, the thread or the share that computes
// it.
#include "engine/cpu/products.h"

#include <assert.h>
#include <string.h>

// --- attention

static void load_embedding(const Work *k, int row, float *x) {
    const Tensor *e = &k->c->model->embedding;
    const Member *m = cpu_member(k, row);
    size_t width = (size_t)k->c->model->shape.width;
    tensor_row(e, (size_t)m->run->tree->token[cpu_node(m, row)], x);
    float scale = k->c->model->shape.embedding_scale;
    for (size_t i = 0; scale != 0 && i < width; i++) x[i] *= scale;
    const Tensor *p = &k->c->model->positions;
    size_t position = (size_t)tree_position(m->run->tree, cpu_node(m, row));
    for (size_t i = 0; p->data && i < width; i++) x[i] += tensor_value(p, position, i);
}

// Attention's input: the normed hidden state; without a norm, as it is; of a pair, after the normed
// embedding.
static void norm_attention(const Work *k, int row, float *x) {
    const Model *m = k->c->model;
    const Shape *s = &m->shape;
    bool paired = s->input == INPUT_PAIRED && k->layer == 0;
    if (paired) {
        load_embedding(k, row, x);
        k->c->ops->rmsnorm(x, &m->token_norm, s->norm_epsilon, s->width, x);
        x += s->width;
    }
    if (!k->w[W_ATTENTION_NORM].data || (paired && s->normed_residual)) cpu_copy_hidden(k, row, x);
    else cpu_norm_layer(k, W_ATTENTION_NORM, cpu_hidden_row(k, row), x);
}

// Rotates pairs of neighbours with the operation for halves.
static void turn_neighbours(const Cpu *c, float *head, const float *cosine, const float *sine, int pairs) {
    float half[2 * ROPE_MAX_PAIRS];
    for (int i = 0; i < pairs; i++) {
        half[i] = head[2 * i];
        half[i + pairs] = head[2 * i + 1];
    }
    c->ops->rope(half, cosine, sine, pairs);
    for (int i = 0; i < pairs; i++) {
        head[2 * i] = half[i];
        head[2 * i + 1] = half[i + pairs];
    }
}

// The weights of one of several norms that are one vector.
static Tensor own_norm(const Tensor *norm, int which, int columns) {
    size_t at = (size_t)which * (size_t)columns * dtype_size(norm->dtype);
    return (Tensor){
        .data = (const unsigned char *)norm->data + at, .dtype = norm->dtype, .rows = 1, .columns = columns};
}

// LayerNorm of a head with its own weights.
static void norm_own(const Cpu *c, const Tensor *norm, int h, float *head) {
    const Shape *s = &c->model->shape;
    const Tensor own = own_norm(norm, h, s->head_dim);
    c->ops->layernorm(head, &own, &(Tensor){.data = NULL}, s->norm_epsilon, s->head_dim, head);
}

// rope: of shape_layer_rope.
static void turn_heads(const Cpu *c, const Tensor *norm, float *row, int heads, int position, int rope) {
    const Shape *s = &c->model->shape;
    size_t table = (size_t)c->context * (size_t)s->rope.pairs;
    size_t at = (size_t)position * (size_t)s->rope.pairs + (rope > 0 ? table : 0);
    bool whole = norm->data && s->qk_norm == QK_NORM_ROWS;
    if (whole) c->ops->rmsnorm(row, norm, s->norm_epsilon, heads * s->head_dim, row);
    for (int h = 0; h < heads; h++) {
        float *head = row + h * s->head_dim;
        if (norm->data && s->qk_norm == QK_NORM_OWN) norm_own(c, norm, h, head);
        else if (norm->data && !whole) c->ops->rmsnorm(head, norm, s->norm_epsilon, s->head_dim, head);
        if (rope < 0) continue;
        if (s->rope.neighbours) turn_neighbours(c, head, c->cosine + at, c->sine + at, s->rope.pairs);
        else c->ops->rope(head, c->cosine + at, c->sine + at, s->rope.pairs);
    }
}

// Adds biases, norms and rotates heads, and stores keys and values in the step area.
static void place_row(const void *work, int r) {
    const Work *k = work;
    Cpu *c = k->c;
    const Member *m = cpu_member(k, r);
    const KeyValues *step = &m->c->step;
    void *keys = (unsigned char *)step->k + (size_t)k->layer * step->k_bytes;
    void *values = (unsigned char *)step->v + (size_t)k->layer * step->v_bytes;
    const Shape *s = &c->model->shape;
    int q_width = shape_q_width(s), kv_width = shape_kv_width(s);
    float *q = c->panel.q + (size_t)r * (size_t)q_width, *key = c->panel.k + (size_t)r * (size_t)kv_width,
          *value = c->panel.v + (size_t)r * (size_t)kv_width;
    int position = tree_position(m->run->tree, cpu_node(m, r));
    assert(position < c->rope_filled);
    if (!k->context) cpu_add_bias(&k->w[W_Q_BIAS], q);
    cpu_add_bias(&k->w[W_K_BIAS], key);
    cpu_add_bias(&k->w[W_V_BIAS], value);
    int rope = shape_layer_rope(s, k->layer);
    turn_heads(c, &k->w[W_K_NORM], key, s->kv_heads, position, rope);
    cpu_watch_row(k, r, key, kv_width, ROUNDED_HEADS);
    cpu_watch_row(k, r, value, kv_width, ROUNDED_HEADS);
    if (!k->context) turn_heads(c, &k->w[W_Q_NORM], q, s->heads, position, rope);
    if (!k->context) cpu_watch_row(k, r, q, q_width, ROUNDED_HEADS);
    for (int i = 0; c->compute != COMPUTE_F32 && !k->context && i < q_width; i++)
        q[i] = dtype_round(compute_dtype(c->compute), q[i]);
    keys_store(&c->layout, key, value, keys, values, cpu_node(m, r));
}

// Adds attention's or the MLP's output to the residual stream, under its norm if it has one.
static void project_to_stream(Products *p, Weight post) {
    p->residual = !p->work->w[post].data;
    cpu_project(p);
    if (!p->residual) cpu_add_output(p->work, p->bias, post);
}

static void run_attention(Work *k) {
    const Tensor *w = k->w;
    const Panel *p = &k->c->panel;
    Products qkv = {.work = k,
                    .ready = norm_attention,
                    .x = p->normed,
                    .w = {&w[W_Q], &w[W_K], &w[W_V]},
                    .y = {p->q, p->k, p->v},
                    .count = 3,
                    .what = ROUNDED_ATTENTION_INPUT};
    Products o = {.work = k,
                  .x = p->mixed,
                  .w = {&w[W_O]},
                  .y = {p->delta},
                  .count = 1,
                  .bias = &w[W_O_BIAS],
                  .what = ROUNDED_ATTENTION_OUTPUT};
    const Shape *s = &k->c->model->shape;
    size_t width = (size_t)s->width;
    for (int r = 0; s->mlp_input != MLP_AFTER && r < k->rows; r++)
        memcpy(p->before + (size_t)r * width, cpu_hidden_row(k, r), width * sizeof(float));
    cpu_project(&qkv);
    cpu_each_row(k, place_row, k);
    for (const Member *m = k->members; m < k->members + k->count; m++)
        if (m->run->tree->layout == LAYOUT_COPIED && m->first == m->run->first) cpu_copy_cache(m);
    cpu_attend(k);
    project_to_stream(&o, W_ATTENTION_POST);
}

static void keep_context(Work *k) {
    Products kv = {.work = k,
                   .ready = cpu_copy_hidden,
                   .x = k->c->panel.normed,
                   .w = {&k->w[W_K], &k->w[W_V]},
                   .y = {k->c->panel.k, k->c->panel.v},
                   .count = 2,
                   .what = ROUNDED_ATTENTION_INPUT};
    cpu_project(&kv);
    cpu_each_row(k, place_row, k);
}

// --- MLP

static void gate_row(const Work *k, int row, float *x) {
    int n = k->c->model->shape.mlp_width;
    size_t at = (size_t)row * (size_t)n;
    cpu_gate(k, k->c->panel.gate + at, k->c->panel.up + at, n, x);
}

static void run_mlp(Work *k) {
    const Tensor *w = k->w;
    const Panel *p = &k->c->panel;
    Products in = {.work = k,
                   .ready = cpu_norm_mlp,
                   .x = p->normed,
                   .w = {&w[W_GATE], &w[W_UP]},
                   .y = {p->gate, p->up},
                   .count = w[W_UP].data ? 2 : 1,
                   .what = ROUNDED_MLP_INPUT};
    Products out = {.work = k,
                    .ready = gate_row,
                    .x = p->gate,
                    .w = {&w[W_DOWN]},
                    .y = {p->delta},
                    .count = 1,
                    .bias = &w[W_DOWN_BIAS],
                    .what = ROUNDED_MLP_PRODUCT};
    cpu_project(&in);
    for (int r = 0; w[W_UP_BIAS].data && r < k->rows; r++)
        cpu_add_bias(&w[W_UP_BIAS], p->up + (size_t)r * (size_t)w[W_UP_BIAS].columns);
    if (w[W_DOWN].data) {
        project_to_stream(&out, W_MLP_POST);
        return;
    }
    // An MLP without down projection: its activations are its output.
    int width = k->c->model->shape.width;
    for (int r = 0; r < k->rows; r++) {
        float *x = cpu_hidden_row(k, r), *gate = p->gate + (size_t)r * (size_t)width;
        gate_row(k, r, gate);
        for (int i = 0; i < width; i++) x[i] += gate[i];
    }
}

// --- the first rows: embeddings, or those of a model of tokens and hidden states (shape.h)

static const float *given_row(const Work *k, int row) {
    const Member *m = cpu_member(k, row);
    return m->c->given + (size_t)cpu_node(m, row) * (size_t)shape_given_width(&m->c->model->shape);
}

static const float *parent_row(const Work *k, int row) {
    const Member *m = cpu_member(k, row);
    int parent = m->run->tree->parent[cpu_node(m, row)];
    return m->c->hidden + (size_t)parent * (size_t)m->c->model->shape.width;
}

static bool is_given(const Work *k, int row) {
    const Member *m = cpu_member(k, row);
    return cpu_node(m, row) < m->run->given;
}

// fc's input: [embedding; h], or [normed h; normed embedding], or the given states.
static void ready_fused(const Work *k, int row, float *x) {
    const Model *m = k->c->model;
    bool normed = m->shape.input == INPUT_MTP;
    int width = m->shape.width;
    float epsilon = m->shape.norm_epsilon, *e = x + (normed ? width : 0), *h = x + (normed ? 0 : width);
    load_embedding(k, row, e);
    memcpy(h, is_given(k, row) ? given_row(k, row) : parent_row(k, row), (size_t)width * sizeof *h);
    if (!normed) return;
    k->c->ops->rmsnorm(e, &m->token_norm, epsilon, width, e);
    k->c->ops->rmsnorm(h, &m->state_norm, epsilon, width, h);
}
static void ready_states(const Work *k, int row, float *x) {
    const Model *m = k->c->model;
    const float *given = given_row(k, row);
    int width = shape_given_width(&m->shape), norms = shape_fc_norms(&m->shape);
    if (!norms) memcpy(x, given, (size_t)width * sizeof *x);
    for (int i = 0, each = norms ? width / norms : 0; i < norms; i++) {
        const Tensor own = own_norm(&m->fc_norm, i, each);
        k->c->ops->rmsnorm(given + i * each, &own, m->shape.norm_epsilon, each, x + i * each);
    }
}

// fc on the first k->rows of the panel.
static void run_fc(const Work *k) {
    const Model *m = k->c->model;
    const Panel *panel = &k->c->panel;
    size_t width = (size_t)m->shape.width;
    Products fc = {.work = k,
                   .ready = m->shape.input < INPUT_PAIRED ? ready_fused : ready_states,
                   .x = panel->normed,
                   .w = {&m->fc},
                   .y = {panel->delta},
                   .count = 1,
                   .what = ROUNDED_FC_INPUT};
    cpu_project(&fc);
    for (int r = 0; r < k->rows; r++) {
        memcpy(cpu_hidden_row(k, r), panel->delta + (size_t)r * width, width * sizeof(float));
        cpu_add_bias(&m->fc_bias, cpu_hidden_row(k, r));
    }
}

// The given rows are each sequence's first ones; fc gathers them.
static void run_fc_of_given(const Work *k) {
    Member members[PANEL];
    Work given = *k;
    given.members = members;
    given.count = given.rows = 0;
    for (const Member *m = k->members; m < k->members + k->count; m++) {
        int rows = m->run->given - m->first < m->rows ? m->run->given - m->first : m->rows;
        if (rows <= 0) continue;
        members[given.count] = *m;
        members[given.count].rows = rows;
        members[given.count++].at = given.rows;
        given.rows += rows;
    }
    if (given.rows) run_fc(&given);
}

static void pair(const Work *k) {
    const Shape *s = &k->c->model->shape;
    run_fc_of_given(k);
    for (int r = 0; r < k->rows; r++)
        if (!is_given(k, r)) memcpy(cpu_hidden_row(k, r), parent_row(k, r), (size_t)s->width * sizeof(float));
    for (int r = 0; r < k->rows && s->normed_residual; r++)
        cpu_norm_layer(k, W_ATTENTION_NORM, cpu_hidden_row(k, r), cpu_hidden_row(k, r));
}

static void begin_rows(const Work *k) {
    static const Tensor none;
    switch (k->c->model->shape.input) {
    case INPUT_BLOCK:
        if (k->context) run_fc(k);
        for (int r = 0; k->context && r < k->rows; r++)
            cpu_norm(k->c, &k->c->model->state_norm, &none, cpu_hidden_row(k, r), cpu_hidden_row(k, r));
        if (k->context) break; // fall through
    case INPUT_TOKENS:
        for (int r = 0; r < k->rows; r++) load_embedding(k, r, cpu_hidden_row(k, r));
        break;
    case INPUT_FUSED:
    case INPUT_MTP: run_fc(k); break;
    case INPUT_PAIRED: pair(k); break;
    case INPUT_HIDDEN: break;
    }
}

// --- the whole

static void capture(const Member *m) {
    const Captures *c = &m->c->captures;
    size_t width = (size_t)m->c->model->shape.width;
    for (int i = 0; i < c->count; i++)
        for (int node = m->first; c->layers[i] == m->layer + 1 && node < m->first + m->rows; node++)
            memcpy(m->c->kept + ((size_t)node * (size_t)c->count + (size_t)i) * width,
                   m->c->hidden + (size_t)node * width, width * sizeof(float));
}

// The next rows to run: nodes from `node` on of run `at`.
typedef struct Next {
    Cpu *const *c;
    const StepRun *const *runs;
    int count, at, node;
} Next;

// Fills a panel with the next rows, of as many sequences as it takes. False if there are none. A mutual tree
// is never cut: its rows store their keys before any of them attends.
static bool next_panel(Next *n, int layer, Member members[PANEL], Work *k) {
    Cpu *lead = n->c[0]->first;
    *k = (Work){.c = lead, .w = lead->model->layers[layer].w, .layer = layer, .members = members};
    k->context = lead->model->shape.input == INPUT_BLOCK && n->runs[0]->given > n->runs[0]->first;
    while (n->at < n->count && k->rows < lead->panel_rows) {
        const StepRun *run = n->runs[n->at];
        int left = run->last - n->node, room = lead->panel_rows - k->rows, rows = left < room ? left : room;
        if (run->tree->mutual && rows < left) break;
        members[k->count++] = (Member){n->c[n->at], run, layer, n->node, rows, k->rows, ATTEND_WHOLE};
        k->rows += rows;
        n->node += rows;
        if (n->node == run->last && ++n->at < n->count) n->node = n->runs[n->at]->first;
    }
    return k->rows > 0;
}

static void run_panel(Work *k) {
    if (k->layer == 0) begin_rows(k);
    if (k->context) {
        keep_context(k);
        return;
    }
    if (k->w[W_Q].data) run_attention(k);
    if (k->w[W_GATE].data) run_mlp(k);
    if (k->w[W_ROUTER].data) cpu_run_experts(k);
    const Model *m = k->c->model;
    bool last = k->layer + 1 == m->shape.layers;
    for (int r = 0; last && m->shape.normed_output && r < k->rows; r++)
        cpu_norm(k->c, &m->final_norm, &m->final_norm_bias, cpu_hidden_row(k, r), cpu_hidden_row(k, r));
    for (int i = 0; i < k->count; i++) capture(&k->members[i]);
}

// All panels go through a layer before the next layer, in order: a node's ancestors store their keys before
// it attends.
void cpu_forward(Cpu *const *c, const StepRun *const *runs, int count) {
    Member members[PANEL];
    Work k;
    for (int i = 0; i < count; i++) {
        const StepRun *run = runs[i];
        assert(run->first >= 0 && run->first < run->last && run->last <= c[i]->max_nodes);
        assert(run->a == runs[0]->a && run->b == runs[0]->b && run->b <= c[i]->model->shape.layers);
        assert(c[i]->first == c[0]->first && run->tree->mutual == runs[0]->tree->mutual);
        if (run->a == 0) cpu_plan(c[i], run);
    }
    for (int layer = runs[0]->a; layer < runs[0]->b; layer++)
        for (Next n = {c, runs, count, 0, runs[0]->first}; next_panel(&n, layer, members, &k);) run_panel(&k);
}
