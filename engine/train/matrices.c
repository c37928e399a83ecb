#include "engine/train/matrices.h"

#include "engine/base/memory.h"

size_t matrix_at(const LayerPlan *plan, LayerMatrix m) {
    const size_t at[LAYER_MATRICES] = {plan->qkv, plan->o, plan->gate_up, plan->down};
    return at[m];
}

// Without up the products leave its half of the rows as it is.
Linear matrix_linear(const Network *n, int layer, LayerMatrix m) {
    const Shape *s = &n->shape;
    int q = shape_q_width(s), mlp = s->mlp_width, both = n->parameters.layers[layer].gated ? 2 * mlp : mlp;
    const int inputs[] = {s->width, q, s->width, mlp};
    const int outputs[] = {q + 2 * shape_kv_width(s), s->width, both, s->width};
    return (Linear){.kernels = n->kernels,
                    .inputs = inputs[m],
                    .outputs = outputs[m],
                    .y_stride = (size_t)(m == MATRIX_GATE_UP ? 2 * mlp : outputs[m]),
                    .panels = n->panels[m]};
}

bool matrices_open(Network *n) {
    for (LayerMatrix m = 0; m < LAYER_MATRICES; m++) {
        Linear l = matrix_linear(n, 0, m); // all layers are alike
        if (matrix_at(&n->parameters.layers[0], m) == NO_PARAMETER) continue;
        n->panels[m] = mem_alloc(linear_panels_size(n->kernels, l.inputs, l.outputs), sizeof *n->panels[m]);
        if (!n->panels[m]) return false;
    }
    return true;
}

void matrices_pack(const Network *n, int layer, bool backward, int thread, int threads) {
    for (LayerMatrix m = 0; m < LAYER_MATRICES; m++) {
        Linear l = matrix_linear(n, layer, m);
        size_t at = matrix_at(&n->parameters.layers[layer], m);
        if (at != NO_PARAMETER) linear_pack(&l, n->weights + at, backward, thread, threads);
    }
}
