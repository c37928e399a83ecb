// EAGLE's draft heads in training: one layer, whose rows join the embedding e of the token that came next
// with the target's state f (EAGLE-1) or with several of its states (EAGLE-3):
//
//      EAGLE-1   x = fc [e; f] + b                  EAGLE-3   x = fc [f1; f2; f3]
//                h = x + attention(x)                         h = x + attention([norm e; norm x])
//                out = h + mlp(norm h)                        out = h + mlp(norm h)
//                the target's head on out                     a head of its own on norm out
//
//      MTP       x = fc [norm f; norm e], then a plain layer; the target's head on norm out
//
// In use only a drafted chain's first row has states of the target: the later ones read the head's own output
// in their place: f in EAGLE-1 and, out or norm out, in MTP, x in EAGLE-3. Training shows it that. Forward
// n takes row r as the n-th after r of a chain that left the target's states at r: it has position r + n,
// token r + n + 1 and forward n - 1's output of row r, and attends to the first forward's rows up to r and
// to its own rows of the forwards after that:
//
//      forward 0    *  *  *  .  .         the rows that row 2 of forward 2, position 4, sees
//              1    .  .  *  .  .
//              2    .  .  *  .  .
//
// P-EAGLE is EAGLE-3, maybe with plain layers above the first, whose later forwards read no output: all of
// their rows are masks, of one token's embedding and of states that are learnt, at the places where use has
// them. Its authors leave out more of the rows the later the forward, for memory; here all of them learn.
//
// Gradients go through the outputs of all forwards. EAGLE-1's loss is the distance of out from the target's
// next state (smooth L1, mean over the width), and a tenth of the cross-entropy; the others' is the
// cross-entropy alone. A forward weighs FORWARD_DECAY of the one before it (head.c).
#include "engine/train/linear.h"

#include <assert.h>
#include <math.h>

static bool is_eagle_1(const Network *n) { return n->shape.input == INPUT_FUSED; }
static bool is_mtp(const Network *n) { return n->shape.input == INPUT_MTP; }

static bool is_mask(const Pass *p) { return p->forward && network_is_parallel(p->n); }

// The embedding of row r's token. Rows whose chain has left the batch learn nothing, whatever they read.
static const float *embedding_of(const Pass *p, int r) {
    int last = p->batch->rows - 1, at = r + p->forward + 1;
    int token = is_mask(p) ? p->n->shape.mask_token : p->batch->tokens[at < last ? at : last];
    return p->n->target_embedding + (size_t)token * (size_t)p->n->shape.width;
}

// The head's own output in the forward before.
static float *output_before(const Pass *p) { return p->n->forwards[p->forward - 1].out; }

// --- forward ---------------------------------------------------------------------------------------------

static void join_rows(const Pass *p, int from, int to) {
    const Network *n = p->n;
    size_t width = (size_t)n->shape.width;
    const float *states = p->forward ? output_before(p) : p->batch->states;
    for (size_t r = (size_t)from; r < (size_t)to; r++) {
        float *row = pass_here(p)->join + r * 2 * width;
        memcpy(row, embedding_of(p, (int)r), width * sizeof *row);
        memcpy(row + width, states + r * width, width * sizeof *row);
    }
}

static void input_1(const Pass *p, const Linear *join, int from, int to) {
    const Network *n = p->n;
    LayerTrace *t = pass_trace(p);
    join_rows(p, from, to);
    linear_forward(join, pass_here(p)->join, n->weights + n->parameters.at[W_FC], t->in, from, to, false);
    for (int r = from; r < to; r++)
        n->kernels->add(pass_row(t->in, r, n->shape.width), n->weights + n->parameters.at[W_FC_BIAS],
                        (size_t)n->shape.width);
    pass_copy(n, t->normed, t->in, from, to);
}

// fc [mask's states], in every row.
static void mask_rows(const Pass *p, const Linear *join, int from, int to) {
    const Network *n = p->n;
    int width = n->shape.width;
    float *first = pass_row(pass_trace(p)->in, from, width);
    if (from < to)
        linear_forward(join, n->weights + n->parameters.mask, n->weights + n->parameters.at[W_FC], first, 0,
                       1, false);
    for (int r = from + 1; r < to; r++)
        memcpy(pass_row(pass_trace(p)->in, r, width), first, (size_t)width * sizeof *first);
}

static void input_3(const Pass *p, const Linear *join, int from, int to) {
    const Network *n = p->n;
    LayerTrace *t = pass_trace(p);
    int width = n->shape.width;
    float epsilon = (float)n->shape.norm_epsilon;
    if (is_mask(p)) mask_rows(p, join, from, to);
    else if (p->forward) pass_copy(n, t->in, output_before(p), from, to);
    else linear_forward(join, p->batch->states, n->weights + n->parameters.at[W_FC], t->in, from, to, false);
    for (int r = from; r < to; r++) {
        float *row = pass_row(t->normed, r, 2 * width);
        pass_here(p)->embedding_inverse[r] = n->kernels->rmsnorm_forward(
            embedding_of(p, r), n->weights + n->parameters.at[W_TOKEN_NORM], epsilon, width, row);
        t->inverse[r] = n->kernels->rmsnorm_forward(pass_row(t->in, r, width),
                                                    n->weights + n->parameters.layers->at[W_ATTENTION_NORM],
                                                    epsilon, width, row + width);
    }
}

static void input_mtp(const Pass *p, const Linear *join, int from, int to) {
    const Network *n = p->n;
    const size_t *at = n->parameters.at;
    const Forward *f = pass_here(p);
    LayerTrace *t = pass_trace(p);
    int width = n->shape.width;
    float epsilon = (float)n->shape.norm_epsilon;
    pass_copy(n, f->read,
              !p->forward          ? p->batch->states
              : n->recycles_normed ? n->out_normed
                                   : output_before(p),
              from, to);
    for (int r = from; r < to; r++) {
        float *row = pass_row(f->join, r, 2 * width);
        f->read_inverse[r] = n->kernels->rmsnorm_forward(pass_row(f->read, r, width),
                                                         n->weights + at[W_STATE_NORM], epsilon, width, row);
        f->embedding_inverse[r] = n->kernels->rmsnorm_forward(
            embedding_of(p, r), n->weights + at[W_TOKEN_NORM], epsilon, width, row + width);
    }
    linear_forward(join, f->join, n->weights + at[W_FC], t->in, from, to, false);
    for (int r = from; r < to; r++)
        t->inverse[r] = n->kernels->rmsnorm_forward(pass_row(t->in, r, width),
                                                    n->weights + n->parameters.layers->at[W_ATTENTION_NORM],
                                                    epsilon, width, pass_row(t->normed, r, width));
}

void eagle_input(const Pass *p, int thread, int from, int to) {
    Linear join = pass_linear(p, thread, MATRIX_JOIN);
    if (is_eagle_1(p->n)) input_1(p, &join, from, to);
    else if (is_mtp(p->n)) input_mtp(p, &join, from, to);
    else input_3(p, &join, from, to);
}

// --- backward --------------------------------------------------------------------------------------------

// Adds the slope of normed to that of the stream (slopes.middle), and takes both to the output before.
static void below_1(const Pass *p, int thread, int from, int to) {
    const Network *n = p->n;
    const Slopes *d = &n->slopes;
    size_t width = (size_t)n->shape.width, first = (size_t)from * width;
    Linear join = pass_linear(p, thread, MATRIX_JOIN);
    n->kernels->add(d->middle + first, pass_here(p)->normed_slope + first, (size_t)(to - from) * width);
    if (!p->forward) return;
    linear_backward_input(&join, d->middle, n->weights + n->parameters.at[W_FC], d->join, from, to);
    for (size_t r = (size_t)from; r < (size_t)to; r++)
        memcpy(d->stream + r * width, d->join + (2 * r + 1) * width, width * sizeof *d->join);
}

// Leaves the slope of the layer's input in slopes.stream. The embedding is frozen: only its norm learns.
static void below_3(const Pass *p, int from, int to) {
    const Network *n = p->n;
    const Slopes *d = &n->slopes;
    const LayerTrace *t = pass_trace(p);
    int width = n->shape.width;
    for (int r = from; r < to; r++) {
        float *slope = pass_row(pass_here(p)->normed_slope, r, 2 * width);
        float *parts = pass_row(d->token_norm, r / NORM_BLOCK, width);
        float *hidden_parts = pass_row(d->attention_norm, r / NORM_BLOCK, width);
        if (r % NORM_BLOCK == 0) memset(parts, 0, (size_t)width * sizeof *parts);
        if (r % NORM_BLOCK == 0) memset(hidden_parts, 0, (size_t)width * sizeof *parts);
        n->kernels->rmsnorm_backward(slope, embedding_of(p, r), n->weights + n->parameters.at[W_TOKEN_NORM],
                                     pass_here(p)->embedding_inverse[r], width, slope,
                                     pass_row(d->join, r, 2 * width), parts);
        n->kernels->rmsnorm_backward(
            slope + width, pass_row(t->in, r, width), n->weights + n->parameters.layers->at[W_ATTENTION_NORM],
            t->inverse[r], width, pass_row(d->middle, r, width), pass_row(d->stream, r, width), hidden_parts);
    }
}

// Takes row r's slope through a norm; `below` may be the slope, or `past`.
static void norm_below(const Pass *p, int r, const float *slope, const float *in, size_t weight,
                       float inverse, const float *past, float *below, float *parts) {
    int width = p->n->shape.width;
    float *part = pass_row(parts, r / NORM_BLOCK, width);
    if (r % NORM_BLOCK == 0) memset(part, 0, (size_t)width * sizeof *part);
    p->n->kernels->rmsnorm_backward(slope, in, p->n->weights + weight, inverse, width, past, below, part);
}

// Leaves the slope of the layer's input in slopes.middle, and that of the state in slopes.stream.
static void below_mtp(const Pass *p, int thread, int from, int to) {
    const Network *n = p->n;
    const size_t *at = n->parameters.at;
    const Forward *f = pass_here(p);
    const LayerTrace *t = pass_trace(p);
    const Slopes *d = &n->slopes;
    int width = n->shape.width;
    Linear join = pass_linear(p, thread, MATRIX_JOIN);
    for (int r = from; r < to; r++) {
        float *middle = pass_row(d->middle, r, width);
        norm_below(p, r, pass_row(f->normed_slope, r, width), pass_row(t->in, r, width),
                   n->parameters.layers->at[W_ATTENTION_NORM], t->inverse[r], middle, middle,
                   d->attention_norm);
    }
    linear_backward_input(&join, d->middle, n->weights + at[W_FC], d->join, from, to);
    for (int r = from; r < to; r++) {
        float *state = pass_row(d->join, r, 2 * width), *token = state + width,
              *below = pass_row(d->stream, r, width);
        memset(below, 0, (size_t)width * sizeof *below);
        norm_below(p, r, state, pass_row(f->read, r, width), at[W_STATE_NORM], f->read_inverse[r], below,
                   below, d->state_norm);
        norm_below(p, r, token, embedding_of(p, r), at[W_TOKEN_NORM], f->embedding_inverse[r], token, token,
                   d->token_norm);
    }
}

void eagle_below(const Pass *p, int thread, int from, int to) {
    if (is_eagle_1(p->n)) below_1(p, thread, from, to);
    else if (is_mtp(p->n)) below_mtp(p, thread, from, to);
    else below_3(p, from, to);
}

// A thread's share of the gradients of fc and of the states, from masks, by the sum of their slopes. The
// last forward begins the sum; the first, which has no masks, uses it. Outputs are shared as in pass_weight.
static void mask_weights(const Pass *p, int thread, int threads) {
    const Network *n = p->n;
    size_t given = (size_t)shape_given_width(&n->shape), fc = n->parameters.at[W_FC], at = n->parameters.mask;
    float *sums = n->slopes.mask;
    int from, to, width = n->shape.width;
    pool_share(width, n->kernels->row_unit, thread, threads, &from, &to);
    if (p->forward && !p->carried) memset(sums + from, 0, (size_t)(to - from) * sizeof *sums);
    for (int r = 0; p->forward && r < p->batch->rows; r++)
        n->kernels->add(sums + from, pass_row(n->slopes.stream, r, width) + from, (size_t)(to - from));
    if (p->forward || !p->carried) return;
    for (int i = from; i < to; i++)
        pass_add_times(sums[i], n->weights + at, given, n->gradients + fc + (size_t)i * given);
    pool_share((int)given, n->kernels->row_unit, thread, threads, &from, &to);
    for (int i = 0; i < width; i++)
        pass_add_times(sums[i], n->weights + fc + (size_t)i * given + from, (size_t)(to - from),
                       n->gradients + at + from);
}

void eagle_weights(const Pass *p, int thread, int threads) {
    const Network *n = p->n;
    const size_t *at = n->parameters.at;
    const Slopes *d = &n->slopes;
    int width = n->shape.width;
    Linear join = pass_linear(p, thread, MATRIX_JOIN);
    if (is_eagle_1(n)) {
        pass_weight(p, &join, thread, threads, d->middle, pass_here(p)->join, at[W_FC]);
        pass_bias(p, thread, threads, d->middle, width, width, at[W_FC_BIAS]);
        return;
    }
    if (is_mtp(n)) pass_weight(p, &join, thread, threads, d->middle, pass_here(p)->join, at[W_FC]);
    else if (!p->forward) pass_weight(p, &join, thread, threads, d->stream, p->batch->states, at[W_FC]);
    if (network_is_parallel(n)) mask_weights(p, thread, threads);
    if (thread) return;
    pass_add_parts(p, d->token_norm, at[W_TOKEN_NORM]);
    if (is_mtp(n)) pass_add_parts(p, d->state_norm, at[W_STATE_NORM]);
    pass_add_parts(p, d->attention_norm, n->parameters.layers->at[W_ATTENTION_NORM]);
}

// --- features --------------------------------------------------------------------------------------------

// Where row r's output is, and the state that it should be.
static const float *output_of(const Pass *p, int r) {
    return pass_row(pass_here(p)->out, r, p->n->shape.width);
}

static const float *wanted_of(const Pass *p, int r) {
    assert(p->n->wanted_width == p->n->shape.width);
    return p->batch->wanted + (size_t)(r + p->forward) * (size_t)p->n->shape.width;
}

float eagle_distance(const Pass *p, int r) {
    const float *out = output_of(p, r), *wanted = wanted_of(p, r);
    int width = p->n->shape.width;
    float sum = 0;
    for (int i = 0; i < width; i++) {
        float apart = fabsf(out[i] - wanted[i]);
        sum += apart < 1 ? 0.5f * apart * apart : apart - 0.5f;
    }
    return sum / (float)width;
}

void eagle_distance_backward(const Pass *p, int r, float scale) {
    const float *out = output_of(p, r), *wanted = wanted_of(p, r);
    int width = p->n->shape.width;
    float *slope = pass_row(pass_here(p)->normed_slope, r, width);
    for (int i = 0; i < width; i++)
        slope[i] += scale / (float)width * fminf(1, fmaxf(-1, out[i] - wanted[i]));
}
