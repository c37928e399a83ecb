// The plan of the array and its first contents. Planned parameters are in ascending order without gaps: each
// begins where the one before it ends.
#include "engine/train/parameters.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void parameters_check(const Parameters *p) {
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

static void add_weight(Parameters *p, const WeightSpec *s) {
    size_t at = add_parameter(p, s);
    if (s->which < LAYER_WEIGHTS) p->layers[s->layer].at[s->which] = at;
    else p->at[s->which] = at;
}

static void begin_plan(Parameters *p, int layers) {
    assert(layers > 0);
    *p = (Parameters){.list = mem_new((size_t)layers * LAYER_WEIGHTS + WEIGHTS, sizeof *p->list),
                      .layers = mem_new((size_t)layers, sizeof *p->layers)};
    for (Weight w = 0; w < WEIGHTS; w++) p->at[w] = NO_PARAMETER;
    p->mask = NO_PARAMETER;
}

bool parameters_plan(Parameters *p, const Shape *shape, Error *e) {
    Model m = {.shape = *shape, .architecture = "llama"};
    *p = (Parameters){0};
    if (!shape_check(shape, "the model to train", e)) return false;
    if (!shape_is_plain(shape) || !shape->tied_head || weight_optional(shape) < WEIGHTS ||
        !shape->mlp_width || shape->window)
        return error_input(e, "can only train a model with a tied head and an MLP, without biases, norms of "
                              "q and k, and window");
    begin_plan(p, shape->layers);
    for (int i = 0; i < weights_count(&m); i++) {
        WeightSpec s = weights_at(&m, i);
        add_weight(p, &s);
    }
    p->at[W_HEAD] = p->at[W_EMBEDDING];
    parameters_check(p);
    return true;
}

// A draft's inputs come first. It may have an embedding of its own; it's trained on the target's.
void parameters_plan_adapter(Parameters *p, AdapterVariant v, const Shape *shape, int head) {
    WeightSpec specs[WEIGHTS];
    begin_plan(p, shape->layers);
    adapter_weights(v, shape, head, specs);
    for (Weight w = W_FC; w <= W_CONFIDENCE_BIAS; w++) add_weight(p, &specs[w]);
    for (Weight w = 0; w <= W_HEAD; w++) add_weight(p, &specs[w]);
    for (int layer = 1; layer < shape->layers; layer++) {
        adapter_weights(v, shape, layer, specs);
        for (Weight w = 0; w < LAYER_WEIGHTS; w++) add_weight(p, &specs[w]);
    }
    if (v == ADAPTER_EAGLE3 && shape->mask_token) {
        WeightSpec mask = {.rows = 1, .columns = shape_given_width(shape), .vector = true};
        snprintf(mask.name, sizeof mask.name, "%s", eagle_mask);
        p->mask = add_parameter(p, &mask);
    }
    parameters_check(p);
}

void parameters_release(Parameters *p) {
    MEM_FREE(p->list, p->layers);
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
    for (size_t i = 0; i < (size_t)x->rows; i++) tensor_row(x, i, out + i * (size_t)x->columns);
}

static bool same_shape(const Shape *a, const Shape *b) {
    return a->layers == b->layers && a->width == b->width && a->heads == b->heads &&
           a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->mlp_width == b->mlp_width &&
           a->vocab == b->vocab && b->tied_head && shape_is_plain(b) && weight_optional(b) == WEIGHTS;
}

bool parameters_load(const Parameters *p, const Shape *shape, const Model *from, float *weights, Error *e) {
    int i = 0;
    if (!same_shape(shape, &from->shape))
        return error_input(e,
                           "the model to start from has another shape than the one to train, or weights that "
                           "it has not (a head of its own, biases, norms of q and k)");
    for (int k = 0; k < weights_count(from); k++) {
        WeightSpec s = weights_at(from, k);
        if (s.name[0])
            tensor_load(weight_tensor(from, s.layer, s.expert, s.which), weights + p->list[i++].at);
    }
    assert(i == p->count);
    return true;
}
