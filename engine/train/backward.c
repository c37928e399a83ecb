// The backward pass of a batch: forward.c in reverse. In each layer a thread first takes its rows' gradients
// from above to below, and then computes the weights' gradients for the outputs that it owns.
#include "engine/train/linear.h"

// --- norms -----------------------------------------------------------------------------------------------

// A norm's input, and the places of its gradients.
typedef struct NormSlope {
    const float *in, *inverse; // (rows, width), (rows)
    size_t weight;
    const float *past; // (rows, width): the gradient that bypasses the norm
    float *below;      // (rows, width)
    float *parts;      // (blocks, width)
} NormSlope;

// Takes normed_slope through the norm, for rows [from, to); `from` is a block's first row.
static void norm_backward(const Pass *p, const NormSlope *s, int from, int to) {
    const Network *n = p->n;
    size_t width = (size_t)n->shape.width;
    for (size_t r = (size_t)from; r < (size_t)to; r++) {
        float *part = s->parts + r / NORM_BLOCK * width;
        if (r % NORM_BLOCK == 0) memset(part, 0, width * sizeof *part);
        n->kernels->rmsnorm_backward(pass_here(p)->normed_slope + r * width, s->in + r * width,
                                     n->weights + s->weight, s->inverse[r], (int)width, s->past + r * width,
                                     s->below + r * width, part);
    }
}

// Each block's numbers for this weight are `count`, the next block's begin `stride` further.
static void add_parts(const Pass *p, const float *parts, size_t stride, size_t count, size_t weight) {
    for (int first = 0; first < p->batch->rows; first += NORM_BLOCK, parts += stride)
        p->n->kernels->add(p->n->gradients + weight, parts, count);
}

void pass_add_parts(const Pass *p, const float *parts, size_t weight) {
    size_t width = (size_t)p->n->shape.width;
    add_parts(p, parts, width, width, weight);
}

void pass_add_head_norm(const Pass *p, int which, size_t weight) {
    size_t size = (size_t)p->n->shape.head_dim;
    add_parts(p, p->n->slopes.head_norms + (size_t)which * size, 3 * size, size, weight);
}

static void last_norm(const Pass *p, UNUSED int thread, int from, int to) {
    Network *n = p->n;
    const Forward *f = pass_here(p);
    NormSlope s = {.in = f->out,
                   .inverse = f->out_inverse,
                   .weight = n->parameters.at[W_FINAL_NORM],
                   .past = n->slopes.stream,
                   .below = n->slopes.stream,
                   .parts = n->slopes.mlp_norm};
    size_t first = (size_t)from * (size_t)n->shape.width,
           count = (size_t)(to - from) * (size_t)n->shape.width;
    bool carried = p->carried && !network_is_parallel(n);
    if (carried && n->recycles_normed)
        n->kernels->add(f->normed_slope + first, n->slopes.stream + first, count);
    if (!carried || n->recycles_normed) memset(n->slopes.stream + first, 0, count * sizeof(float));
    if (s.weight == NO_PARAMETER) n->kernels->add(n->slopes.stream + first, f->normed_slope + first, count);
    else norm_backward(p, &s, from, to);
}

// --- a layer ---------------------------------------------------------------------------------------------

// Takes slopes.stream through the MLP; slopes.middle is the sum of that and slopes.stream itself.
static void mlp_backward(const Pass *p, int thread, int from, int to) {
    Network *n = p->n;
    const Shape *s = &n->shape;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    const LayerTrace *t = pass_trace(p);
    const Slopes *d = &n->slopes;
    Linear gate_up = pass_linear(p, thread, MATRIX_GATE_UP), down = pass_linear(p, thread, MATRIX_DOWN);
    NormSlope norm = {t->middle, t->middle_inverse, plan->at[W_MLP_NORM], d->stream, d->middle, d->mlp_norm};
    int mlp = s->mlp_width;
    if (!layer_has(plan, W_DOWN)) pass_copy(n, d->active, d->stream, from, to);
    else linear_backward_input(&down, d->stream, n->weights + plan->at[W_DOWN], d->active, from, to);
    for (int r = from; r < to; r++) {
        const float *gate = pass_row(t->gate_up, r, 2 * mlp);
        float *dgate = pass_row(d->gate_up, r, 2 * mlp);
        n->kernels->swiglu_backward(pass_row(d->active, r, mlp), gate, gate + mlp, mlp, dgate, dgate + mlp);
    }
    float *slope = pass_here(p)->normed_slope;
    linear_backward_input(&gate_up, d->gate_up, n->weights + plan->at[W_GATE], slope, from, to);
    if (layer_has(plan, W_MLP_NORM)) {
        norm_backward(p, &norm, from, to);
        return;
    }
    pass_copy(n, d->middle, d->stream, from, to);
    n->kernels->add(pass_row(d->middle, from, s->width), pass_row(slope, from, s->width),
                    (size_t)(to - from) * (size_t)s->width);
}

// From the stream above to the output of attention.
static void mlp_rows(const Pass *p, int thread, int from, int to) {
    Network *n = p->n;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    const Slopes *d = &n->slopes;
    Linear o = pass_linear(p, thread, MATRIX_O);
    if (!layer_has(plan, W_GATE)) pass_copy(n, d->middle, d->stream, from, to);
    else mlp_backward(p, thread, from, to);
    if (layer_has(plan, W_O))
        linear_backward_input(&o, d->middle, n->weights + plan->at[W_O], d->mixed, from, to);
}

void pass_weight(const Pass *p, const Linear *l, int thread, int threads, const float *dy, const float *x,
                 size_t weight) {
    int from, to;
    if (weight == NO_PARAMETER) return;
    pool_share(l->outputs, p->n->kernels->row_unit, thread, threads, &from, &to);
    linear_backward_weight(l, dy, x, p->batch->rows, p->n->gradients + weight, from, to);
}

// A thread owns outputs and takes all rows in order.
void pass_bias(const Pass *p, int thread, int threads, const float *dy, int stride, int width, size_t bias) {
    int from, to;
    pool_share(width, 16, thread, threads, &from, &to);
    for (int r = 0; r < p->batch->rows; r++)
        p->n->kernels->add(p->n->gradients + bias + from, dy + (size_t)r * (size_t)stride + from,
                           (size_t)(to - from));
}

static void mlp_weights(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    const LayerTrace *t = pass_trace(p);
    const Slopes *d = &n->slopes;
    Linear down = pass_linear(p, thread, MATRIX_DOWN), gate_up = pass_linear(p, thread, MATRIX_GATE_UP),
           o = pass_linear(p, thread, MATRIX_O);
    pass_weight(p, &down, thread, threads, d->stream, t->active, plan->at[W_DOWN]);
    pass_weight(p, &gate_up, thread, threads, d->gate_up, t->middle_normed, plan->at[W_GATE]);
    pass_weight(p, &o, thread, threads, d->middle, t->mixed, plan->at[W_O]);
    int mlp = n->shape.mlp_width;
    if (layer_has(plan, W_GATE_BIAS))
        pass_bias(p, thread, threads, d->gate_up, 2 * mlp, mlp, plan->at[W_GATE_BIAS]);
    if (thread == 0 && layer_has(plan, W_MLP_NORM)) pass_add_parts(p, d->mlp_norm, plan->at[W_MLP_NORM]);
}

// From normed heads of q and k to those before their norms, in place. Nothing bypasses such a norm.
void pass_heads_backward(const Pass *p, const LayerTrace *t, float *slopes, int first, int from, int to) {
    static const float none[2 * ROPE_MAX_PAIRS];
    const Network *n = p->n;
    const Shape *s = &n->shape;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    int size = s->head_dim, heads = s->heads + s->kv_heads, part = first ? 2 * size : 0;
    for (int r = from; r < to; r++) {
        float *row = pass_row(slopes, r, pass_qkv_width(s));
        float *parts = pass_row(n->slopes.head_norms, r / NORM_BLOCK, 3 * size) + part;
        const float *in = pass_row(t->heads, r, pass_heads_width(s));
        if (r % NORM_BLOCK == 0) memset(parts, 0, (size_t)(first ? size : 2 * size) * sizeof *parts);
        for (int h = first; h < heads; h++) {
            bool key = h >= s->heads;
            n->kernels->rmsnorm_backward(
                row + h * size, in + h * size, n->weights + plan->at[key ? W_K_NORM : W_Q_NORM],
                in[heads * size + h], size, none, row + h * size, parts + (key && !first ? size : 0));
        }
    }
}

// From queries, keys and values to the stream below.
static void qkv_rows(const Pass *p, int thread, int from, int to) {
    Network *n = p->n;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    const LayerTrace *t = pass_trace(p);
    const Slopes *d = &n->slopes;
    Linear qkv = pass_linear(p, thread, MATRIX_QKV);
    NormSlope norm = {t->in, t->inverse, plan->at[W_ATTENTION_NORM], d->middle, d->stream, d->attention_norm};
    float *slope = t->qkv_slope, *normed_slope = pass_here(p)->normed_slope;
    if (network_is_block(n)) block_below(p, thread, from, to);
    pass_turn(p, slope, 0, from, to);
    if (layer_has(plan, W_Q_NORM)) pass_heads_backward(p, t, slope, 0, from, to);
    linear_backward_input(&qkv, slope, n->weights + plan->at[W_Q], normed_slope, from, to);
    if (network_is_eagle(n) && !p->layer) eagle_below(p, thread, from, to);
    else norm_backward(p, &norm, from, to);
}

static void qkv_weights(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    const LayerPlan *plan = &n->parameters.layers[p->layer];
    Linear qkv = pass_linear(p, thread, MATRIX_QKV);
    const LayerTrace *t = pass_trace(p);
    pass_weight(p, &qkv, thread, threads, t->qkv_slope, t->normed, plan->at[W_Q]);
    if (thread == 0 && layer_has(plan, W_Q_NORM)) {
        pass_add_head_norm(p, 0, plan->at[W_Q_NORM]);
        pass_add_head_norm(p, 1, plan->at[W_K_NORM]);
    }
    if (network_is_eagle(n) && !p->layer) eagle_weights(p, thread, threads);
    else if (thread == 0) pass_add_parts(p, n->slopes.attention_norm, plan->at[W_ATTENTION_NORM]);
}

// A layer without attention passes the middle's gradient on.
static void pass_middle(const Pass *p, UNUSED int thread, int from, int to) {
    pass_copy(p->n, p->n->slopes.stream, p->n->slopes.middle, from, to);
}

// A token may be in any number of rows, so a thread owns columns and takes all rows in order.
static void embedding_backward(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    int from, to, width = n->shape.width;
    float *table = n->gradients + n->parameters.at[W_EMBEDDING];
    pool_share(width, 16, thread, threads, &from, &to);
    for (int r = 0; r < p->batch->rows; r++)
        n->kernels->add(pass_row(table, p->batch->tokens[r], width) + from,
                        pass_row(n->slopes.stream, r, width) + from, (size_t)(to - from));
}

void pass_backward(Pass *p) {
    Network *n = p->n;
    p->backward = true;
    pass_rows(p, last_norm);
    if (n->parameters.at[W_FINAL_NORM] != NO_PARAMETER)
        pass_add_parts(p, n->slopes.mlp_norm, n->parameters.at[W_FINAL_NORM]);
    for (p->layer = n->shape.layers - 1; p->layer >= 0; p->layer--) {
        pool_run(n->pool, pass_pack, p);
        pass_rows(p, mlp_rows);
        pool_run(n->pool, mlp_weights, p);
        if (!layer_has(&n->parameters.layers[p->layer], W_Q)) {
            pass_rows(p, pass_middle);
            continue;
        }
        pool_run(n->pool, pass_attention, p);
        pass_rows(p, qkv_rows);
        pool_run(n->pool, qkv_weights, p);
        if (network_is_block(n)) pool_run(n->pool, block_weights, p);
    }
    if (n->parameters.at[W_EMBEDDING] != NO_PARAMETER) pool_run(n->pool, embedding_backward, p);
}
