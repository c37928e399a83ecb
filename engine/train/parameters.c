#include "engine/train/parameters.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <math.h>
#include <string.h>

static size_t add_parameter(Parameters *p, const WeightSpec *s) {
    Parameter *x = &p->list[p->count++];
    memcpy(x->name, s->name, sizeof x->name);
    x->at = p->total;
    x->rows = s->rows;
    x->columns = s->columns;
    x->vector = s->vector;
    p->total += parameter_size(x);
    return x->at;
}

// The order of weights_of_layer is that of LayerWeights: norm, q, k, v, biases, o, norm, gate, up, down.
static void add_layer(Parameters *p, const Model *m, int layer) {
    enum { NORM, Q, K, V, O = 7, MLP_NORM, GATE, UP, DOWN };
    WeightSpec s[LAYER_WEIGHTS];
    LayerPlan *plan = &p->layers[layer];
    weights_of_layer(m, layer, s);
    plan->attention_norm = add_parameter(p, &s[NORM]);
    plan->qkv = add_parameter(p, &s[Q]);
    add_parameter(p, &s[K]);
    add_parameter(p, &s[V]);
    plan->o = add_parameter(p, &s[O]);
    plan->mlp_norm = add_parameter(p, &s[MLP_NORM]);
    plan->gate_up = add_parameter(p, &s[GATE]);
    add_parameter(p, &s[UP]);
    plan->down = add_parameter(p, &s[DOWN]);
}

bool parameters_plan(Parameters *p, const Shape *shape, Error *e) {
    Model m = {.shape = *shape, .architecture = "llama"};
    WeightSpec ends[3];
    *p = (Parameters){0};
    if (!shape_check(shape, "the model to train", e)) return false;
    if (!shape->tied_head || shape->qkv_bias || !shape->mlp_width || shape->window)
        return error_input(e,
                           "can only train a model with a tied head and an MLP, without biases and window");
    p->list = mem_alloc((size_t)shape->layers * LAYER_WEIGHTS + 3, sizeof *p->list);
    p->layers = mem_alloc((size_t)shape->layers, sizeof *p->layers);
    if (!p->list || !p->layers) {
        parameters_release(p);
        return error_system(e, "out of memory for a list of parameters");
    }
    weights_of_ends(&m, ends);
    p->embedding = add_parameter(p, &ends[0]);
    for (int layer = 0; layer < shape->layers; layer++) add_layer(p, &m, layer);
    p->final_norm = add_parameter(p, &ends[1]);
    return true;
}

void parameters_release(Parameters *p) {
    mem_free(p->list);
    mem_free(p->layers);
    *p = (Parameters){0};
}

static float deviation_of(const Parameter *p, const Shape *shape) {
    bool residual = strstr(p->name, "o_proj") || strstr(p->name, "down_proj");
    return 0.02f / (residual ? sqrtf(2.0f * (float)shape->layers) : 1.0f);
}

void parameters_start(const Parameters *p, const Shape *shape, uint64_t seed, float *weights) {
    for (int i = 0; i < p->count; i++) {
        const Parameter *x = &p->list[i];
        Random r = {.seed = seed, .stream = STREAM_WEIGHTS + ((uint64_t)i << 8)};
        float deviation = deviation_of(x, shape);
        for (size_t j = 0; j < parameter_size(x); j++)
            weights[x->at + j] = x->vector ? 1.0f : deviation * random_normal(&r);
    }
}
