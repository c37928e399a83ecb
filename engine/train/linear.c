// The products of a layer's matrices, forward and backward, and their packing: once a layer and direction, by
// all threads, for all rows.
//
// Each function computes a share, of rows or (for a weight's gradient) of outputs. Shares touch no common
// memory, so threads need no order among them.
#include "engine/train/linear.h"

#include <assert.h>

// --- one matrix ------------------------------------------------------------------------------------------

static Panels panels_of(const Linear *l, bool backward) {
    return backward ? (Panels){l->panels, l->outputs, l->inputs} : (Panels){l->panels, l->inputs, l->outputs};
}

static View weight_view(const Linear *l, const float *weight, bool backward) {
    size_t inputs = (size_t)l->inputs;
    return backward ? view_rows(weight, inputs) : view_transposed(weight, inputs);
}

void linear_forward(const Linear *l, const float *x, const float *weight, float *y, int from, int to,
                    bool add) {
    size_t inputs = (size_t)l->inputs;
    Product p = {.a = view_rows(x + (size_t)from * inputs, inputs),
                 .b = weight_view(l, weight, false),
                 .panels = panels_of(l, false),
                 .c = y + (size_t)from * l->y_stride,
                 .stride = l->y_stride,
                 .m = to - from,
                 .n = l->outputs,
                 .k = l->inputs,
                 .add = add};
    assert(from <= to && l->y_stride >= (size_t)l->outputs);
    l->kernels->product(&p, l->scratch);
}

void linear_backward_input(const Linear *l, const float *dy, const float *weight, float *dx, int from,
                           int to) {
    size_t inputs = (size_t)l->inputs;
    Product p = {.a = view_rows(dy + (size_t)from * l->y_stride, l->y_stride),
                 .b = weight_view(l, weight, true),
                 .panels = panels_of(l, true),
                 .c = dx + (size_t)from * inputs,
                 .stride = inputs,
                 .m = to - from,
                 .n = l->inputs,
                 .k = l->outputs};
    assert(from <= to && l->y_stride >= (size_t)l->outputs);
    l->kernels->product(&p, l->scratch);
}

void linear_backward_weight(const Linear *l, const float *dy, const float *x, int rows, float *dweight,
                            int from, int to) {
    size_t inputs = (size_t)l->inputs;
    Product p = {.a = view_transposed(dy + from, l->y_stride),
                 .b = view_rows(x, inputs),
                 .c = dweight + (size_t)from * inputs,
                 .stride = inputs,
                 .m = to - from,
                 .n = l->inputs,
                 .k = rows,
                 .add = true};
    assert(from <= to && to <= l->outputs);
    l->kernels->product(&p, l->scratch);
}

// --- the matrices of a layer -----------------------------------------------------------------------------

// Where a matrix begins in the parameters; NO_PARAMETER if the layer has none.
static size_t matrix_at(const Parameters *p, int layer, LayerMatrix m) {
    static const Weight first[LAYER_MATRICES] = {W_Q, W_O, W_GATE, W_DOWN};
    return m == MATRIX_JOIN ? p->at[W_FC] : p->layers[layer].at[first[m]];
}

// Without scratch, which belongs to a thread. If an MLP has no up, the products skip that half of each row.
static Linear matrix_linear(const Network *n, int layer, LayerMatrix m) {
    const Shape *s = &n->shape;
    int q = shape_q_width(s), mlp = s->mlp_width,
        both = layer_has(&n->parameters.layers[layer], W_UP) ? 2 * mlp : mlp;
    const int inputs[] = {shape_attention_width(s, layer), q, s->width, mlp, shape_fc_width(s)};
    const int outputs[] = {q + 2 * shape_kv_width(s), s->width, both, s->width, s->width};
    return (Linear){.kernels = n->kernels,
                    .inputs = inputs[m],
                    .outputs = outputs[m],
                    .y_stride = (size_t)(m == MATRIX_GATE_UP ? 2 * mlp : outputs[m]),
                    .panels = n->panels[m]};
}

Linear pass_linear(const Pass *p, int thread, LayerMatrix m) {
    Linear l = matrix_linear(p->n, p->layer, m);
    l.scratch = p->n->scratch[thread];
    return l;
}

// Padding at the end of the vocabulary takes no part in products.
static Linear head_linear(const Network *n, HeadProduct h) {
    return (Linear){.kernels = n->kernels,
                    .inputs = h == HEAD_WANTED ? n->wanted_width : n->shape.width,
                    .outputs = n->shape.real_vocab,
                    .y_stride = n->logit_stride,
                    .panels = n->head_panels[h]};
}

Linear pass_head(const Pass *p, int thread, HeadProduct h) {
    Linear l = head_linear(p->n, h);
    l.scratch = p->n->scratch[thread];
    return l;
}

static bool head_learns(const Network *n) { return n->parameters.at[W_HEAD] != NO_PARAMETER; }

// A frozen head is the target's, whose logits are wanted.
static bool heads_open(Network *n) {
    float **panels = n->head_panels;
    for (HeadProduct h = 0; h < HEAD_PRODUCTS; h++) {
        Linear l = head_linear(n, h);
        if (h == HEAD_WANTED && n->options.wanted_panels) panels[h] = n->options.wanted_panels;
        else if (h == HEAD_WANTED && !n->target_head) continue;
        else if (h == HEAD_FORWARD && !head_learns(n)) continue;
        else if (!mem_take(&n->blocks, &panels[h],
                           h == HEAD_BACKWARD ? n->kernels->panels_size(l.outputs, l.inputs)
                                              : n->kernels->panels_size(l.inputs, l.outputs),
                           sizeof(float)))
            return false;
    }
    if (!head_learns(n)) panels[HEAD_FORWARD] = panels[HEAD_WANTED];
    return true;
}

void pass_pack_heads(void *argument, int thread, int threads) {
    const Pass *p = argument;
    const Network *n = p->n;
    for (HeadProduct h = 0; h < HEAD_PRODUCTS; h++) {
        Linear l = head_linear(n, h);
        bool frozen = h == HEAD_WANTED || !head_learns(n),
             there = h == HEAD_WANTED ? n->target_head && !n->options.wanted_panels
                                      : h == HEAD_BACKWARD || head_learns(n);
        if (frozen != p->frozen || !there) continue;
        View b = weight_view(&l, h == HEAD_WANTED ? n->target_head : n->head, h == HEAD_BACKWARD);
        Panels to = panels_of(&l, h == HEAD_BACKWARD);
        int from, end;
        pool_share(to.n, n->kernels->panel_unit, thread, threads, &from, &end);
        n->kernels->pack(&b, &to, from, end);
    }
}

bool matrices_open(Network *n) {
    for (LayerMatrix m = 0; m < LAYER_MATRICES; m++) {
        Linear l = matrix_linear(n, 0, m); // the widest
        size_t forward = n->kernels->panels_size(l.inputs, l.outputs);
        size_t backward = n->kernels->panels_size(l.outputs, l.inputs);
        if (matrix_at(&n->parameters, 0, m) == NO_PARAMETER) continue;
        if (!mem_take(&n->blocks, &n->panels[m], forward > backward ? forward : backward, sizeof(float)))
            return false;
    }
    return heads_open(n);
}

void pass_pack(void *argument, int thread, int threads) {
    const Pass *p = argument;
    const Network *n = p->n;
    for (LayerMatrix m = 0; m < LAYER_MATRICES; m++) {
        Linear l = matrix_linear(n, p->layer, m);
        size_t at = matrix_at(&n->parameters, p->layer, m);
        if (at == NO_PARAMETER) continue;
        View b = weight_view(&l, n->weights + at, p->backward);
        Panels to = panels_of(&l, p->backward);
        int from, end;
        pool_share(to.n, n->kernels->panel_unit, thread, threads, &from, &end);
        n->kernels->pack(&b, &to, from, end);
    }
}
