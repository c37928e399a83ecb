// Tensors by role: finds each weight of a model in its shards, whatever the architecture calls or packs it,
// and checks its shape against the config.
#pragma once
#include "engine/model/model.h"
#include "engine/model/safetensors.h"

// What a weight is called and how large it must be; a fused tensor is a slice of rows of a larger one.
typedef struct WeightSpec {
    char name[TENSOR_NAME];
    int rows, columns; // of this weight
    int first_row;     // where it begins in the stored tensor
    int stored_rows;   // rows of the stored tensor
    bool vector;       // stored with one dimension (columns)
    bool optional;
} WeightSpec;

// The order of LayerWeights' fields.
enum {
    WEIGHT_ATTENTION_NORM,
    WEIGHT_Q,
    WEIGHT_K,
    WEIGHT_V,
    WEIGHT_Q_BIAS,
    WEIGHT_K_BIAS,
    WEIGHT_V_BIAS,
    WEIGHT_Q_NORM,
    WEIGHT_K_NORM,
    WEIGHT_O,
    WEIGHT_MLP_NORM,
    WEIGHT_GATE,
    WEIGHT_UP,
    WEIGHT_DOWN,
    WEIGHT_GATE_BIAS,
    LAYER_WEIGHTS
};

// The weights of one layer and the fields of LayerWeights they belong to, in the same order.
int weights_of_layer(const Model *m, int layer, WeightSpec specs[LAYER_WEIGHTS]);
Tensor *weights_field(LayerWeights *w, int which);

// embedding, final norm, head.
int weights_of_ends(const Model *m, WeightSpec specs[3]);

typedef struct Shard {
    Safetensors header;
    const unsigned char *data;
    const char *name;
} Shard;

// Fills one Tensor from the shards; a spec without a name is no weight.
bool weight_bind(Tensor *out, const WeightSpec *s, const Shard *shards, int count, const char *dir, Error *e);

// Fills every Tensor of m (layers allocated by the caller) from the shards.
bool weights_bind(Model *m, const Shard *shards, int count, const char *dir, Error *e);
