// Drafts of blocks in training (engine/core/block.h). Every row of a text is two rows of the draft: one of
// the context, which has the target's states and gives keys and values, and one of a block. Blocks of random
// beginnings cover the text; a block's first row reads its token, the others read masks:
//
//      row      0    1    2    3    4    5    6
//      reads    a    m    d    m    m    g    m          a .. g: the text
//      learns   b    c    e    f    g    h    i          the target's distribution behind the row's place
//      sees     contexts 0 .. the block's beginning, and the whole block
//
// So a text teaches at all of its places in one forward, and in each epoch at others. A context row c = norm
// fc [states] goes through the keys and values of every layer. A row's loss weighs less the later its slot.
//
// The Markov head adds F E[token] to a row's logits, by the text's token in front of the guess, E and F of
// W_MARKOV_FROM and W_MARKOV_TO. The confidence's loss is the cross-entropy with the share of the target's
// distribution that the draft's covers, the chance that a drawn guess is kept; it moves its own weights only.
#include "engine/train/linear.h"

#include <math.h>

// --- the context -----------------------------------------------------------------------------------------

// Keys and values: the last outputs of qkv. Its panels are those of all of its outputs, so each call packs.
static Linear keys_linear(const Pass *p, int thread) {
    Linear l = pass_linear(p, thread, MATRIX_QKV);
    l.outputs = 2 * shape_kv_width(&p->n->shape);
    l.panels = NULL;
    return l;
}

static size_t keys_at(const Pass *p) { return p->n->parameters.layers[p->layer].at[W_K]; }

void block_context(const Pass *p, int thread, int from, int to) {
    Network *n = p->n;
    const Shape *s = &n->shape;
    const size_t *at = n->parameters.at;
    BlockTrace *c = &n->block;
    LayerTrace *t = &c->layers[p->layer];
    Linear join = pass_linear(p, thread, MATRIX_JOIN), keys = keys_linear(p, thread);
    if (!p->layer) {
        linear_forward(&join, p->batch->states, n->weights + at[W_FC], c->fused, from, to, false);
        pass_norm(n, c->fused, at[W_STATE_NORM], c->normed, c->inverse, from, to);
    }
    linear_forward(&keys, c->normed, n->weights + keys_at(p), t->qkv + shape_q_width(s), from, to, false);
    pass_norm_heads(p, t, s->heads, from, to);
    pass_turn(p, t->qkv, s->heads, from, to);
}

void block_below(const Pass *p, int thread, int from, int to) {
    Network *n = p->n;
    const Shape *s = &n->shape;
    BlockTrace *c = &n->block;
    Linear keys = keys_linear(p, thread);
    float *below = pass_here(p)->normed_slope; // scratch
    pass_turn(p, c->qkv_slope, s->heads, from, to);
    pass_heads_backward(p, &c->layers[p->layer], c->qkv_slope, s->heads, from, to);
    linear_backward_input(&keys, c->qkv_slope + shape_q_width(s), n->weights + keys_at(p), below, from, to);
    if (p->layer + 1 == s->layers) pass_copy(n, c->slope, below, from, to);
    else
        n->kernels->add(pass_row(c->slope, from, s->width), pass_row(below, from, s->width),
                        (size_t)(to - from) * (size_t)s->width);
    for (int r = from; r < to && !p->layer; r++) {
        float *row = pass_row(c->slope, r, s->width), *past = pass_row(below, r, s->width);
        float *parts = pass_row(n->slopes.token_norm, r / NORM_BLOCK, s->width);
        if (r % NORM_BLOCK == 0) memset(parts, 0, (size_t)s->width * sizeof *parts);
        memset(past, 0, (size_t)s->width * sizeof *past);
        n->kernels->rmsnorm_backward(row, pass_row(c->fused, r, s->width),
                                     n->weights + n->parameters.at[W_STATE_NORM], c->inverse[r], s->width,
                                     past, row, parts);
    }
}

void block_weights(void *argument, int thread, int threads) {
    const Pass *p = argument;
    const Network *n = p->n;
    const Shape *s = &n->shape;
    const BlockTrace *c = &n->block;
    Linear keys = keys_linear(p, thread), join = pass_linear(p, thread, MATRIX_JOIN);
    pass_weight(p, &keys, thread, threads, c->qkv_slope + shape_q_width(s), c->normed, keys_at(p));
    if (!thread) pass_add_head_norm(p, 2, n->parameters.layers[p->layer].at[W_K_NORM]);
    if (p->layer) return;
    pass_weight(p, &join, thread, threads, c->slope, p->batch->states, n->parameters.at[W_FC]);
    if (!thread) pass_add_parts(p, n->slopes.token_norm, n->parameters.at[W_STATE_NORM]);
}

// --- the heads -------------------------------------------------------------------------------------------

static Linear markov_linear(const Pass *p, int thread) {
    const Network *n = p->n;
    return (Linear){.kernels = n->kernels,
                    .scratch = n->scratch[thread],
                    .inputs = n->shape.block.rank,
                    .outputs = n->shape.real_vocab,
                    .y_stride = n->logit_stride};
}

// Where row r of the chunk has its row of E.
static size_t markov_at(const Pass *p, int r) {
    return p->n->parameters.at[W_MARKOV_FROM] +
           (size_t)p->batch->text[p->first + r] * (size_t)p->n->shape.block.rank;
}

void block_bias(const Pass *p, int thread, int from, int to) {
    Network *n = p->n;
    int rank = n->shape.block.rank;
    Linear l = markov_linear(p, thread);
    for (int r = from; r < to; r++)
        memcpy(pass_row(n->block.front, r, rank), n->weights + markov_at(p, r), (size_t)rank * sizeof(float));
    linear_forward(&l, n->block.front, n->weights + n->parameters.at[W_MARKOV_TO], n->logits, from, to, true);
}

void block_bias_backward(const Pass *p, int thread, int from, int to) {
    Network *n = p->n;
    Linear l = markov_linear(p, thread);
    linear_backward_input(&l, n->logits, n->weights + n->parameters.at[W_MARKOV_TO], n->block.front_slope,
                          from, to);
}

float block_doubt(const Pass *p, int r, const float *chances, const float *wanted) {
    const Network *n = p->n;
    const float *y = pass_row(n->out_normed, p->first + r, n->shape.width),
                *w = n->weights + n->parameters.at[W_CONFIDENCE];
    const float *front = pass_row(n->block.front, r, n->shape.block.rank);
    float share = 0, x = n->weights[n->parameters.at[W_CONFIDENCE_BIAS]];
    for (int i = 0; i < n->shape.real_vocab; i++) share += fminf(chances[i], wanted[i]);
    for (int i = 0; i < n->shape.width; i++) x += *w++ * y[i];
    for (int i = 0; i < n->shape.block.rank; i++) x += *w++ * front[i];
    n->block.doubts[r] = 1 / (1 + expf(-x)) - share;
    return fmaxf(x, 0) + log1pf(expf(-fabsf(x))) - share * x;
}

// A token may be in front of any number of rows, so a thread owns columns of E and takes all rows in order.
void block_head_weights(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    const size_t *at = n->parameters.at;
    int from, to, rank = n->shape.block.rank, width = n->shape.width;
    Linear l = markov_linear(p, thread);
    pool_share(l.outputs, n->kernels->row_unit, thread, threads, &from, &to);
    linear_backward_weight(&l, n->logits, n->block.front, p->rows, n->gradients + at[W_MARKOV_TO], from, to);
    pool_share(rank, 16, thread, threads, &from, &to);
    for (int r = 0; r < p->rows; r++)
        n->kernels->add(n->gradients + markov_at(p, r) + from, pass_row(n->block.front_slope, r, rank) + from,
                        (size_t)(to - from));
    for (int r = 0; r < p->rows && !thread && at[W_CONFIDENCE] != NO_PARAMETER; r++) {
        float by = n->block.doubts[r] * pass_scale(p, r), *w = n->gradients + at[W_CONFIDENCE];
        if (p->batch->targets[p->first + r] < 0) continue;
        pass_add_times(by, pass_row(n->out_normed, p->first + r, width), (size_t)width, w);
        pass_add_times(by, pass_row(n->block.front, r, rank), (size_t)rank, w + width);
        n->gradients[at[W_CONFIDENCE_BIAS]] += by;
    }
}
