// A run: one copy carries everything that changes from step to step, then the layers follow as one graph.
//
// The kernels of a run, in order:
//
//      embed                               only on each card's first layer
//      join, fc                            of a model of tokens and hidden states, at its start
//      join, fc, norm; copy, q k v ..      of a block's context, which has no more than keys and values
//      norm, q k v, attention, o           q k v ends with rotation and the write of keys and values (a
//                                          separate kernel if heads are normed first)
//      norm, gate up, down                 gate up ends with the activation, o and down with the residual;
//                                          above 16 rows the parts of both are left to the norm that follows,
//                                          of the hidden states or of an output
//      norm, router, choose, sort, gather, gate up, down, mix
//                                          in place of these, of a layer with experts;
//                                          before `gate up`, gate up and down of the shared MLP
//      keep                                after a captured layer
//
// Graphs are keyed by the sizes of their launches (rows, tiles, quads and spans, rounded up, mostly to
// powers of two) and the range of layers. A growing context causes a new capture only when it doubles.
#include "engine/cuda/fast.h"
#include "engine/cuda/sequence.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// --- the layers of a run

typedef struct Work {
    Cuda *c;
    int most;
    StepSizes sizes;
    bool copied, given; // as in StepGraph
    bool context;       // the rows are a block's (block.h)
    PutRows *left;      // parts not 0: sums that the hidden states lack until the next norm, or `settle`
} Work;

static Overflow overflow_at(const Cuda *c, int layer, Rounded what) {
    return (Overflow){c->overflow, overflow_place(layer, what)};
}

static Activations to_role(const Cuda *c, Role role, const Matrix *reader, int layer, Rounded what) {
    Activations to = *cuda_role(c, role, reader);
    to.overflow = overflow_at(c, layer, what);
    return to;
}

static Norm norm_of(const Cuda *c, const float *weight, const float *bias, Activations to) {
    const Shape *s = &c->model->shape;
    return (Norm){.rows = c->running,
                  .hidden = c->hidden,
                  .weight = weight,
                  .bias = bias,
                  .layer = s->norm_kind == NORM_LAYER,
                  .epsilon = s->norm_epsilon,
                  .width = s->width,
                  .stride = s->width,
                  .to = to};
}

static void norm_rows(const Work *w, Norm *n) {
    if (n->hidden == w->c->hidden) {
        n->left = *w->left;
        w->left->parts = 0;
    }
    gpu_norm(n, w->most, w->c->stream);
}

// Comes before anything else than a norm reads the hidden states, and before a product writes new parts.
static void settle(const Work *w) {
    if (w->left->parts) gpu_put_rows(w->left, w->most, w->c->stream);
    w->left->parts = 0;
}

static void norm_attention(const Work *w, const GpuLayer *l, int layer) {
    const Cuda *c = w->c;
    const Shape *s = &c->model->shape;
    Activations to = to_role(c, attention_role(s, layer), &l->qkv, layer, ROUNDED_ATTENTION_INPUT);
    Norm hidden = norm_of(c, l->vector[GROUP_ATTENTION_NORM], l->vector[GROUP_ATTENTION_NORM_BIAS], to),
         token = norm_of(c, c->token_norm, NULL, to);
    if (s->input == INPUT_PAIRED && layer == 0) {
        token.hidden = c->tokens;
        norm_rows(w, &token);
        hidden.column = s->width;
        hidden.residual = s->normed_residual ? c->hidden : NULL;
    }
    norm_rows(w, &hidden);
}

static void multiply_leaving(const Work *w, const Matrix *m, Role from, const Put *put, PutRows *left) {
    Cuda *c = w->c;
    Product p = {.rows = c->running,
                 .w = *m,
                 .x = *cuda_role(c, from, m),
                 .put = *put,
                 .parts = c->parts,
                 .left = left};
    settle(w);
    if (m->library) fast_multiply(c, &p, w->most);
    else gpu_product(&p, w->most, &c->facts, c->stream);
}

static void multiply(const Work *w, const Matrix *m, Role from, const Put *put) {
    multiply_leaving(w, m, from, put, put->kind == PUT_RESIDUAL ? w->left : NULL);
}

static void add_to_hidden(const Work *w, const Matrix *m, const float *bias, float scale, Role from) {
    Put put = {.kind = PUT_RESIDUAL,
               .bias = bias,
               .out = w->c->hidden,
               .stride = w->c->model->shape.width,
               .scale = scale};
    multiply(w, m, from, &put);
}

// Stores a product's rows, for a norm that needs the whole of them; it may also add their parts.
static void store_sums(const Work *w, const Matrix *m, const float *bias, Role from, PutRows *left) {
    Put put = {.kind = PUT_LOGITS, .bias = bias, .out = w->c->sums, .stride = m->rows, .real = m->rows};
    multiply_leaving(w, m, from, &put, left);
}

// Adds the sums to the residual stream, normed.
static void norm_sums(const Work *w, const float *norm, const PutRows *left) {
    const Cuda *c = w->c;
    const Shape *s = &c->model->shape;
    NormOutput n = {.rows = c->running,
                    .sums = c->sums,
                    .weight = norm,
                    .epsilon = s->norm_epsilon,
                    .scale = shape_or_one(s->residual_scale),
                    .width = s->width,
                    .hidden = c->hidden,
                    .left = *left};
    gpu_norm_output(&n, w->most, c->stream);
}

// Adds attention's or the MLP's output to the residual stream, under its norm if it has one.
static void add_output(const Work *w, const Matrix *m, const float *bias, const float *norm, Role from) {
    const Cuda *c = w->c;
    const Shape *s = &c->model->shape;
    if (!norm) {
        add_to_hidden(w, m, bias, s->residual_scale, from);
        return;
    }
    PutRows left = {.parts = 0};
    store_sums(w, m, bias, from, &left);
    norm_sums(w, norm, &left);
}

// Bytes of one layer's keys in an area of `count` slots or nodes, and where a layer's begin.
static size_t layer_bytes(const Cuda *c, int count) {
    const Heads *h = &c->heads;
    return (size_t)h->kv_heads * (size_t)count * (size_t)h->pitch * dtype_size(h->dtype);
}

static void *of_layer(void *area, size_t bytes, int layer) {
    return (unsigned char *)area + (size_t)layer * bytes;
}

// A tile of the product does not hold whole heads, so the norms need the whole product first.
static void norm_heads(const Work *w, const GpuLayer *l, int layer, const Put *put) {
    const Cuda *c = w->c;
    const Shape *s = &c->model->shape;
    const float *weight = l->vector[GROUP_QK_NORM];
    int outputs = l->qkv.rows;
    store_sums(w, &l->qkv, put->bias, attention_role(s, layer), NULL);
    if (s->qk_norm != QK_NORM_ROWS) {
        bool own = s->qk_norm == QK_NORM_OWN;
        NormHeads n = {c->running, c->sums, weight, own, s->norm_epsilon, *put};
        n.put.bias = NULL;
        gpu_norm_heads(&n, w->most, c->stream);
        return;
    }
    NormRows n = {c->running, c->sums, weight, s->norm_epsilon, shape_q_width(s), shape_kv_width(s), outputs};
    PutRows p = {
        .rows = n.rows, .sums = c->sums, .outputs = outputs, .stride = outputs, .parts = 1, .put = *put};
    p.put.bias = NULL;
    gpu_norm_q_and_k(&n, w->most, c->stream);
    gpu_put_rows(&p, w->most, c->stream);
}

// The MLP's input, in each form that a matrix reads it in.
static void norm_mlp(const Work *w, const GpuLayer *l, int layer) {
    const Cuda *c = w->c;
    const Matrix *const readers[] = {&l->in, &l->router, &l->shared_in, &l->expert_in};
    bool done[FORMS] = {false};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        if (!readers[i]->data || done[readers[i]->form]) continue;
        Norm norm = norm_of(c, l->vector[GROUP_MLP_NORM], l->vector[GROUP_MLP_NORM_BIAS],
                            to_role(c, ROLE_NORMED, readers[i], layer, ROUNDED_MLP_INPUT));
        norm_rows(w, &norm);
        done[readers[i]->form] = true;
    }
}

static void attend(const Work *w, int layer) {
    const Cuda *c = w->c;
    const GpuLayer *l = &c->layers[layer];
    int own = layer - c->from;
    size_t slots = layer_bytes(c, c->slots), area = layer_bytes(c, cuda_nodes(c));
    bool copied = w->copied;
    const Shape *s = &c->model->shape;
    int rope = shape_layer_rope(s, layer);
    size_t table = (size_t)(rope > 0) * (size_t)cuda_nodes(c) * (size_t)s->rope.pairs;
    Put put = {.kind = PUT_QKV,
               .bias = l->vector[GROUP_QKV_BIAS],
               .heads = c->heads,
               .q = c->q,
               .k = of_layer(c->step_k, area, own),
               .v = of_layer(c->step_v, area, own),
               .area = cuda_nodes(c),
               .cosine = c->cosine + table,
               .sine = c->sine + table};
    Attention a = {.step = c->step,
                   .heads = c->heads,
                   .q = c->q,
                   .cache_k = of_layer(copied ? c->copies_k : c->cache_k, slots, own),
                   .cache_v = of_layer(copied ? c->copies_v : c->cache_v, slots, own),
                   .cache_bytes = cuda_cache_size(c),
                   .step_k = put.k,
                   .step_v = put.v,
                   .slots = c->slots,
                   .area = cuda_nodes(c),
                   .window = shape_window(s, layer),
                   .ring = c->cache.ring,
                   .to = to_role(c, ROLE_MIXED, &l->o, layer, ROUNDED_ATTENTION_OUTPUT),
                   .parts = c->attention_parts,
                   .parts_floats = c->attention_floats,
                   .processors = c->facts.multiprocessors,
                   .done = c->attention_done,
                   .scores = c->scores,
                   .scores_floats = c->scores_floats,
                   .length = c->context};
    attention_scale(s, &a);
    if (rope < 0) put.heads.pairs = 0;
    put.heads.overflow = overflow_at(c, layer, ROUNDED_HEADS);
    Norm as_is = norm_of(c, NULL, NULL, to_role(c, ROLE_NORMED, &l->qkv, layer, ROUNDED_ATTENTION_INPUT));
    if (w->context) norm_rows(w, &as_is);
    else norm_attention(w, l, layer);
    if (l->vector[GROUP_QK_NORM]) norm_heads(w, l, layer, &put);
    else multiply(w, &l->qkv, attention_role(s, layer), &put);
    if (w->context) return;
    gpu_attention(&a, &w->sizes, c->stream);
    if (s->mlp_input != MLP_AFTER) norm_mlp(w, l, layer); // before attention's output is added
    add_output(w, &l->o, l->vector[GROUP_O_BIAS], l->vector[GROUP_ATTENTION_POST], ROLE_MIXED);
}

// Without `down`, the activations themselves are added to the hidden states.
static void run_mlp(const Work *w, int layer) {
    const Cuda *c = w->c;
    const GpuLayer *l = &c->layers[layer];
    Put put = {.kind = l->gated ? PUT_GATED : PUT_ACTIVATED,
               .bias = l->vector[GROUP_IN_BIAS],
               .activation = c->model->shape.activation,
               .to = to_role(c, ROLE_GATED, &l->down, layer, ROUNDED_MLP_PRODUCT)};
    if (!l->down.data) {
        put.kind = PUT_ACTIVATED_RESIDUAL;
        put.out = c->hidden;
        put.stride = c->model->shape.width;
    }
    if (c->model->shape.mlp_input == MLP_AFTER) norm_mlp(w, l, layer);
    multiply(w, &l->in, ROLE_NORMED, &put);
    if (l->down.data)
        add_output(w, &l->down, l->vector[GROUP_DOWN_BIAS], l->vector[GROUP_MLP_POST], ROLE_GATED);
}

// The MLP that all rows go through; its outputs are in `sums`.
static void run_shared(const Work *w, const GpuLayer *l, int layer) {
    const Cuda *c = w->c;
    Put put = {.kind = PUT_GATED,
               .activation = c->model->shape.activation,
               .to = to_role(c, ROLE_SHARED, &l->shared_down, layer, ROUNDED_MLP_PRODUCT)};
    multiply(w, &l->shared_in, ROLE_NORMED, &put);
    store_sums(w, &l->shared_down, NULL, ROLE_SHARED, NULL);
}

// All experts' products with their slots, in one launch.
static void multiply_slots(const Work *w, const Matrix *m, Role from, const Put *put) {
    Cuda *c = w->c;
    Product p = {.rows = c->running,
                 .slices = c->experts.slices,
                 .w = *m,
                 .x = *cuda_role(c, from, m),
                 .put = *put,
                 .expert_bytes = gpu_matrix_bytes(m)};
    gpu_product(&p, w->most, &c->facts, c->stream);
}

static void run_slots(const Work *w, const GpuLayer *l, int layer) {
    const Cuda *c = w->c;
    int width = c->model->shape.width;
    Gather gather = {.rows = c->running,
                     .chosen = c->model->shape.experts.chosen,
                     .slot = c->experts.slot,
                     .from = *cuda_role(c, ROLE_NORMED, &l->expert_in),
                     .to = *cuda_role(c, ROLE_SLOTS, &l->expert_in)};
    Put in = {.kind = PUT_GATED,
              .activation = c->model->shape.activation,
              .to = to_role(c, ROLE_SLOTS_GATED, &l->expert_down, layer, ROUNDED_MLP_PRODUCT)};
    Put out = {.kind = PUT_LOGITS, .out = c->experts.outputs, .stride = width, .real = width};
    gpu_gather(&gather, w->most, c->stream);
    multiply_slots(w, &l->expert_in, ROLE_SLOTS, &in);
    multiply_slots(w, &l->expert_down, ROLE_SLOTS_GATED, &out);
}

static void route(const Work *w, const GpuLayer *l) {
    const Cuda *c = w->c;
    const Shape *s = &c->model->shape;
    const RowList *rows = c->running;
    int outputs = l->router.rows;
    Put put = {.kind = PUT_LOGITS, .out = c->experts.logits, .stride = outputs, .real = outputs};
    Choose choose = {.rows = rows,
                     .logits = c->experts.logits,
                     .stride = outputs,
                     .experts = s->experts,
                     .expert = c->experts.expert,
                     .weight = c->experts.weight};
    Sort sort = {rows, s->experts, c->experts.expert, c->experts.slot, c->experts.slices};
    multiply(w, &l->router, ROLE_NORMED, &put);
    gpu_choose(&choose, w->most, c->stream);
    gpu_sort(&sort, c->stream);
}

static void run_experts(const Work *w, int layer) {
    const Cuda *c = w->c;
    const Shape *s = &c->model->shape;
    const GpuLayer *l = &c->layers[layer];
    const float *norm = l->vector[GROUP_MLP_POST];
    int count = s->experts.count;
    Mix mix = {.rows = c->running,
               .experts = s->experts,
               .slot = c->experts.slot,
               .weight = c->experts.weight,
               .outputs = c->experts.outputs,
               .logits = l->router.rows > count ? c->experts.logits + count : NULL,
               .stride = l->router.rows,
               .width = s->width,
               .sums = c->sums,
               .hidden = norm ? NULL : c->hidden,
               .scale = shape_or_one(s->residual_scale)};
    if (s->mlp_input == MLP_AFTER) norm_mlp(w, l, layer);
    route(w, l);
    if (l->shared_in.data) run_shared(w, l, layer);
    run_slots(w, l, layer);
    gpu_mix(&mix, w->most, c->stream);
    if (norm) norm_sums(w, norm, &(PutRows){.parts = 0});
}

static void embed(const Work *w) {
    const Cuda *c = w->c;
    const Shape *s = &c->model->shape;
    Embed e = {.rows = c->running,
               .step = c->step,
               .table = c->embedding,
               .positions = c->positions,
               .hidden =
                   shape_reads_both(s) && (s->input != INPUT_BLOCK || w->context) ? c->tokens : c->hidden,
               .scale = shape_or_one(s->embedding_scale),
               .likeliest = c->best,
               .names = c->names,
               .frequency = c->frequency,
               .factor = {s->rope.attention_factor, 1},
               .ropes = shape_ropes(s),
               .pairs = s->rope.pairs,
               .table_size = (size_t)cuda_nodes(c) * (size_t)s->rope.pairs,
               .cosine = c->cosine,
               .sine = c->sine};
    if (s->input == INPUT_HIDDEN || c->from > 0) e.table.data = NULL; // only the angles
    gpu_embed(&e, w->most, c->stream);
}

// In place, before fc's input is written to the same activations.
static void norm_given(const Work *w) {
    const Cuda *c = w->c;
    Norm given = norm_of(c, c->fc_norm, NULL, to_role(c, ROLE_JOINED, &c->fc, 0, ROUNDED_FC_INPUT));
    int norms = shape_fc_norms(&c->model->shape);
    given.rows = c->given_rows;
    given.stride = shape_given_width(&c->model->shape);
    given.width = given.stride / norms;
    for (int i = 0; i < norms; i++, given.column += given.width) {
        given.hidden = given.residual = c->given + given.column;
        given.weight = c->fc_norm + given.column;
        gpu_norm(&given, w->most, c->stream);
    }
}

// MTP's two halves of fc's input, from rows that are in place.
static void norm_halves(const Work *w, const Activations *to) {
    const Cuda *c = w->c;
    Norm state = norm_of(c, c->state_norm, NULL, *to), token = norm_of(c, c->token_norm, NULL, *to);
    state.hidden = c->given;
    norm_rows(w, &state);
    token.hidden = c->tokens;
    token.column = c->model->shape.width;
    norm_rows(w, &token);
}

// A pair's fc is left out if no row of the run is given.
static void join(const Work *w) {
    const Cuda *c = w->c;
    const Shape *s = &c->model->shape;
    bool fused = s->input < INPUT_PAIRED, mtp = s->input == INPUT_MTP;
    Activations to = {.data = NULL};
    Join j = {.rows = c->running,
              .step = c->step,
              .tokens = fused ? c->tokens : NULL,
              .given = c->given,
              .hidden = c->hidden,
              .width = s->width,
              .states = s->states};
    if (fused || w->given) to = to_role(c, ROLE_JOINED, &c->fc, 0, ROUNDED_FC_INPUT);
    if (!mtp) j.to = to;
    if (c->fc_norm && w->given) norm_given(w);
    gpu_join(&j, w->most, c->stream);
    if (mtp) norm_halves(w, &to);
    if (to.data) add_to_hidden(w, &c->fc, c->fc_bias, 0, ROLE_JOINED);
    if (!w->context) return;
    Norm states =
        norm_of(c, c->state_norm, NULL, to_role(c, ROLE_NORMED, &c->layers->qkv, 0, ROUNDED_ATTENTION_INPUT));
    states.residual = c->hidden;
    norm_rows(w, &states);
}

static void keep(const Work *w, int layer) {
    const Cuda *c = w->c;
    int width = c->model->shape.width, count = c->captures.count;
    Keep k = {
        .rows = c->running, .hidden = c->hidden, .kept = c->kept, .width = width, .stride = count * width};
    for (int i = 0; i < count; i++) {
        k.column = i * width;
        if (c->captures.layers[i] != layer + 1) continue;
        settle(w);
        gpu_keep(&k, w->most, c->stream);
    }
}

// The head's activations aren't in use yet.
static void norm_output(const Work *w) {
    const Cuda *c = w->c;
    int layers = c->model->shape.layers;
    Norm out =
        norm_of(c, c->final_norm, NULL, to_role(c, ROLE_NORMED, &c->head, layers, ROUNDED_ATTENTION_INPUT));
    out.residual = c->hidden;
    norm_rows(w, &out);
}

static void put_layers(Cuda *c, const void *what) {
    const StepGraph *run = what;
    PutRows left = {.parts = 0};
    bool block = c->model->shape.input == INPUT_BLOCK;
    Work w = {c, run->most, run->sizes, run->copied, run->given, block && run->given, &left};
    assert(run->a >= c->from && run->b <= c->to && run->sizes.tiles > 0 && run->sizes.spans > 0);
    if (run->a == c->from) embed(&w);
    if (run->a == 0 && c->fc.data && (!block || w.context)) join(&w);
    for (int layer = run->a; layer < run->b; layer++) {
        if (c->layers[layer].qkv.data) attend(&w, layer);
        if (w.context) continue;
        if (c->layers[layer].in.data) run_mlp(&w, layer);
        if (c->layers[layer].router.data) run_experts(&w, layer);
        keep(&w, layer);
    }
    if (run->b == c->model->shape.layers && c->model->shape.normed_output) norm_output(&w);
    settle(&w);
}

// --- a run

static int round_to_power(int n, int least) {
    while (least < n) least *= 2;
    return least;
}

static int spans_of(const Cuda *c, const StepRun *run) {
    int from = tree_position(run->tree, run->first), to = from;
    for (int i = run->first; i < run->last; i++) {
        int p = tree_position(run->tree, i);
        if (p < from) from = p;
        if (p > to) to = p;
    }
    return cuda_spans(c, from, to);
}

static bool same_sizes(const StepSizes *a, const StepSizes *b) {
    return a->tiles == b->tiles && a->spans == b->spans && a->quads == b->quads && a->own == b->own &&
           a->batch == b->batch;
}

// Returns the graph with these sizes, or the least recently used one, emptied for them.
static StepGraph *find_graph(Cuda *c, const StepGraph *want) {
    StepGraph *oldest = c->graphs;
    for (int i = 0; i < GRAPHS; i++) {
        StepGraph *g = &c->graphs[i];
        if (g->most == want->most && same_sizes(&g->sizes, &want->sizes) && g->a == want->a &&
            g->b == want->b && g->copied == want->copied && g->given == want->given)
            return g;
        if (g->used < oldest->used) oldest = g;
    }
    if (oldest->graph) {
        gpu_stream_wait(c->stream); // it may still be running
        gpu_graph_close(oldest->graph);
    }
    *oldest = *want;
    return oldest;
}

// If steps cannot be recorded, kernels go into the stream one by one: slower, with the same bits. The name of
// the kernels (isa) then gives the reason.
bool cuda_record(Cuda *c, void **graph, void (*put)(Cuda *c, const void *what), const void *what) {
    if (*graph || c->no_graphs) return *graph != NULL;
    int code = gpu_graph_begin(c->stream);
    if (!code) {
        put(c, what);
        code = gpu_graph_end(c->stream, graph);
    }
    if (code) {
        char *isa = c->instance->isa;
        size_t n = strlen(isa);
        c->no_graphs = true;
        snprintf(isa + n, sizeof c->instance->isa - n, ", steps not recorded: %s", gpu_error(code));
    }
    return *graph != NULL;
}

static bool run_layers(Cuda *c, StepGraph *g, Error *e) {
    if (cuda_record(c, &g->graph, put_layers, g)) {
        if (fast_ok(c, e)) return cuda_ok(c, gpu_graph_run(g->graph, c->stream), "cannot run a step", e);
        gpu_graph_close(g->graph);
        *g = (StepGraph){.most = 0};
        return false;
    }
    put_layers(c, g);
    return cuda_ok(c, gpu_launched(), "cannot run a step", e) && fast_ok(c, e);
}

static int round_spans(const Cuda *c, int spans) {
    int limit = cuda_spans(c, 0, c->context - 1), rounded = round_to_power(spans, 1);
    return rounded < limit ? rounded : limit;
}

// The graph that these runs need; the caller sets what follows from its tiles.
static StepGraph graph_for(const Cuda *c, const SequenceRun *runs, int count, int a, int b) {
    StepGraph g = {.a = a, .b = b, .copied = runs->sequence->copied, .sizes.batch = count > 1};
    int rows = 0;
    for (const SequenceRun *r = runs; r < runs + count; r++) {
        int spans = spans_of(c, r->run);
        rows += r->run->last - r->run->first;
        if (spans > g.sizes.spans) g.sizes.spans = spans;
        g.given |= r->run->first < r->run->given;
        assert(r->run->first < r->run->last && r->run->last <= c->max_nodes);
        assert(r->sequence->copied == g.copied);
    }
    g.sizes.spans = round_spans(c, g.sizes.spans);
    g.most = c->fast ? fast_rows(rows) : round_to_power(rows, 8);
    return g;
}

bool cuda_step(Cuda *c, const SequenceRun *runs, int count, int a, int b, Error *e) {
    Staging *s = &c->steps[c->turn ^= 1];
    assert(a < b && count >= 1);
    StepGraph want = graph_for(c, runs, count, a, b);
    if (want.copied && !cuda_take_copies(c, runs, count, e)) return false;
    RowList *block = staging_begin(s);
    size_t bytes = cuda_write_step(c, runs, count, want.most, block);
    const Step *step = cuda_step_in(c, block);
    want.sizes.tiles = step->tiles;
    if (step->quads) want.sizes.quads = round_to_power(step->quads, 1);
    if (step->spans) want.sizes.own = round_spans(c, step->spans);
    if ((c->fast && !fast_prepare(c, want.most, a, b, e)) || !cuda_begin(c, PHASE_RUN, e) ||
        !staging_send(c, s, c->running, bytes, e))
        return false;
    if (runs->grow && runs->grow->level) gpu_grow(runs->grow, c->stream);
    c->stepped = true;
    if (c->held_rows == c->foreseen) c->held_count = 0; // the list is another now
    StepGraph *g = find_graph(c, &want);
    g->used = ++c->graph_clock;
    c->unread = true;
    return run_layers(c, g, e);
}
