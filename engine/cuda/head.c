// What is read back: the LM head on chosen nodes, PANEL_ROWS at a time, and hidden states behind the norm.
#include "engine/cuda/fast.h"

#include <string.h>

static bool choose(Cuda *c, const int *nodes, int count, Error *e) {
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
              .weight = c->final_norm,
              .epsilon = s->norm_epsilon,
              .width = s->width,
              .to = *to};
    gpu_norm(&n, count, c->stream);
}

static int most_rows(int count) {
    int most = 8;
    while (most < count) most *= 2;
    return most;
}

static void multiply(Cuda *c, int count) {
    const Shape *s = &c->model->shape;
    Product p = {
        .rows = c->chosen,
        .w = c->head,
        .x = *cuda_role(c, ROLE_NORMED, &c->head),
        .put = {.kind = PUT_LOGITS, .out = c->logits, .stride = s->vocab, .real = s->real_vocab},
        .parts = c->parts,
        .done = c->done
    };
    if (c->head.library) fast_multiply(c, &p, fast_rows(count));
    else gpu_product(&p, most_rows(count), c->facts.shared_bytes, c->stream);
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

static bool read_panel(Cuda *c, const int *nodes, int count, unsigned want, HeadOut *out, int done,
                       Error *e) {
    int k = want & HEAD_TOP ? out->top : 1;
    size_t vocab = (size_t)c->model->shape.vocab, at = (size_t)done * (size_t)k;
    if ((c->fast && !fast_prepare_head(c, fast_rows(count), e)) || !cuda_begin(c, e) ||
        !choose(c, nodes, count, e))
        return false;
    norm_chosen(c, count, cuda_role(c, ROLE_NORMED, &c->head));
    multiply(c, count);
    if (!fast_ok(c, e)) return false;
    if (want & (HEAD_ARGMAX | HEAD_TOP) && !rank(c, count, k, e)) return false;
    if (want & HEAD_LOGITS && !cuda_ok(c,
                                       gpu_copy(out->logits + (size_t)done * vocab, c->logits,
                                                (size_t)count * vocab * sizeof(float), c->stream),
                                       "cannot copy from it", e))
        return false;
    if (!cuda_ok(c, gpu_launched(), "cannot run the head", e) || !cuda_wait(c, e)) return false;
    for (int i = 0; want & HEAD_ARGMAX && i < count; i++) out->argmax[done + i] = c->host_id[i * k];
    if (!(want & HEAD_TOP)) return true;
    memcpy(out->top_id + at, c->host_id, (size_t)(count * k) * sizeof(int));
    memcpy(out->top_logit + at, c->host_logit, (size_t)(count * k) * sizeof(float));
    return true;
}

bool cuda_head(Cuda *c, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    if (want & HEAD_TOP && (out->top < 1 || out->top > TOP_MAX))
        return error_input(e, "the %d best tokens are asked for, from 1 to %d can be had", out->top, TOP_MAX);
    for (int done = 0, n; done < count; done += n) {
        n = count - done < PANEL_ROWS ? count - done : PANEL_ROWS;
        if (!read_panel(c, nodes + done, n, want, out, done, e)) return false;
    }
    return true;
}

// Through the room of the logits.
bool cuda_normed(Cuda *c, const int *nodes, int count, float *rows, Error *e) {
    int width = c->model->shape.width;
    Activations to = {.data = c->logits, .pitch = width};
    for (int done = 0, n; done < count; done += n) {
        n = count - done < PANEL_ROWS ? count - done : PANEL_ROWS;
        size_t at = (size_t)done * (size_t)width, bytes = (size_t)n * (size_t)width * sizeof *rows;
        if (!cuda_begin(c, e) || !choose(c, nodes + done, n, e)) return false;
        norm_chosen(c, n, &to);
        if (!cuda_ok(c, gpu_copy(rows + at, c->logits, bytes, c->stream), "cannot copy from it", e) ||
            !cuda_ok(c, gpu_launched(), "cannot run the norm", e) || !cuda_wait(c, e))
            return false;
    }
    return true;
}
