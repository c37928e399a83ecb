// The kernels of a run, in order:
//
//      embed                               each card's first time only
//      norm, q k v, attention, o           q k v ends with rotation and the write of keys and values (a
//                                          kernel of its own where heads are normed before),
//      norm, gate up, down                 gate up with the activation, o and down with the residual
#include "engine/cuda/fast.h"

typedef struct Work {
    Cuda *c;
    int most, tiles, spans;
} Work;

static Overflow told(const Cuda *c, int layer, Rounded what) {
    return (Overflow){c->overflow, overflow_place(layer, what)};
}

static Activations to_role(const Cuda *c, Role role, const Matrix *reader, int layer, Rounded what) {
    Activations to = *cuda_role(c, role, reader);
    to.overflow = told(c, layer, what);
    return to;
}

static void norm(const Work *w, const float *weight, const Matrix *reader, int layer, Rounded what) {
    const Cuda *c = w->c;
    const Shape *s = &c->model->shape;
    Norm n = {.rows = step_rows(c->step),
              .hidden = c->hidden,
              .weight = weight,
              .epsilon = s->norm_epsilon,
              .width = s->width,
              .to = to_role(c, ROLE_NORMED, reader, layer, what)};
    gpu_norm(&n, w->most, c->stream);
}

static void multiply(const Work *w, const Matrix *m, Role from, const Put *put) {
    Cuda *c = w->c;
    Product p = {
        .rows = step_rows(c->step), .w = *m, .x = *cuda_role(c, from, m), .put = *put, .parts = c->parts};
    if (m->library) fast_multiply(c, &p, w->most);
    else gpu_product(&p, w->most, &c->facts, c->stream);
}

static void add_to_hidden(const Work *w, const Matrix *m, Role from) {
    Put put = {.kind = PUT_RESIDUAL, .out = w->c->hidden, .stride = w->c->model->shape.width};
    multiply(w, m, from, &put);
}

// Bytes of one layer's keys in an area of `count` slots or nodes.
static size_t layer_bytes(const Cuda *c, int count) {
    const Heads *h = &c->heads;
    return (size_t)h->kv_heads * (size_t)count * (size_t)h->pitch * dtype_size(h->dtype);
}
static void *of_layer(void *area, size_t bytes, int layer) {
    return (unsigned char *)area + (size_t)layer * bytes;
}

// A tile of the product does not hold whole heads, so their norms wait for all of it.
static void norm_heads(const Work *w, const GpuLayer *l, const Put *put) {
    const Cuda *c = w->c;
    NormHeads n = {.rows = step_rows(c->step),
                   .sums = c->qkv,
                   .weight = l->qk_norm,
                   .epsilon = c->model->shape.norm_epsilon,
                   .put = *put};
    Put store = {
        .kind = PUT_LOGITS, .bias = put->bias, .out = c->qkv, .stride = l->qkv.rows, .real = l->qkv.rows};
    multiply(w, &l->qkv, ROLE_NORMED, &store);
    gpu_norm_heads(&n, w->most, c->stream);
}

static void attend(const Work *w, int layer) {
    const Cuda *c = w->c;
    const GpuLayer *l = &c->layers[layer];
    int own = layer - c->from;
    size_t slots = layer_bytes(c, c->slots), area = layer_bytes(c, c->max_nodes);
    Put put = {.kind = PUT_QKV,
               .bias = l->qkv_bias,
               .heads = c->heads,
               .q = c->q,
               .k = of_layer(c->step_k, area, own),
               .v = of_layer(c->step_v, area, own),
               .area = c->max_nodes,
               .cosine = c->cosine,
               .sine = c->sine};
    Attention a = {.step = c->step,
                   .heads = c->heads,
                   .q = c->q,
                   .cache_k = of_layer(c->cache_k, slots, own),
                   .cache_v = of_layer(c->cache_v, slots, own),
                   .step_k = put.k,
                   .step_v = put.v,
                   .slots = c->slots,
                   .area = c->max_nodes,
                   .window = c->cache.window,
                   .ring = c->cache.ring,
                   .to = to_role(c, ROLE_MIXED, &l->o, layer, ROUNDED_ATTENTION_OUTPUT),
                   .parts = c->attention_parts,
                   .parts_floats = c->attention_floats,
                   .done = c->attention_done};
    put.heads.overflow = told(c, layer, ROUNDED_HEADS);
    norm(w, l->attention_norm, &l->qkv, layer, ROUNDED_ATTENTION_INPUT);
    if (l->qk_norm) norm_heads(w, l, &put);
    else multiply(w, &l->qkv, ROLE_NORMED, &put);
    gpu_attention(&a, w->tiles, w->spans, c->stream);
    add_to_hidden(w, &l->o, ROLE_MIXED);
}

// Without `down` the activations are what is added.
static void run_mlp(const Work *w, int layer) {
    const Cuda *c = w->c;
    const GpuLayer *l = &c->layers[layer];
    Put put = {.kind = l->gated ? PUT_GATED : PUT_ACTIVATED,
               .bias = l->gate_bias,
               .activation = c->model->shape.activation,
               .to = to_role(c, ROLE_GATED, &l->down, layer, ROUNDED_MLP_PRODUCT)};
    if (!l->down.data) {
        put.kind = PUT_ACTIVATED_RESIDUAL;
        put.out = c->hidden;
        put.stride = c->model->shape.width;
    }
    norm(w, l->mlp_norm, &l->in, layer, ROUNDED_MLP_INPUT);
    multiply(w, &l->in, ROLE_NORMED, &put);
    if (l->down.data) add_to_hidden(w, &l->down, ROLE_GATED);
}

static void embed(const Work *w) {
    const Cuda *c = w->c;
    const Shape *s = &c->model->shape;
    Embed e = {.step = c->step,
               .table = c->embedding,
               .hidden = c->hidden,
               .frequency = c->frequency,
               .factor = s->rope.attention_factor,
               .pairs = s->rope.pairs,
               .cosine = c->cosine,
               .sine = c->sine};
    if (s->input != INPUT_TOKENS || c->from > 0) e.table.data = NULL; // the states come, angles are wanted
    gpu_embed(&e, w->most, c->stream);
}

void cuda_layers(Cuda *c, const StepGraph *run) {
    Work w = {c, run->most, run->tiles, run->spans};
    if (run->a == c->from) embed(&w);
    for (int layer = run->a; layer < run->b; layer++) {
        if (c->layers[layer].qkv.data) attend(&w, layer);
        if (c->layers[layer].in.data) run_mlp(&w, layer);
    }
}
