// The trained numbers of a model in one array, each tensor under its Hugging Face name.
//
// Tensors that are multiplied by the same rows are adjacent, so that products see them as one matrix:
//
//      embedding | layer 0: norm | q k v | o | norm | gate up | down | layer 1 ... | final norm
//
// An adapter (engine/model/adapter.h) is one layer and the ends, without the tensors that its variant lacks;
// a draft (eagle.c, block.c) is a matrix that joins its inputs and its heads, then its layers. Gradients and
// the optimiser's moments are arrays of the same layout.
#pragma once
#include "engine/base/error.h"
#include "engine/model/adapter.h"

#include <stdint.h>

typedef struct Parameter {
    char name[TENSOR_NAME];
    size_t at; // of its first number in the array
    int rows, columns;
    bool vector; // a norm's weight, which has no weight decay
} Parameter;

enum { FORWARDS_MAX = 8 }; // of a pass, by an EAGLE head

// The place of a tensor that a layer or a model doesn't have.
#define NO_PARAMETER SIZE_MAX

// The places of a layer's tensors. at[W_Q] also begins the matrix q k v (q_width + 2 kv_width, width), and
// at[W_GATE] gate up (2 mlp_width, width; without up mlp_width, width).
typedef struct LayerPlan {
    size_t at[LAYER_WEIGHTS];
} LayerPlan;

static inline bool layer_has(const LayerPlan *l, Weight w) { return l->at[w] != NO_PARAMETER; }

typedef struct Parameters {
    Parameter *list; // (count), in the array's order
    int count;
    size_t total;      // numbers
    LayerPlan *layers; // (shape.layers)
    // Of the weights outside layers; NO_PARAMETER: it has none. A tied head is at the embedding's place.
    size_t at[WEIGHTS];
    size_t mask; // of the states that a mask of P-EAGLE's reads; NO_PARAMETER
} Parameters;

// Plans a model of `shape` without optional weights, whose head is its embedding. Other shapes are an Error.
bool parameters_plan(Parameters *p, const Shape *shape, Error *e);

// Plans model `head` of an adapter; shape: as adapter_shape returns it.
void parameters_plan_adapter(Parameters *p, AdapterVariant v, const Shape *shape, int head);
void parameters_release(Parameters *p); // takes an empty one

static inline size_t parameter_size(const Parameter *p) { return (size_t)p->rows * (size_t)p->columns; }

// Fills in the initial weights: norms are 1, matrices normal with deviation 0.02. Matrices that write to the
// residual stream (o, down) divide that by the root of 2 * layers, so that the stream keeps its size through
// the depth (GPT-2).
void parameters_start(const Parameters *p, const Shape *shape, uint64_t seed, float *weights);

// Copies the weights of a model in the order of parameters_plan; false if its shape differs.
bool parameters_load(const Parameters *p, const Shape *shape, const Model *from, float *weights, Error *e);

// Copies all numbers of a tensor.
void tensor_load(const Tensor *x, float *out);
