#include "engine/train/network.h"

#include "engine/base/memory.h"
#include "engine/train/attention.h"

#include <math.h>
#include <string.h>

// (count, width) zeroed floats into *p.
static bool take(float **p, size_t count, size_t width) {
    size_t n;
    *p = size_mul(count, width, &n) ? mem_alloc(n, sizeof **p) : NULL;
    return *p != NULL;
}

static size_t qkv_width(const Shape *s) { return (size_t)(shape_q_width(s) + 2 * shape_kv_width(s)); }

static bool take_trace(const Network *n, LayerTrace *t) {
    const Shape *s = &n->shape;
    size_t rows = (size_t)n->options.rows, width = (size_t)s->width, mlp = (size_t)s->mlp_width;
    return take(&t->in, rows, width) && take(&t->normed, rows, width) && take(&t->inverse, rows, 1) &&
           take(&t->qkv, rows, qkv_width(s)) && take(&t->mixed, rows, (size_t)shape_q_width(s)) &&
           take(&t->middle, rows, width) && take(&t->middle_normed, rows, width) &&
           take(&t->middle_inverse, rows, 1) && take(&t->gate_up, rows, 2 * mlp) &&
           take(&t->active, rows, mlp);
}

static void release_trace(LayerTrace *t) {
    float *blocks[] = {t->in,     t->normed,        t->inverse,        t->qkv,     t->mixed,
                       t->middle, t->middle_normed, t->middle_inverse, t->gate_up, t->active};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) mem_free(blocks[i]);
}

static bool take_slopes(const Network *n, Slopes *d) {
    const Shape *s = &n->shape;
    size_t rows = (size_t)n->options.rows, width = (size_t)s->width, mlp = (size_t)s->mlp_width;
    size_t blocks = (rows + NORM_BLOCK - 1) / NORM_BLOCK;
    return take(&d->stream, rows, width) && take(&d->middle, rows, width) && take(&d->normed, rows, width) &&
           take(&d->qkv, rows, qkv_width(s)) && take(&d->mixed, rows, (size_t)shape_q_width(s)) &&
           take(&d->gate_up, rows, 2 * mlp) && take(&d->active, rows, mlp) &&
           take(&d->attention_norm, blocks, width) && take(&d->mlp_norm, blocks, width);
}

static void release_slopes(Slopes *d) {
    float *blocks[] = {d->stream,  d->middle, d->normed,         d->qkv,     d->mixed,
                       d->gate_up, d->active, d->attention_norm, d->mlp_norm};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) mem_free(blocks[i]);
}

static void fill_angles(Network *n) {
    double frequency[ROPE_MAX_PAIRS];
    size_t pairs = (size_t)n->shape.rope.pairs;
    rope_frequencies(&n->shape.rope, frequency);
    for (size_t at = 0; at < (size_t)n->options.longest; at++)
        for (size_t i = 0; i < pairs; i++) {
            n->cosine[at * pairs + i] = (float)cos((double)at * frequency[i]);
            n->sine[at * pairs + i] = (float)sin((double)at * frequency[i]);
        }
}

static bool take_scratch(Network *n) {
    const Shape *s = &n->shape;
    size_t threads = (size_t)pool_threads(n->pool);
    size_t need = attention_scratch(n->kernels, n->options.longest, s->heads / s->kv_heads, s->head_dim);
    n->scratch = mem_alloc(threads, sizeof *n->scratch);
    for (size_t i = 0; n->scratch && i < threads; i++)
        if (!take(&n->scratch[i], need, 1)) return false;
    return n->scratch != NULL;
}

static bool take_buffers(Network *n) {
    const Shape *s = &n->shape;
    size_t rows = (size_t)n->options.rows, width = (size_t)s->width, layers = (size_t)s->layers;
    size_t longest = (size_t)n->options.longest, pairs = (size_t)s->rope.pairs;
    n->logit_stride = ((size_t)(s->vocab + 15) / 16 | 1) * 16; // see score_stride in attention.c
    n->layers = mem_alloc(layers, sizeof *n->layers);
    n->documents = mem_alloc(rows, sizeof *n->documents);
    bool ok = n->layers && n->documents && take(&n->weights, n->parameters.total, 1) &&
              take(&n->gradients, n->parameters.total, 1) && take(&n->out, rows, width) &&
              take(&n->out_normed, rows, width) && take(&n->out_inverse, rows, 1) &&
              take(&n->logits, rows < HEAD_ROWS ? rows : HEAD_ROWS, n->logit_stride) &&
              take(&n->losses, rows, 1) && take(&n->cosine, longest, pairs) &&
              take(&n->sine, longest, pairs) && take_slopes(n, &n->slopes) && take_scratch(n);
    for (size_t i = 0; ok && i < layers; i++) ok = take_trace(n, &n->layers[i]);
    return ok;
}

void network_close(Network *n) {
    for (int i = 0; n->layers && i < n->shape.layers; i++) release_trace(&n->layers[i]);
    for (int i = 0; n->scratch && i < pool_threads(n->pool); i++) mem_free(n->scratch[i]);
    void *blocks[] = {n->layers,      n->documents, n->weights, n->gradients, n->out,  n->out_normed,
                      n->out_inverse, n->logits,    n->losses,  n->cosine,    n->sine, n->scratch};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) mem_free(blocks[i]);
    release_slopes(&n->slopes);
    parameters_release(&n->parameters);
    pool_close(n->pool);
    *n = (Network){0};
}

bool network_open(Network *n, const Shape *shape, const NetworkOptions *o, Error *e) {
    *n = (Network){.shape = *shape, .options = *o};
    if (o->rows < 1 || o->longest < 1 || o->longest > shape->context)
        return error_input(e, "cannot train on %d rows of documents up to %d tokens with a context of %d",
                           o->rows, o->longest, shape->context);
    n->kernels = train_kernels_find(o->isa, e);
    if (n->kernels && parameters_plan(&n->parameters, shape, e) &&
        (n->pool = pool_open(o->threads > 0 ? o->threads : pool_cores(), e))) {
        if (take_buffers(n)) {
            fill_angles(n);
            return true;
        }
        error_system(e, "out of memory to train %zu parameters on %d rows; fewer rows a pass need less",
                     n->parameters.total, o->rows);
    }
    network_close(n);
    return false;
}
