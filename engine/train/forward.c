// The forward pass of a batch, layer by layer. It leaves in n->layers everything that backward.c reads.
#include "engine/train/linear.h"

#include <assert.h>

static void run_chunks(void *argument, int thread, int threads) {
    const Pass *p = argument;
    int from, to;
    pool_share(p->batch->rows, NORM_BLOCK, thread, threads, &from, &to);
    for (; from < to; from += CHUNK_ROWS)
        p->work(p, thread, from, to - from < CHUNK_ROWS ? to : from + CHUNK_ROWS);
}

void pass_rows(Pass *p, RowsWork *work) {
    p->work = work;
    pool_run(p->n->pool, run_chunks, p);
}

// Fills the first layer's input with rows of the embedding, a block's of the target's, or with the batch's
// states.
static void input_forward(const Pass *p, UNUSED int thread, int from, int to) {
    Network *n = p->n;
    int width = n->shape.width;
    const float *table = n->target_embedding ? n->target_embedding
                         : p->batch->states  ? p->batch->states
                                             : n->weights + n->parameters.at[W_EMBEDDING];
    for (int r = from; r < to; r++) {
        size_t at = (size_t)(table == p->batch->states ? r : p->batch->tokens[r]) * (size_t)width;
        memcpy(pass_row(n->layers[0].in, r, width), table + at, (size_t)width * sizeof(float));
    }
}

void pass_norm(const Network *n, const float *x, size_t weight, float *y, float *inverse, int from, int to) {
    size_t width = (size_t)n->shape.width;
    for (size_t r = (size_t)from; r < (size_t)to; r++)
        inverse[r] = n->kernels->rmsnorm_forward(x + r * width, n->weights + weight,
                                                 (float)n->shape.norm_epsilon, (int)width, y + r * width);
}

void pass_turn(const Pass *p, float *qkv, int first, int from, int to) {
    const Network *n = p->n;
    const Shape *s = &n->shape;
    size_t pairs = (size_t)s->rope.pairs;
    for (int r = from; r < to; r++) {
        size_t angle = (size_t)(r - p->batch->start[r] + p->forward) * pairs;
        float *head = pass_row(qkv, r, pass_qkv_width(s)) + first * s->head_dim;
        for (int h = first; h < s->heads + s->kv_heads; h++, head += s->head_dim)
            (p->backward ? n->kernels->rope_backward : n->kernels->rope_forward)(head, n->cosine + angle,
                                                                                 n->sine + angle, (int)pairs);
    }
}

void pass_norm_heads(const Pass *p, LayerTrace *t, int first, int from, int to) {
    const Network *n = p->n;
    const Shape *s = &n->shape;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    int heads = s->heads + s->kv_heads, size = s->head_dim;
    for (int r = from; r < to; r++) {
        float *kept = pass_row(t->heads, r, pass_heads_width(s)),
              *row = pass_row(t->qkv, r, pass_qkv_width(s));
        memcpy(kept, row, (size_t)(heads * size) * sizeof *row);
        for (int h = first; h < heads; h++)
            kept[heads * size + h] = n->kernels->rmsnorm_forward(
                kept + h * size, n->weights + plan->at[h < s->heads ? W_Q_NORM : W_K_NORM],
                (float)s->norm_epsilon, size, row + h * size);
    }
}

// From the stream to queries, keys and values.
static void before_attention(const Pass *p, int thread, int from, int to) {
    Network *n = p->n;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    LayerTrace *t = pass_trace(p);
    Linear qkv = pass_linear(p, thread, MATRIX_QKV);
    if (network_is_eagle(n) && !p->layer) eagle_input(p, thread, from, to);
    else pass_norm(n, t->in, plan->at[W_ATTENTION_NORM], t->normed, t->inverse, from, to);
    linear_forward(&qkv, t->normed, n->weights + plan->at[W_Q], t->qkv, from, to, false);
    if (layer_has(plan, W_Q_NORM)) pass_norm_heads(p, t, 0, from, to);
    pass_turn(p, t->qkv, 0, from, to);
    if (network_is_block(n)) block_context(p, thread, from, to);
}

static AttentionTask attention_task(const Pass *p, const DocumentRows *d, int head) {
    Network *n = p->n;
    const Shape *s = &n->shape;
    bool block = network_is_block(n);
    // By all later rows: the first forward's, or the context's.
    LayerTrace *t = pass_trace(p), *seen = block ? &n->block.layers[p->layer] : &n->layers[p->layer];
    float *seen_slope = block ? n->block.qkv_slope : seen->qkv_slope;
    int q = shape_q_width(s), kv = shape_kv_width(s), group = s->heads / s->kv_heads, size = s->head_dim;
    size_t row = (size_t)(d->first * pass_qkv_width(s)), mixed = (size_t)(d->first * q);
    size_t at_q = row + (size_t)(head * group * size), at_k = row + (size_t)(q + head * size);
    size_t at_v = at_k + (size_t)kv, at_mixed = mixed + (size_t)(head * group * size);
    AttentionTask task = {.rows = d->count,
                          .group = group,
                          .head_dim = size,
                          .stride = (size_t)pass_qkv_width(s),
                          .mixed_stride = (size_t)q,
                          .q = t->qkv + at_q,
                          .k = seen->qkv + at_k,
                          .v = seen->qkv + at_v,
                          .mixed = t->mixed + at_mixed,
                          .dmixed = n->slopes.mixed + at_mixed,
                          .dq = t->qkv_slope + at_q,
                          .dk = seen_slope + at_k,
                          .dv = seen_slope + at_v,
                          .begin = block ? p->batch->blocks + d->first : NULL,
                          .first = d->first,
                          .own = block ? s->block.rows : p->forward};
    for (int m = 0, at = !block; m < (block ? 1 : p->forward); m++, at++) {
        const LayerTrace *own = &n->layers[at * s->layers + p->layer];
        task.own_k[m] = own->qkv + at_k;
        task.own_v[m] = own->qkv + at_v;
        task.own_dk[m] = own->qkv_slope + at_k;
        task.own_dv[m] = own->qkv_slope + at_v;
    }
    return task;
}

// Tasks are dealt out in turn; backward uses the same tasks as forward.
void pass_attention(void *argument, int thread, int threads) {
    const Pass *p = argument;
    int heads = p->n->shape.kv_heads;
    for (int i = thread; i < p->documents * heads; i += threads) {
        AttentionTask t = attention_task(p, &p->n->documents[i / heads], i % heads);
        if (p->backward && !p->carried) attention_clear(&t);
        if (p->backward) attention_backward(&t, p->n->kernels, p->n->scratch[thread]);
        else attention_forward(&t, p->n->kernels, p->n->scratch[thread]);
    }
}

// The stream above the layer: the next layer's input.
static float *stream_above(const Pass *p) {
    return p->layer + 1 < p->n->shape.layers ? pass_trace(p)[1].in : pass_here(p)->out;
}

static void gate_forward(const Pass *p, int from, int to) {
    const Network *n = p->n;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    const LayerTrace *t = pass_trace(p);
    int mlp = n->shape.mlp_width;
    for (int r = from; r < to; r++) {
        float *gate = pass_row(t->gate_up, r, 2 * mlp);
        if (layer_has(plan, W_GATE_BIAS))
            n->kernels->add(gate, n->weights + plan->at[W_GATE_BIAS], (size_t)mlp);
        n->kernels->swiglu_forward(gate, gate + mlp, mlp, pass_row(t->active, r, mlp));
    }
}

// Adds the MLP of the stream in the middle to the stream above.
static void mlp_forward(const Pass *p, int thread, int from, int to) {
    Network *n = p->n;
    const Shape *s = &n->shape;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    LayerTrace *t = pass_trace(p);
    Linear gate_up = pass_linear(p, thread, MATRIX_GATE_UP), down = pass_linear(p, thread, MATRIX_DOWN);
    float *above = stream_above(p);
    if (!layer_has(plan, W_MLP_NORM)) pass_copy(n, t->middle_normed, t->middle, from, to);
    else pass_norm(n, t->middle, plan->at[W_MLP_NORM], t->middle_normed, t->middle_inverse, from, to);
    linear_forward(&gate_up, t->middle_normed, n->weights + plan->at[W_GATE], t->gate_up, from, to, false);
    gate_forward(p, from, to);
    if (layer_has(plan, W_DOWN))
        linear_forward(&down, t->active, n->weights + plan->at[W_DOWN], above, from, to, true);
    else
        n->kernels->add(pass_row(above, from, s->width), pass_row(t->active, from, s->width),
                        (size_t)(to - from) * (size_t)s->width);
}

// Adds the outputs of attention and of the MLP to the stream.
static void after_attention(const Pass *p, int thread, int from, int to) {
    Network *n = p->n;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    LayerTrace *t = pass_trace(p);
    Linear o = pass_linear(p, thread, MATRIX_O);
    pass_copy(n, t->middle, t->in, from, to);
    if (layer_has(plan, W_O))
        linear_forward(&o, t->mixed, n->weights + plan->at[W_O], t->middle, from, to, true);
    pass_copy(n, stream_above(p), t->middle, from, to);
    if (layer_has(plan, W_GATE)) mlp_forward(p, thread, from, to);
}

static void last_norm(const Pass *p, UNUSED int thread, int from, int to) {
    Network *n = p->n;
    const Forward *f = pass_here(p);
    if (n->parameters.at[W_FINAL_NORM] == NO_PARAMETER) pass_copy(n, n->out_normed, f->out, from, to);
    else pass_norm(n, f->out, n->parameters.at[W_FINAL_NORM], n->out_normed, f->out_inverse, from, to);
}

// Returns the number of documents.
static int find_documents(const Batch *b, DocumentRows *out) {
    int count = 0;
    for (int r = 0; r < b->rows; r++) {
        if (b->start[r] == r) out[count++].first = r;
        assert(count && b->start[r] == out[count - 1].first);
        out[count - 1].count = r + 1 - out[count - 1].first;
    }
    return count;
}

void pass_forward(Pass *p) {
    Pool *pool = p->n->pool;
    assert(p->batch->rows >= 1 && p->batch->rows <= p->n->options.rows);
    p->documents = find_documents(p->batch, p->n->documents);
    p->backward = false;
    if (!network_is_eagle(p->n)) pass_rows(p, input_forward);
    for (p->layer = 0; p->layer < p->n->shape.layers; p->layer++) {
        pool_run(pool, pass_pack, p);
        if (layer_has(&p->n->parameters.layers[p->layer], W_Q)) {
            pass_rows(p, before_attention);
            pool_run(pool, pass_attention, p);
        }
        pass_rows(p, after_attention);
    }
    pass_rows(p, last_norm);
}
