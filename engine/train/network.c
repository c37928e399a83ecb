// The memory of a network: all of it is allocated here, at open. Its size follows from the user's choice of
// shape and rows, so a lack of memory is an Error.
#include "engine/train/network.h"

#include "engine/train/linear.h"

#include <assert.h>
#include <math.h>

// Allocates (count, width) zeroed floats into *p.
static bool take(Network *n, float **p, size_t count, size_t width) {
    size_t all;
    return size_mul(count, width, &all) && mem_take(&n->blocks, p, all, sizeof **p);
}

static bool take_trace(Network *n, LayerTrace *t) {
    const Shape *s = &n->shape;
    size_t rows = (size_t)n->options.rows, width = (size_t)s->width, mlp = (size_t)s->mlp_width;
    return take(n, &t->in, rows, width) &&
           take(n, &t->normed, rows, (size_t)shape_attention_width(&n->shape, 0)) &&
           take(n, &t->inverse, rows, 1) && take(n, &t->qkv, rows, (size_t)pass_qkv_width(s)) &&
           (!s->qk_norm || take(n, &t->heads, rows, (size_t)pass_heads_width(s))) &&
           take(n, &t->mixed, rows, (size_t)shape_q_width(s)) && take(n, &t->middle, rows, width) &&
           take(n, &t->middle_normed, rows, width) && take(n, &t->middle_inverse, rows, 1) &&
           take(n, &t->gate_up, rows, 2 * mlp) && take(n, &t->active, rows, mlp);
}

static bool take_slopes(Network *n) {
    const Shape *s = &n->shape;
    Slopes *d = &n->slopes;
    size_t rows = (size_t)n->options.rows, width = (size_t)s->width, mlp = (size_t)s->mlp_width;
    size_t blocks = (rows + NORM_BLOCK - 1) / NORM_BLOCK;
    return take(n, &d->stream, rows, width) && take(n, &d->middle, rows, width) &&
           take(n, &d->mixed, rows, (size_t)shape_q_width(s)) && take(n, &d->gate_up, rows, 2 * mlp) &&
           take(n, &d->active, rows, mlp) && take(n, &d->attention_norm, blocks, width) &&
           take(n, &d->mlp_norm, blocks, width) &&
           (!s->qk_norm || take(n, &d->head_norms, blocks, 3 * (size_t)s->head_dim)) &&
           (!network_is_eagle(n) || take(n, &d->join, rows, 2 * width)) &&
           (!network_is_parallel(n) || take(n, &d->mask, 1, width)) &&
           (!shape_reads_both(s) || take(n, &d->token_norm, blocks, width)) &&
           (s->input != INPUT_MTP || take(n, &d->state_norm, blocks, width));
}

static bool take_forward(Network *n, Forward *f) {
    const Shape *s = &n->shape;
    size_t rows = (size_t)n->options.rows, width = (size_t)s->width;
    return take(n, &f->out, rows, width) && take(n, &f->out_inverse, rows, 1) &&
           take(n, &f->normed_slope, rows, (size_t)shape_attention_width(&n->shape, 0)) &&
           (s->input == INPUT_PAIRED || !network_is_eagle(n) || take(n, &f->join, rows, 2 * width)) &&
           (s->input < INPUT_MTP || take(n, &f->embedding_inverse, rows, 1)) &&
           (s->input != INPUT_MTP || (take(n, &f->read, rows, width) && take(n, &f->read_inverse, rows, 1)));
}

static bool take_block(Network *n) {
    const Shape *s = &n->shape;
    BlockTrace *b = &n->block;
    size_t rows = (size_t)n->options.rows, width = (size_t)s->width, rank = (size_t)s->block.rank,
           head = rows < HEAD_ROWS ? rows : HEAD_ROWS, qkv = (size_t)pass_qkv_width(s);
    if (!network_is_block(n)) return true;
    bool ok = take(n, &b->fused, rows, width) && take(n, &b->inverse, rows, 1) &&
              take(n, &b->normed, rows, width) && take(n, &b->slope, rows, width) &&
              take(n, &b->qkv_slope, rows, qkv) && take(n, &b->front, head, rank) &&
              take(n, &b->front_slope, head, rank) && take(n, &b->doubts, head, 1) &&
              mem_take(&n->blocks, &b->layers, (size_t)s->layers, sizeof *b->layers);
    for (int i = 0; ok && i < s->layers; i++)
        ok = take(n, &b->layers[i].qkv, rows, qkv) &&
             take(n, &b->layers[i].heads, rows, (size_t)pass_heads_width(s));
    return ok;
}

// A later forward's rows add to the slopes of what they saw in earlier ones: an EAGLE head keeps all slopes.
static bool take_traces(Network *n) {
    int traces = n->shape.layers * n->forward_count, slopes = network_is_eagle(n) ? traces : 1;
    size_t rows = (size_t)n->options.rows, qkv = (size_t)pass_qkv_width(&n->shape);
    bool ok = mem_take(&n->blocks, &n->layers, (size_t)traces, sizeof *n->layers) &&
              mem_take(&n->blocks, &n->forwards, (size_t)n->forward_count, sizeof *n->forwards);
    for (int i = 0; ok && i < traces; i++) ok = take_trace(n, &n->layers[i]);
    for (int i = 0; ok && i < slopes; i++) ok = take(n, &n->layers[i].qkv_slope, rows, qkv);
    for (int i = slopes; ok && i < traces; i++) n->layers[i].qkv_slope = n->layers->qkv_slope;
    for (int i = 0; ok && i < n->forward_count; i++) ok = take_forward(n, &n->forwards[i]);
    return ok;
}

// Positions that rows may have: a forward's are those of the one before it and one more.
static size_t positions_of(const Network *n) { return (size_t)(n->options.longest + n->forward_count - 1); }

static void fill_angles(Network *n) {
    double frequency[ROPE_MAX_PAIRS];
    size_t pairs = (size_t)n->shape.rope.pairs;
    rope_frequencies(&n->shape.rope, frequency);
    for (size_t at = 0; at < positions_of(n); at++)
        for (size_t i = 0; i < pairs; i++) {
            n->cosine[at * pairs + i] =
                (float)(cos((double)at * frequency[i]) * n->shape.rope.attention_factor);
            n->sine[at * pairs + i] =
                (float)(sin((double)at * frequency[i]) * n->shape.rope.attention_factor);
        }
}

static bool take_scratch(Network *n) {
    const Shape *s = &n->shape;
    size_t threads = (size_t)pool_threads(n->pool);
    size_t need = attention_scratch(n->kernels, n->options.longest, s->heads / s->kv_heads, s->head_dim);
    bool ok = mem_take(&n->blocks, &n->scratch, threads, sizeof *n->scratch);
    for (size_t i = 0; ok && i < threads; i++) ok = take(n, &n->scratch[i], need, 1);
    return ok;
}

static bool take_buffers(Network *n) {
    size_t rows = (size_t)n->options.rows, width = (size_t)n->shape.width,
           pairs = (size_t)n->shape.rope.pairs, head = rows < HEAD_ROWS ? rows : HEAD_ROWS;
    n->logit_stride = ((size_t)(n->shape.vocab + 15) / 16 | 1) * 16; // see score_stride in attention.c
    return mem_take(&n->blocks, &n->documents, rows, sizeof *n->documents) &&
           mem_take(&n->blocks, &n->agreeing, rows, sizeof *n->agreeing) && take(n, &n->losses, rows, 1) &&
           take(n, &n->weights, n->parameters.total, 1) && take(n, &n->gradients, n->parameters.total, 1) &&
           take(n, &n->out_normed, rows, width) && take(n, &n->logits, head, n->logit_stride) &&
           (!n->target_head || take(n, &n->wanted, head, n->logit_stride)) &&
           take(n, &n->cosine, positions_of(n), pairs) && take(n, &n->sine, positions_of(n), pairs) &&
           take_traces(n) && take_block(n) && take_slopes(n) && take_scratch(n) && matrices_open(n);
}

void network_close(Network *n) {
    mem_free_all(&n->blocks);
    parameters_release(&n->parameters);
    if (!n->options.pool) pool_close(n->pool);
    *n = (Network){0};
}

static void network_check(const Network *n) {
    const Shape *s = &n->shape;
    assert(n->kernels && n->pool && n->weights && n->gradients && n->head);
    assert(s->heads % s->kv_heads == 0 && (size_t)s->vocab <= n->logit_stride);
    assert(!n->target_head == !n->wanted && (!n->target_head || n->wanted_width > 0));
    assert(n->options.longest >= 1 && n->options.rows >= 1);
    assert(n->learned_forwards >= 1 && n->learned_forwards <= n->forward_count);
    assert(n->forward_count <= FORWARDS_MAX && !n->target_embedding == !shape_reads_both(s));
    assert(n->part_count >= 1 && n->part_count <= PARTS_MAX && (!network_is_block(n) || s->qk_norm));
    assert(n->forward_count == 1 || (network_is_eagle(n) && (s->layers == 1 || network_is_parallel(n))));
    assert(network_is_parallel(n) == (n->parameters.mask != NO_PARAMETER));
}

// Opens everything except parameters and target_head, which are there already.
static bool open_rest(Network *n, Error *e) {
    const NetworkOptions *o = &n->options;
    size_t head = n->parameters.at[W_HEAD];
    assert(n->parameters.total > 0 && (head != NO_PARAMETER || n->target_head));
    n->kernels = train_kernels_find(o->isa, e);
    if (n->kernels) n->pool = o->pool ? o->pool : pool_open(o->threads > 0 ? o->threads : pool_cores(), e);
    bool ok = n->pool && (take_buffers(n) || error_system(e,
                                                          "out of memory to train %zu parameters on %d rows; "
                                                          "fewer rows a pass need less",
                                                          n->parameters.total, o->rows));
    if (!ok) {
        network_close(n);
        return false;
    }
    n->head = head == NO_PARAMETER ? n->target_head : n->weights + head;
    fill_angles(n);
    pool_run(n->pool, pass_pack_heads, &(Pass){.n = n, .frozen = true});
    // Fills in ones as the up of an MLP that has none. Its products write only the gates, so the ones stay.
    size_t mlp = (size_t)n->shape.mlp_width, rows = (size_t)n->options.rows;
    for (int layer = 0; layer < n->shape.layers; layer++)
        for (size_t r = 0; r < rows && !layer_has(&n->parameters.layers[layer], W_UP); r++)
            for (size_t i = 0; i < mlp; i++) n->layers[layer].gate_up[(2 * r + 1) * mlp + i] = 1;
    network_check(n);
    return true;
}

static bool check_rows(const NetworkOptions *o, int context, Error *e) {
    return (o->rows >= 1 && o->longest >= 1 && o->longest <= context) ||
           error_input(e, "cannot train on %d rows of documents up to %d tokens with a context of %d",
                       o->rows, o->longest, context);
}

bool network_open(Network *n, const Shape *shape, const NetworkOptions *o, Error *e) {
    *n = (Network){.shape = *shape,
                   .options = *o,
                   .forward_count = 1,
                   .learned_forwards = 1,
                   .part_count = 1,
                   .target_head = o->wanted_head,
                   .wanted_width = o->wanted_width};
    return check_rows(o, shape->context, e) && parameters_plan(&n->parameters, shape, e) && open_rest(n, e);
}

bool network_open_adapter(Network *n, const AdapterPart *part, const NetworkOptions *o, Error *e) {
    const Shape *target = &part->target->shape;
    bool eagle = adapter_is_eagle(part->kind.variant);
    int forwards = eagle ? part->forwards : 1, least = eagle ? EAGLE_LOOKS : 1;
    *n = (Network){.shape = adapter_shape(&part->kind, target),
                   .options = *o,
                   .target_head = part->target_head,
                   .wanted_width = target->width,
                   .target_embedding = part->target_embedding,
                   .forward_count = forwards > least ? forwards : least,
                   .learned_forwards = forwards,
                   .recycles_normed = part->kind.recycles_normed};
    n->part_count = network_is_block(n) ? n->shape.block.rows : n->forward_count;
    if (target->logit_scale != 0 || target->logit_cap > 0 || target->head_bias ||
        target->embedding_scale != 0 || target->norm_kind != NORM_RMS)
        return error_input(e,
                           "can only train for a target whose embedding, final norm and logits are Llama's");
    if (!adapter_check(&part->kind, part->target, "the adapter to train", e) ||
        !check_rows(o, target->context, e))
        return false;
    int window = n->shape.window; // the layer computes none, so documents must fit into it
    if (window && o->longest > window)
        return error_input(e, "documents of %d tokens do not fit into the target's window of %d: set context",
                           o->longest, window);
    if (n->shape.mlp_width && n->shape.activation != ACTIVATION_SILU)
        return error_input(e, "can only train a layer whose activation is silu, which the target's is not");
    const BlockDraft *b = &n->shape.block;
    if (network_is_block(n) && (!n->shape.qk_norm || !b->from_root || b->markov > MARKOV_VANILLA ||
                                b->confidence == CONFIDENCE_ROW || (b->confidence && !b->markov)))
        return error_input(e,
                           "can only train a draft of blocks whose rows guess the tokens behind them, with "
                           "norms of heads, and a vanilla Markov head if it has any");
    if (forwards < 1 || forwards > FORWARDS_MAX)
        return error_input(e, "%d forwards of a pass: there must be from 1 to %d", forwards, FORWARDS_MAX);
    parameters_plan_adapter(&n->parameters, part->kind.variant, &n->shape, part->head);
    return open_rest(n, e);
}
