// The plan of the array and its first contents. Planned parameters are in ascending order without gaps: each
// begins where the one before it ends.
#include "engine/train/parameters.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void check(const Parameters *p) {
    size_t at = 0;
    for (int i = 0; i < p->count; at += parameter_size(&p->list[i++])) {
        assert(p->list[i].at == at && p->list[i].rows > 0 && p->list[i].columns > 0);
        assert(!p->list[i].vector || p->list[i].rows == 1);
    }
    assert(at == p->total && p->count > 0);
}

// Adds a parameter and returns its place, or NO_PARAMETER for a spec without a name.
static size_t add_parameter(Parameters *p, const WeightSpec *s) {
    if (!s->name[0]) return NO_PARAMETER;
    Parameter *x = &p->list[p->count++];
    memcpy(x->name, s->name, sizeof x->name);
    x->at = p->total;
    x->rows = s->rows;
    x->columns = s->columns;
    x->vector = s->vector;
    p->total += parameter_size(x);
    return x->at;
}

static void add_layer(Parameters *p, const WeightSpec s[LAYER_WEIGHTS], LayerPlan *plan) {
    plan->attention_norm = add_parameter(p, &s[WEIGHT_ATTENTION_NORM]);
    plan->qkv = add_parameter(p, &s[WEIGHT_Q]);
    add_parameter(p, &s[WEIGHT_K]);
    add_parameter(p, &s[WEIGHT_V]);
    plan->o = add_parameter(p, &s[WEIGHT_O]);
    plan->mlp_norm = add_parameter(p, &s[WEIGHT_MLP_NORM]);
    plan->gate_up = add_parameter(p, &s[WEIGHT_GATE]);
    plan->gated = add_parameter(p, &s[WEIGHT_UP]) != NO_PARAMETER;
    plan->gate_bias = add_parameter(p, &s[WEIGHT_GATE_BIAS]);
    plan->down = add_parameter(p, &s[WEIGHT_DOWN]);
}

static void begin_plan(Parameters *p, int layers) {
    assert(layers > 0);
    *p = (Parameters){.list = mem_new((size_t)layers * LAYER_WEIGHTS + 3, sizeof *p->list),
                      .layers = mem_new((size_t)layers, sizeof *p->layers)};
}

bool parameters_plan(Parameters *p, const Shape *shape, Error *e) {
    Model m = {.shape = *shape, .architecture = "llama"};
    WeightSpec ends[3], layer[LAYER_WEIGHTS];
    *p = (Parameters){0};
    if (!shape_check(shape, "the model to train", e)) return false;
    if (!shape->tied_head || shape->qkv_bias || shape->qk_norm || !shape->mlp_width || shape->window)
        return error_input(e, "can only train a model with a tied head and an MLP, without biases, norms of "
                              "q and k, and window");
    begin_plan(p, shape->layers);
    weights_of_ends(&m, ends);
    p->embedding = p->head = add_parameter(p, &ends[0]);
    for (int i = 0; i < shape->layers; i++) {
        weights_of_layer(&m, i, layer);
        add_layer(p, layer, &p->layers[i]);
    }
    p->final_norm = add_parameter(p, &ends[1]);
    check(p);
    return true;
}

void parameters_plan_adapter(Parameters *p, AdapterVariant v, const Shape *shape, int head) {
    WeightSpec s[ADAPTER_WEIGHTS];
    begin_plan(p, 1);
    adapter_weights(v, shape, head, s);
    p->embedding = NO_PARAMETER;
    add_layer(p, s, p->layers);
    p->final_norm = add_parameter(p, &s[ADAPTER_FINAL_NORM]);
    p->head = add_parameter(p, &s[ADAPTER_HEAD]);
    check(p);
}

void parameters_release(Parameters *p) {
    mem_free(p->list);
    mem_free(p->layers);
    *p = (Parameters){0};
}

void parameters_start(const Parameters *p, const Shape *shape, uint64_t seed, float *weights) {
    for (int i = 0; i < p->count; i++) {
        const Parameter *x = &p->list[i];
        Random r = {.seed = seed, .stream = STREAM_WEIGHTS + ((uint64_t)i << 8)};
        bool residual = strstr(x->name, "o_proj") || strstr(x->name, "down_proj");
        float deviation = 0.02f / (residual ? sqrtf(2.0f * (float)shape->layers) : 1.0f);
        for (size_t j = 0; j < parameter_size(x); j++)
            weights[x->at + j] = x->vector ? 1.0f : deviation * random_normal(&r);
    }
}

void tensor_load(const Tensor *x, float *out) {
    size_t n = (size_t)x->rows * (size_t)x->columns;
    for (size_t i = 0; i < n; i++) out[i] = dtype_load(x->dtype, x->data, i);
}

static bool same_shape(const Shape *a, const Shape *b) {
    return a->layers == b->layers && a->width == b->width && a->heads == b->heads &&
           a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->mlp_width == b->mlp_width &&
           a->vocab == b->vocab && b->tied_head && !b->qkv_bias && !b->qk_norm;
}

bool parameters_load(const Parameters *p, const Shape *shape, const Model *from, float *weights, Error *e) {
    int i = 0;
    if (!same_shape(shape, &from->shape))
        return error_input(e,
                           "the model to start from has another shape than the one to train, or weights that "
                           "it has not (a head of its own, biases, norms of q and k)");
    tensor_load(&from->embedding, weights + p->list[i++].at);
    for (int layer = 0; layer < shape->layers; layer++) {
        WeightSpec specs[LAYER_WEIGHTS];
        weights_of_layer(from, layer, specs);
        for (int w = 0; w < LAYER_WEIGHTS; w++) {
            const Tensor *x = weights_field(&from->layers[layer], w);
            if (x->data) tensor_load(x, weights + p->list[i++].at);
        }
    }
    assert(i == p->count - 1);
    tensor_load(&from->final_norm, weights + p->list[i].at);
    return true;
}
