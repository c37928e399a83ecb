// The trained numbers of a model in one array, each tensor by the name that Hugging Face gives it.
//
// Tensors that are multiplied by the same rows stand one after another, so that they are one matrix for the
// products:
//
//      embedding | layer 0: norm | q k v | o | norm | gate up | down | layer 1 ... | final norm
//
// An adapter (engine/model/adapter.h) is one layer and the ends, without what its variant lacks. Gradients
// and the optimiser's moments are arrays of the same layout.
#pragma once
#include "engine/base/error.h"
#include "engine/model/adapter.h"

#include <stdint.h>

typedef struct Parameter {
    char name[TENSOR_NAME];
    size_t at; // of its first number in the array
    int rows, columns;
    bool vector; // a norm's weight: no weight decay
} Parameter;

// Where a tensor would begin that is not there.
#define NO_PARAMETER SIZE_MAX

// Where the tensors of a layer begin, those that it has.
typedef struct LayerPlan {
    size_t attention_norm; // (width)
    size_t qkv;            // (q_width + 2 kv_width, width)
    size_t o;              // (width, q_width)
    size_t mlp_norm;       // (width)
    size_t gate_up;        // (2 mlp_width, width); without up (mlp_width, width)
    size_t gate_bias;      // (mlp_width)
    size_t down;           // (width, mlp_width)
    bool gated;            // there is an up
} LayerPlan;

typedef struct Parameters {
    Parameter *list; // (count), in the array's order
    int count;
    size_t total;      // numbers
    LayerPlan *layers; // (shape.layers)
    size_t embedding;  // (vocab, width); an adapter has none
    size_t final_norm; // (width)
    size_t head;       // (vocab, width): a model's embedding, an adapter's own, or none
} Parameters;

// A model without biases whose head is its embedding, of `shape`. Release with parameters_release.
bool parameters_plan(Parameters *p, const Shape *shape, Error *e);

// Model `head` of an adapter, of adapter_shape.
bool parameters_plan_adapter(Parameters *p, AdapterVariant v, const Shape *shape, int head, Error *e);
void parameters_release(Parameters *p); // takes an empty one

static inline size_t parameter_size(const Parameter *p) { return (size_t)p->rows * (size_t)p->columns; }

// What training starts from: norms 1, matrices normal with deviation 0.02; those that write to the residual
// stream (o, down) less by the root of 2 * layers, so that it keeps its size through the depth (GPT-2).
void parameters_start(const Parameters *p, const Shape *shape, uint64_t seed, float *weights);

// The weights of a model of that shape, as parameters_plan has them; false where its shape is another.
bool parameters_load(const Parameters *p, const Shape *shape, const Model *from, float *weights, Error *e);

// All numbers of a tensor.
void tensor_load(const Tensor *x, float *out);
