// The outputs: the LM head on chosen nodes, PANEL_ROWS at a time, draws from their distributions, and normed
// hidden states.
//
// Logits stay on the device, so that a distribution can still be computed from them.
//
// Invariant: held[0 .. held_count) are the nodes whose logits are in the buffer, in the order of its rows,
// until other logits or normed states overwrite it.
#include "engine/cuda/fast.h"

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

static void norm_chosen(Cuda *c, int count, const Activations *to) {
    const Shape *s = &c->model->shape;
    Norm n = {.rows = c->chosen,
              .hidden = c->hidden,
              .weight = s->normed_output ? NULL : c->final_norm,
              .bias = c->final_norm_bias,
              .layer = s->norm_kind == NORM_LAYER,
              .epsilon = s->norm_epsilon,
              .width = s->width,
              .to = *to};
    gpu_norm(&n, count, c->stream);
}

static Activations head_input(const Cuda *c) {
    Activations a = *cuda_role(c, ROLE_NORMED, &c->head);
    a.overflow = (Overflow){c->overflow, overflow_place(c->model->shape.layers, ROUNDED_ATTENTION_INPUT)};
    return a;
}

static int most_rows(int count) {
    int most = 8;
    while (most < count) most *= 2;
    return most;
}

static void multiply(Cuda *c, int count) {
    const Shape *s = &c->model->shape;
    Product p = {.rows = c->chosen,
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
    if (c->head.library) fast_multiply(c, &p, fast_rows(count));
    else gpu_product(&p, most_rows(count), &c->facts, c->stream);
}

static bool rank(Cuda *c, int count, int k, Error *e) {
    const Shape *s = &c->model->shape;
    size_t bytes = (size_t)count * (size_t)k * sizeof(int);
    Top t = {.rows = c->chosen,
             .logits = c->logits,
             .stride = s->vocab,
             .real = s->real_vocab,
             .k = k,
             .id = c->top_id,
             .slice_id = c->slice_id,
             .logit = c->top_logit,
             .slice_logit = c->slice_logit,
             .done = c->done};
    gpu_top(&t, count, c->stream);
    return cuda_ok(c, gpu_copy(c->host_id, c->top_id, bytes, c->stream), "cannot copy from it", e) &&
           cuda_ok(c, gpu_copy(c->host_logit, c->top_logit, bytes, c->stream), "cannot copy from it", e);
}

// Copies the draws that rows [done, done + count) ask for to the device.
static bool send_asks(Cuda *c, const HeadDraws *d, int done, int count, Error *e) {
    DrawAsks *asks = staging_begin(&c->asks);
    int from = d->first[done], tokens = d->first[done + count] - from, real = c->model->shape.real_vocab;
    asks->inverse = 1 / d->sampling.temperature;
    asks->top_p = d->sampling.top_p;
    asks->top_k = d->sampling.top_k;
    asks->vocab = d->vocab < real ? d->vocab : real;
    asks->real = real;
    memcpy(asks->u, d->u + done, (size_t)count * sizeof *asks->u);
    for (int i = 0; i <= count; i++) asks->first[i] = d->first[done + i] - from;
    if (tokens > 0) memcpy(asks->token, d->token + from, (size_t)tokens * sizeof *asks->token);
    return staging_send(c, &c->asks, c->draw_asks, sizeof *asks + (size_t)tokens * sizeof *asks->token, e);
}

// The answers come back in one copy: chances, then each row's confidence, then the drawn ids.
static bool draw_panel(Cuda *c, int count, int tokens, bool confident, Error *e) {
    double *behind = c->draw_answers + tokens + (confident ? count : 0);
    Draw d = {.rows = c->chosen,
              .asks = c->draw_asks,
              .logits = c->logits,
              .stride = c->model->shape.vocab,
              .chance = c->draw_answers,
              .confidence = confident ? c->draw_answers + tokens : NULL,
              .drawn = (int *)(void *)behind};
    size_t bytes = (size_t)(behind - c->draw_answers) * sizeof(double) + (size_t)count * sizeof(int);
    gpu_draw(&d, count, c->stream);
    return cuda_ok(c, gpu_copy(c->host_answers, c->draw_answers, bytes, c->stream), "cannot copy from it", e);
}

static void keep_answers(const Cuda *c, HeadDraws *d, int done, int count) {
    int from = d->first[done], tokens = d->first[done + count] - from;
    const double *at = c->host_answers;
    memcpy(d->chance + from, at, (size_t)tokens * sizeof *at);
    at += tokens;
    if (d->confidence) {
        memcpy(d->confidence + done, at, (size_t)count * sizeof *at);
        at += count;
    }
    memcpy(d->drawn + done, at, (size_t)count * sizeof *d->drawn);
}

static bool read_panel(Cuda *c, const int *nodes, int count, unsigned want, HeadOut *out, int done,
                       Error *e) {
    int k = want & HEAD_TOP ? out->top : 1;
    size_t vocab = (size_t)c->model->shape.vocab, at = (size_t)done * (size_t)k;
    HeadDraws *draws = want & HEAD_DRAW ? out->draws : NULL;
    int tokens = draws ? draws->first[done + count] - draws->first[done] : 0;
    if ((c->fast && !fast_prepare_head(c, fast_rows(count), e)) || !cuda_begin(c, PHASE_HEAD, e) ||
        !choose(c, nodes, count, e) || (draws && !send_asks(c, draws, done, count, e)))
        return false;
    Activations normed = head_input(c);
    norm_chosen(c, count, &normed);
    multiply(c, count);
    if (!fast_ok(c, e)) return false;
    if (want & (HEAD_ARGMAX | HEAD_TOP) && !rank(c, count, k, e)) return false;
    if (draws && !draw_panel(c, count, tokens, draws->confidence != NULL, e)) return false;
    if (want & HEAD_LOGITS && !cuda_ok(c,
                                       gpu_copy(out->logits + (size_t)done * vocab, c->logits,
                                                (size_t)count * vocab * sizeof(float), c->stream),
                                       "cannot copy from it", e))
        return false;
    if (!cuda_ok(c, gpu_launched(), "cannot run the head", e) || !cuda_wait(c, e)) return false;
    memcpy(c->held, nodes, (size_t)count * sizeof *nodes);
    c->held_count = count;
    for (int i = 0; want & HEAD_ARGMAX && i < count; i++)
        out->argmax[done + i] = isinf(c->host_logit[i * k]) ? HEAD_BAD : c->host_id[i * k];
    if (draws) keep_answers(c, draws, done, count);
    if (!(want & HEAD_TOP)) return true;
    memcpy(out->top_id + at, c->host_id, (size_t)(count * k) * sizeof(int));
    memcpy(out->top_logit + at, c->host_logit, (size_t)(count * k) * sizeof(float));
    return true;
}

static bool read_all(Cuda *c, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    for (int done = 0, n; done < count; done += n) {
        n = count - done < PANEL_ROWS ? count - done : PANEL_ROWS;
        if (!read_panel(c, nodes + done, n, want, out, done, e)) return false;
    }
    return true;
}

// A draw's confidence is 1 / the sum of e^(logit - the largest), the same bits whatever shares the step.
static bool read_sums(Cuda *c, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    static const double u[TREE_MAX_NODES];
    static const int first[TREE_MAX_NODES + 1];
    double confidence[TREE_MAX_NODES], chance;
    int drawn[TREE_MAX_NODES];
    HeadDraws draws = {.sampling = {.temperature = 1, .top_p = 1},
                       .vocab = c->model->shape.real_vocab,
                       .u = u,
                       .first = first,
                       .chance = &chance,
                       .confidence = confidence,
                       .drawn = drawn};
    HeadOut own = *out;
    own.draws = &draws;
    assert(count <= TREE_MAX_NODES && !(want & HEAD_DRAW));
    if (!read_all(c, nodes, count, want | HEAD_DRAW, &own, e)) return false;
    for (int i = 0; i < count; i++) out->log_sum[i] = (float)-log(confidence[i]);
    return true;
}

bool cuda_head(Cuda *c, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    if (want & HEAD_TOP && (out->top < 1 || out->top > TOP_MAX))
        return error_input(e, "top %d: a card ranks 1 to %d tokens", out->top, TOP_MAX);
    return want & HEAD_TOP && out->log_sum ? read_sums(c, nodes, count, want, out, e)
                                           : read_all(c, nodes, count, want, out, e);
}

// Returns the row of the node's logits on the device, or -1 if they were overwritten.
static int held_row(const Cuda *c, int node) {
    assert(c->held_count >= 0 && c->held_count <= PANEL_ROWS);
    for (int i = 0; i < c->held_count; i++)
        if (c->held[i] == node) return i;
    return -1;
}

static bool send_one_ask(Cuda *c, int row, const Sampling *sampling, int vocab, Error *e) {
    double u[PANEL_ROWS] = {0};
    int first[PANEL_ROWS + 1] = {0};
    HeadDraws d = {.sampling = *sampling, .vocab = vocab, .u = u, .first = first};
    return send_asks(c, &d, 0, row + 1, e);
}

// A step with more rows than a panel may have overwritten the node's logits; the head then runs again.
bool cuda_distribution(Cuda *c, int node, const Sampling *sampling, int vocab, float *p, Error *e) {
    if (held_row(c, node) < 0 && !read_panel(c, &node, 1, 0, NULL, 0, e)) return false;
    int row = held_row(c, node), real = c->model->shape.real_vocab, n = vocab < real ? vocab : real;
    Draw d = {.rows = c->chosen,
              .row = row,
              .asks = c->draw_asks,
              .logits = c->logits,
              .stride = c->model->shape.vocab,
              .chance = c->draw_answers,
              .drawn = (int *)(void *)c->draw_answers,
              .p = c->draw_p};
    if (!cuda_begin(c, PHASE_HEAD, e) || !send_one_ask(c, row, sampling, vocab, e)) return false;
    gpu_draw(&d, 1, c->stream);
    if (!cuda_ok(c, gpu_copy(c->host_p, c->draw_p, (size_t)n * sizeof *p, c->stream), "cannot copy from it",
                 e) ||
        !cuda_ok(c, gpu_launched(), "cannot run a draw", e) || !cuda_wait(c, e))
        return false;
    memcpy(p, c->host_p, (size_t)n * sizeof *p);
    for (int i = n; i < vocab; i++) p[i] = 0;
    return true;
}

bool cuda_norm_to(Cuda *c, const int *nodes, int count, float *rows, Error *e) {
    Activations to = {.data = rows, .pitch = c->model->shape.width};
    if (!choose(c, nodes, count, e)) return false;
    norm_chosen(c, count, &to);
    return cuda_ok(c, gpu_launched(), "cannot run the norm", e);
}

// Goes through the logits' buffer.
bool cuda_normed(Cuda *c, const int *nodes, int count, float *rows, Error *e) {
    size_t width = (size_t)c->model->shape.width;
    for (int done = 0, n; done < count; done += n) {
        n = count - done < PANEL_ROWS ? count - done : PANEL_ROWS;
        if (!cuda_begin(c, PHASE_HEAD, e) || !cuda_norm_to(c, nodes + done, n, c->logits, e) ||
            !cuda_ok(
                c,
                gpu_copy(rows + (size_t)done * width, c->logits, (size_t)n * width * sizeof *rows, c->stream),
                "cannot copy from it", e) ||
            !cuda_wait(c, e))
            return false;
    }
    return true;
}
