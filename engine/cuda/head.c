// The outputs: the LM head on chosen nodes, PANEL_ROWS at a time, draws from their distributions, and normed
// hidden states. Nodes are those of the step area: rows of several sequences make a panel.
//
// Logits stay on the device, so that a distribution can still be computed from them.
//
// Invariant: held[0 .. held_count) are the nodes whose logits are in the buffer, in the order of its rows,
// until other logits or normed states overwrite it; and held_rows is their list on the device.
#include "engine/cuda/fast.h"
#include "engine/cuda/sequence.h"
#include "engine/model/follow.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// Makes these nodes the rows of the next launches; the logits on the device are lost.
static bool choose(Cuda *c, const int *nodes, int count, Error *e) {
    assert(count > 0 && count <= PANEL_ROWS);
    c->held_count = 0;
    RowList *list = staging_begin(&c->list);
    list->count = count;
    list->first = -1;
    memcpy(list->node, nodes, (size_t)count * sizeof *nodes);
    return staging_send(c, &c->list, c->chosen, sizeof *list + (size_t)count * sizeof *nodes, e);
}

static void norm_listed(Cuda *c, const RowList *rows, int most, const Activations *to) {
    const Shape *s = &c->model->shape;
    Norm n = {.rows = rows,
              .hidden = c->hidden,
              .weight = s->normed_output ? NULL : c->final_norm,
              .bias = c->final_norm_bias,
              .layer = s->norm_kind == NORM_LAYER,
              .epsilon = s->norm_epsilon,
              .width = s->width,
              .stride = s->width,
              .to = *to};
    gpu_norm(&n, most, c->stream);
}

static Activations head_input(const Cuda *c) {
    Activations a = *cuda_role(c, ROLE_NORMED, &c->head);
    a.overflow = (Overflow){c->overflow, overflow_place(c->model->shape.layers, ROUNDED_ATTENTION_INPUT)};
    return a;
}

static void multiply(Cuda *c, const RowList *rows, int most) {
    const Shape *s = &c->model->shape;
    Product p = {.rows = rows,
                 .w = c->head,
                 .x = head_input(c),
                 .put = {.kind = PUT_LOGITS,
                         .bias = c->head_bias,
                         .out = c->logits,
                         .stride = s->vocab,
                         .real = s->real_vocab,
                         .scale = s->logit_scale,
                         .cap = s->logit_cap},
                 .parts = c->parts};
    if (c->head.library) fast_multiply(c, &p, most);
    else gpu_product(&p, most, &c->facts, c->stream);
}

static bool get(Cuda *c, void *to, const void *from, size_t bytes, Error *e) {
    return cuda_ok(c, gpu_copy(to, from, bytes, c->stream), "cannot copy from it", e);
}

// Logits and the likeliest ids of rows, at most so many.
typedef struct HeadLaunches {
    const RowList *rows;
    int most;
} HeadLaunches;

static void put_head(Cuda *c, const void *what) {
    const HeadLaunches *h = what;
    const Shape *s = &c->model->shape;
    Activations normed = head_input(c);
    Likeliest l = {
        .rows = h->rows, .logits = c->logits, .stride = s->vocab, .real = s->real_vocab, .keys = c->best};
    norm_listed(c, h->rows, h->most, &normed);
    multiply(c, h->rows, h->most);
    gpu_likeliest(&l, h->most, c->stream);
}

// A session reads the nodes that its tree has for the head. The step has brought their list along, so the
// head's launches can be recorded, and no copy parts them from the layers'.
static bool is_foreseen(const Cuda *c, const int *nodes, int count) {
    if (!c->stepped || c->fast) return false;
    const RowList *list = cuda_foreseen(c, c->steps[c->turn].host);
    return list->count == count && !memcmp(list->node, nodes, (size_t)count * sizeof *nodes);
}

static bool run_head(Cuda *c, const int *nodes, int count, Error *e) {
    HeadLaunches h = {c->foreseen, 8};
    int size = 0;
    for (; h.most < count; size++) h.most *= 2;
    c->held_count = 0;
    if (is_foreseen(c, nodes, count)) {
        c->held_rows = c->foreseen;
        if (cuda_record(c, &c->head_graphs[size], put_head, &h))
            return cuda_ok(c, gpu_graph_run(c->head_graphs[size], c->stream), "cannot run the head", e);
    } else {
        c->held_rows = h.rows = c->chosen;
        if (c->fast) h.most = fast_rows(count);
        if (!choose(c, nodes, count, e)) return false;
    }
    put_head(c, &h);
    return fast_ok(c, e);
}

// Answers that come back in one copy: of n rows, ids and logits (n, k), ln of sums (n).
typedef struct Tops {
    int *id;
    float *logit, *log_sum;
} Tops;

static Tops tops_in(int *block, int n, int k) {
    float *logit = (float *)(void *)(block + n * k);
    return (Tops){block, logit, logit + n * k};
}

// More numbers than the likeliest, ranked, of rows [at, at + count) of n, and their sums if wanted.
static void rank(Cuda *c, int at, int count, int n, int k, bool sums) {
    const Shape *s = &c->model->shape;
    Tops to = tops_in(c->tops, n, k);
    Top t = {.rows = c->held_rows,
             .logits = c->logits,
             .stride = s->vocab,
             .real = s->real_vocab,
             .k = k,
             .id = to.id + at * k,
             .slice_id = c->slice_id,
             .logit = to.logit + at * k,
             .slice_logit = c->slice_logit,
             .done = c->done};
    LogSums l = {c->held_rows, c->logits, s->vocab, s->real_vocab, to.log_sum + at};
    gpu_top(&t, count, c->stream);
    if (sums) gpu_log_sums(&l, count, c->stream);
}

static bool get_tops(Cuda *c, int n, int k, bool sums, Error *e) {
    return get(c, c->host_tops, c->tops, (size_t)n * (size_t)(2 * k + sums) * sizeof *c->tops, e);
}

static DrawAsks *begin_asks(Cuda *c, const Sampling *sampling, int vocab) {
    DrawAsks *asks = staging_begin(&c->asks);
    int real = c->model->shape.real_vocab;
    asks->inverse = 1 / sampling->temperature;
    asks->top_p = sampling->top_p;
    asks->top_k = sampling->top_k;
    asks->vocab = vocab < real ? vocab : real;
    asks->real = real;
    return asks;
}

static bool send_asks(Cuda *c, const DrawAsks *asks, int tokens, Error *e) {
    return staging_send(c, &c->asks, c->draw_asks, sizeof *asks + (size_t)tokens * sizeof *asks->token, e);
}

// Asks for nothing but the rows' confidences.
static bool ask_plainly(Cuda *c, int count, const Sampling *sampling, int vocab, Error *e) {
    DrawAsks *asks = begin_asks(c, sampling, vocab);
    memset(asks->u, 0, (size_t)count * sizeof *asks->u);
    memset(asks->first, 0, (size_t)(count + 1) * sizeof *asks->first);
    return send_asks(c, asks, 0, e);
}

static int tokens_of(const HeadRow *row) {
    const HeadDraws *d = row->out->draws;
    return d->first[row->at + 1] - d->first[row->at];
}

// Copies the draws that the rows ask for to the device.
static bool ask_for_draws(Cuda *c, const HeadRow *rows, int count, int *tokens, Error *e) {
    DrawAsks *asks = begin_asks(c, &rows->out->draws->sampling, rows->out->draws->vocab);
    asks->first[0] = 0;
    for (int i = 0; i < count; i++) {
        const HeadDraws *d = rows[i].out->draws;
        int n = tokens_of(&rows[i]), at = asks->first[i];
        asks->u[i] = d->u[rows[i].at];
        if (n > 0) memcpy(asks->token + at, d->token + d->first[rows[i].at], (size_t)n * sizeof *d->token);
        asks->first[i + 1] = at + n;
    }
    *tokens = asks->first[count];
    return send_asks(c, asks, *tokens, e);
}

// The answers come back in one copy: chances, then each row's confidence, then the drawn ids.
static bool draw_panel(Cuda *c, int count, int tokens, bool confident, Error *e) {
    double *behind = c->draw_answers + tokens + (confident ? count : 0);
    Draw d = {.rows = c->held_rows,
              .asks = c->draw_asks,
              .logits = c->logits,
              .stride = c->model->shape.vocab,
              .chance = c->draw_answers,
              .confidence = confident ? c->draw_answers + tokens : NULL,
              .drawn = (int *)(void *)behind};
    size_t bytes = (size_t)(behind - c->draw_answers) * sizeof(double) + (size_t)count * sizeof(int);
    gpu_draw(&d, count, c->stream);
    return get(c, c->host_answers, c->draw_answers, bytes, e);
}

static void keep_answers(const Cuda *c, const HeadRow *rows, int count, int tokens, bool confident) {
    const double *chance = c->host_answers, *confidence = chance + tokens;
    const int *drawn = (const int *)(const void *)(confidence + (confident ? count : 0));
    for (const HeadRow *r = rows; r < rows + count; r++) {
        HeadDraws *d = r->out->draws;
        int n = tokens_of(r);
        if (n > 0) memcpy(d->chance + d->first[r->at], chance, (size_t)n * sizeof *chance);
        chance += n;
        if (confident) d->confidence[r->at] = confidence[r - rows];
        d->drawn[r->at] = drawn[r - rows];
    }
}

// Neighbouring rows of one sequence come back in one copy.
static bool get_logits(Cuda *c, const HeadRow *rows, int count, Error *e) {
    size_t vocab = (size_t)c->model->shape.vocab;
    for (int i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && rows[i + n].out == rows[i].out && rows[i + n].at == rows[i].at + n;) n++;
        if (!get(c, rows[i].out->logits + (size_t)rows[i].at * vocab, c->logits + (size_t)i * vocab,
                 (size_t)n * vocab * sizeof(float), e))
            return false;
    }
    return true;
}

static int best_of(const uint64_t *keys) {
    uint64_t best = largest_key(keys);
    return isinf(likeliest_logit(best)) ? HEAD_BAD : likeliest_id(best);
}

static void keep_best(const Cuda *c, const HeadRow *rows, int count, unsigned want, int k) {
    Tops tops = tops_in(c->host_tops, count, k);
    for (int i = 0; i < count; i++) {
        HeadOut *out = rows[i].out;
        size_t at = (size_t)rows[i].at * (size_t)k, bytes = (size_t)k * sizeof(int);
        if (want & HEAD_ARGMAX) out->argmax[rows[i].at] = best_of(c->host_best + i * BEST_SLICES);
        if (!(want & HEAD_TOP)) continue;
        memcpy(out->top_id + at, tops.id + i * k, bytes);
        memcpy(out->top_logit + at, tops.logit + i * k, bytes);
        if (out->log_sum) out->log_sum[rows[i].at] = tops.log_sum[i];
    }
}

bool cuda_head(Cuda *c, const HeadRow *rows, int count, unsigned want, Error *e) {
    int nodes[PANEL_ROWS], k = want & HEAD_TOP ? rows->out->top : 1, tokens = 0;
    bool draws = want & HEAD_DRAW, sums = want & HEAD_TOP && rows->out->log_sum,
         confident = draws && rows->out->draws->confidence;
    assert(count <= PANEL_ROWS);
    for (int i = 0; i < count; i++) nodes[i] = rows[i].node;
    if ((c->fast && !fast_prepare_head(c, fast_rows(count), e)) || !cuda_begin(c, PHASE_HEAD, e) ||
        !run_head(c, nodes, count, e) || (draws && !ask_for_draws(c, rows, count, &tokens, e)))
        return false;
    size_t best_bytes = (size_t)count * BEST_SLICES * sizeof *c->best;
    if (want & HEAD_ARGMAX && !get(c, c->host_best, c->best, best_bytes, e)) return false;
    if (want & HEAD_TOP) rank(c, 0, count, count, k, sums);
    if (want & HEAD_TOP && !get_tops(c, count, k, sums, e)) return false;
    if (draws && !draw_panel(c, count, tokens, confident, e)) return false;
    if (want & HEAD_LOGITS && !get_logits(c, rows, count, e)) return false;
    if (!cuda_ok(c, gpu_launched(), "cannot run the head", e) || !cuda_wait(c, e)) return false;
    memcpy(c->held, nodes, (size_t)count * sizeof *nodes);
    c->held_count = count;
    keep_best(c, rows, count, want, k);
    if (draws) keep_answers(c, rows, count, tokens, confident);
    return true;
}

bool cuda_head_ahead(Cuda *c, int at, int *row, Error *e) {
    const RowList *list = cuda_foreseen(c, c->steps[c->turn].host);
    size_t bytes = BEST_SLICES * sizeof *c->best;
    *row = list->count - 1;
    assert(c->stepped && at < CHAIN_MOST);
    if (*row < 0) return true;
    return cuda_begin(c, PHASE_HEAD, e) && run_head(c, list->node, list->count, e) &&
           get(c, c->host_best + at * BEST_SLICES, c->best + *row * BEST_SLICES, bytes, e) &&
           cuda_ok(c, gpu_launched(), "cannot run the head", e);
}

int cuda_chained(const Cuda *c, int at) { return best_of(c->host_best + at * BEST_SLICES); }

bool cuda_head_level(Cuda *c, int at, int n, Grow *g, Error *e) {
    const RowList *list = cuda_foreseen(c, c->steps[c->turn].host);
    Tops tops = tops_in(c->tops, n, g->k);
    if (!cuda_begin(c, PHASE_HEAD, e) || !run_head(c, list->node, list->count, e)) return false;
    rank(c, at, list->count, n, g->k, true);
    g->id = tops.id + at * g->k;
    g->logit = tops.logit + at * g->k;
    g->log_sum = tops.log_sum + at;
    return cuda_ok(c, gpu_launched(), "cannot run the head", e);
}

bool cuda_tops(Cuda *c, int n, HeadOut *out, Error *e) {
    size_t numbers = (size_t)n * (size_t)out->top;
    Tops tops = tops_in(c->host_tops, n, out->top);
    if (!get_tops(c, n, out->top, true, e) || !cuda_wait(c, e)) return false;
    memcpy(out->top_id, tops.id, numbers * sizeof *tops.id);
    memcpy(out->top_logit, tops.logit, numbers * sizeof *tops.logit);
    memcpy(out->log_sum, tops.log_sum, (size_t)n * sizeof *tops.log_sum);
    return true;
}

// Returns the row of the node's logits on the device, or -1 if they were overwritten.
static int held_row(const Cuda *c, int node) {
    assert(c->held_count >= 0 && c->held_count <= PANEL_ROWS);
    for (int i = 0; i < c->held_count; i++)
        if (c->held[i] == node) return i;
    return -1;
}

// A step with more rows than a panel may have overwritten the node's logits; the head then runs again.
bool cuda_distribution(Cuda *c, int node, const Sampling *sampling, int vocab, float *p, Error *e) {
    if (held_row(c, node) < 0 && !cuda_head(c, &(HeadRow){.node = node}, 1, 0, e)) return false;
    int row = held_row(c, node), real = c->model->shape.real_vocab, n = vocab < real ? vocab : real;
    Draw d = {.rows = c->held_rows,
              .row = row,
              .asks = c->draw_asks,
              .logits = c->logits,
              .stride = c->model->shape.vocab,
              .chance = c->draw_answers,
              .drawn = (int *)(void *)c->draw_answers,
              .p = c->draw_p};
    if (!cuda_begin(c, PHASE_HEAD, e) || !ask_plainly(c, row + 1, sampling, vocab, e)) return false;
    gpu_draw(&d, 1, c->stream);
    if (!get(c, c->host_p, c->draw_p, (size_t)n * sizeof *p, e) ||
        !cuda_ok(c, gpu_launched(), "cannot run a draw", e) || !cuda_wait(c, e))
        return false;
    memcpy(p, c->host_p, (size_t)n * sizeof *p);
    for (int i = n; i < vocab; i++) p[i] = 0;
    return true;
}

// --- DSpark's heads. F is multiplied on the card, G and W, which are small, on the host.

static void multiply_here(const Tensor *w, const float *x, float *row, float *y) {
    for (int r = 0; r < w->rows; r++) {
        float sum = 0;
        tensor_row(w, (size_t)r, row);
        for (int i = 0; i < w->columns; i++) sum += row[i] * x[i];
        y[r] = sum;
    }
}

// The product of F and e, (vocab), in pinned memory.
static bool multiply_markov(Cuda *c, const float *e_row, Error *e) {
    const Shape *s = &c->model->shape;
    size_t bytes = (size_t)s->block.rank * sizeof *e_row;
    int first = 0;
    memcpy(staging_begin(&c->rows), e_row, bytes);
    if (!staging_send(c, &c->rows, c->followed, bytes, e) || !choose(c, &first, 1, e)) return false;
    Norm copy = {.rows = c->chosen,
                 .hidden = c->followed,
                 .width = s->block.rank,
                 .stride = s->block.rank,
                 .to = *cuda_role(c, ROLE_FOLLOWED, &c->markov)};
    Product p = {.rows = c->chosen,
                 .w = c->markov,
                 .x = copy.to,
                 .put = {.kind = PUT_LOGITS, .out = c->logits, .stride = s->vocab, .real = s->vocab},
                 .parts = c->parts};
    gpu_norm(&copy, 1, c->stream);
    gpu_product(&p, 1, &c->facts, c->stream);
    return cuda_ok(c, gpu_launched(), "cannot run a Markov head", e) &&
           get(c, c->host_p, c->logits, (size_t)s->vocab * sizeof(float), e) && cuda_wait(c, e);
}

bool cuda_follow(Cuda *c, int node, Follow *f, Error *e) {
    const Model *m = c->model;
    const BlockDraft *b = &m->shape.block;
    const Following at = following_at(&m->shape, c->following);
    bool reads = b->confidence || b->markov >= MARKOV_GATED;
    if (reads && !cuda_normed(c, &node, 1, at.y, e)) return false;
    follow_begin(m, f, &at);
    if (!b->markov || !f->logits) return true;
    if (b->markov >= MARKOV_GATED) {
        follow_inputs(m, f->state, &at);
        multiply_here(&m->markov_gate, at.x, at.row, at.gate);
        follow_gate(m, f->state, &at);
    }
    if (!cuda_begin(c, PHASE_HEAD, e) || !multiply_markov(c, at.e, e)) return false;
    for (int i = 0; i < m->shape.vocab; i++) f->logits[i] += c->host_p[i];
    return true;
}

bool cuda_norm_to(Cuda *c, const int *nodes, int count, float *rows, Error *e) {
    Activations to = {.data = rows, .pitch = c->model->shape.width};
    if (!choose(c, nodes, count, e)) return false;
    norm_listed(c, c->chosen, count, &to);
    return cuda_ok(c, gpu_launched(), "cannot run the norm", e);
}

// Goes through the logits' buffer.
bool cuda_normed(Cuda *c, const int *nodes, int count, float *rows, Error *e) {
    size_t width = (size_t)c->model->shape.width;
    for (int done = 0, n; done < count; done += n) {
        n = count - done < PANEL_ROWS ? count - done : PANEL_ROWS;
        if (!cuda_begin(c, PHASE_HEAD, e) || !cuda_norm_to(c, nodes + done, n, c->logits, e) ||
            !get(c, rows + (size_t)done * width, c->logits, (size_t)n * width * sizeof *rows, e) ||
            !cuda_wait(c, e))
            return false;
    }
    return true;
}
