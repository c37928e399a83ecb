// The forward pass of a batch, told layer by layer. Between two barriers a thread works on rows of its own.
#include "engine/train/attention.h"
#include "engine/train/pass.h"

#include <string.h>

static void embedding_forward(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    int from, to, width = n->shape.width;
    const float *table = n->weights + n->parameters.embedding;
    pass_share(p, thread, threads, &from, &to);
    for (int r = from; r < to; r++)
        memcpy(pass_row(n->layers[0].in, r, width), table + (size_t)p->batch->tokens[r] * (size_t)width,
               (size_t)width * sizeof(float));
}

static void norm_rows(const Network *n, const float *x, size_t weight, float *y, float *inverse, int from,
                      int to) {
    size_t width = (size_t)n->shape.width;
    for (size_t r = (size_t)from; r < (size_t)to; r++)
        inverse[r] = n->kernels->rmsnorm_forward(x + r * width, n->weights + weight,
                                                 (float)n->shape.norm_epsilon, (int)width, y + r * width);
}

static void turn_rows(const Pass *p, float *qkv, int from, int to) {
    const Network *n = p->n;
    const Shape *s = &n->shape;
    size_t pairs = (size_t)s->rope.pairs;
    for (int r = from; r < to; r++) {
        size_t angle = (size_t)(r - p->batch->start[r]) * pairs;
        float *head = pass_row(qkv, r, pass_qkv_width(s));
        for (int h = 0; h < s->heads + s->kv_heads; h++, head += s->head_dim)
            n->kernels->rope_forward(head, n->cosine + angle, n->sine + angle, (int)pairs);
    }
}

// Stream to queries, keys and values.
static void before_attention(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    LayerTrace *t = &n->layers[p->layer];
    Linear qkv = pass_linear(p, thread, n->shape.width, pass_qkv_width(&n->shape));
    int from, to;
    pass_share(p, thread, threads, &from, &to);
    norm_rows(n, t->in, plan->attention_norm, t->normed, t->inverse, from, to);
    linear_forward(&qkv, t->normed, n->weights + plan->qkv, t->qkv, from, to, false);
    turn_rows(p, t->qkv, from, to);
}

static void attention(void *argument, int thread, int threads) {
    pass_attention(argument, thread, threads, false);
}

static AttentionTask attention_task(const Pass *p, const DocumentRows *d, int head) {
    Network *n = p->n;
    const Shape *s = &n->shape;
    LayerTrace *t = &n->layers[p->layer];
    int q = shape_q_width(s), kv = shape_kv_width(s), group = s->heads / s->kv_heads, size = s->head_dim;
    size_t row = (size_t)(d->first * pass_qkv_width(s)), mixed = (size_t)(d->first * q);
    size_t at_q = row + (size_t)(head * group * size), at_k = row + (size_t)(q + head * size);
    size_t at_v = at_k + (size_t)kv, at_mixed = mixed + (size_t)(head * group * size);
    return (AttentionTask){.rows = d->count,
                           .group = group,
                           .head_dim = size,
                           .stride = (size_t)pass_qkv_width(s),
                           .mixed_stride = (size_t)q,
                           .q = t->qkv + at_q,
                           .k = t->qkv + at_k,
                           .v = t->qkv + at_v,
                           .mixed = t->mixed + at_mixed,
                           .dmixed = n->slopes.mixed + at_mixed,
                           .dq = n->slopes.qkv + at_q,
                           .dk = n->slopes.qkv + at_k,
                           .dv = n->slopes.qkv + at_v};
}

void pass_attention(const Pass *p, int thread, int threads, bool backward) {
    int heads = p->n->shape.kv_heads;
    for (int i = thread; i < p->documents * heads; i += threads) {
        AttentionTask t = attention_task(p, &p->n->documents[i / heads], i % heads);
        if (backward) attention_backward(&t, p->n->kernels, p->n->scratch[thread]);
        else attention_forward(&t, p->n->kernels, p->n->scratch[thread]);
    }
}

// What attention gives, and the MLP, each added to the stream.
static void after_attention(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    const Shape *s = &n->shape;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    LayerTrace *t = &n->layers[p->layer];
    Linear o = pass_linear(p, thread, shape_q_width(s), s->width);
    Linear gate_up = pass_linear(p, thread, s->width, 2 * s->mlp_width);
    Linear down = pass_linear(p, thread, s->mlp_width, s->width);
    float *above = pass_above(n, p->layer);
    int from, to, mlp = s->mlp_width;
    pass_share(p, thread, threads, &from, &to);
    size_t at = (size_t)from * (size_t)s->width,
           bytes = (size_t)(to - from) * (size_t)s->width * sizeof(float);
    memcpy(t->middle + at, t->in + at, bytes);
    linear_forward(&o, t->mixed, n->weights + plan->o, t->middle, from, to, true);
    norm_rows(n, t->middle, plan->mlp_norm, t->middle_normed, t->middle_inverse, from, to);
    linear_forward(&gate_up, t->middle_normed, n->weights + plan->gate_up, t->gate_up, from, to, false);
    for (int r = from; r < to; r++) {
        const float *gate = pass_row(t->gate_up, r, 2 * mlp);
        n->kernels->swiglu_forward(gate, gate + mlp, mlp, pass_row(t->active, r, mlp));
    }
    memcpy(above + at, t->middle + at, bytes);
    linear_forward(&down, t->active, n->weights + plan->down, above, from, to, true);
}

static void last_norm(void *argument, int thread, int threads) {
    const Pass *p = argument;
    int from, to;
    pass_share(p, thread, threads, &from, &to);
    norm_rows(p->n, p->n->out, p->n->parameters.final_norm, p->n->out_normed, p->n->out_inverse, from, to);
}

static int find_documents(const Batch *b, DocumentRows *out) {
    int count = 0;
    for (int r = 0; r < b->rows; r++) {
        if (b->start[r] == r) out[count++].first = r;
        out[count - 1].count = r + 1 - out[count - 1].first;
    }
    return count;
}

void pass_forward(Pass *p) {
    Pool *pool = p->n->pool;
    p->documents = find_documents(p->batch, p->n->documents);
    pool_run(pool, embedding_forward, p);
    for (p->layer = 0; p->layer < p->n->shape.layers; p->layer++) {
        pool_run(pool, before_attention, p);
        pool_run(pool, attention, p);
        pool_run(pool, after_attention, p);
    }
    pool_run(pool, last_norm, p);
}

static void head_forward(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    int from, to, vocab = n->shape.vocab, width = n->shape.width;
    Linear head = pass_linear(p, thread, width, vocab);
    head.y_stride = n->logit_stride;
    pool_share(p->rows, n->kernels->row_unit, thread, threads, &from, &to);
    linear_forward(&head, pass_row(n->out_normed, p->first, width), n->weights + n->parameters.embedding,
                   n->logits, from, to, false);
    for (int r = from; r < to; r++) {
        int target = p->batch->targets[p->first + r];
        float *logits = n->logits + (size_t)r * n->logit_stride;
        n->losses[p->first + r] = target < 0 ? 0 : n->kernels->cross_entropy_forward(logits, target, vocab);
    }
}

void pass_head(Pass *p) { pool_run(p->n->pool, head_forward, p); }

static double sum_losses(const Network *n, int rows) {
    double sum = 0;
    for (int r = 0; r < rows; r++) sum += (double)n->losses[r];
    return sum;
}

// The head runs chunk by chunk; in training its backward pass follows each chunk, so that logits are held
// once.
static double run(Network *n, const Batch *batch, float scale, bool learn) {
    Pass p = {.n = n, .batch = batch, .scale = scale};
    pass_forward(&p);
    for (p.first = 0; p.first < batch->rows; p.first += HEAD_ROWS) {
        p.rows = batch->rows - p.first < HEAD_ROWS ? batch->rows - p.first : HEAD_ROWS;
        pass_head(&p);
        if (learn) pass_head_backward(&p);
    }
    if (learn) pass_backward(&p);
    return sum_losses(n, batch->rows);
}

double network_loss(Network *n, const Batch *batch) { return run(n, batch, 0, false); }

double network_learn(Network *n, const Batch *batch, float scale) { return run(n, batch, scale, true); }
