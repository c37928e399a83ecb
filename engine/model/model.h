// A model on disk, opened: its shape, its weights by role, its special ids. No arithmetic here.
//
// model_open reads a Hugging Face directory: config.json, generation_config.json (EOS ids only), and
// model.safetensors or the sharded index. Weights stay in the mapped files; a Tensor is a view into them.
#pragma once
#include "engine/base/error.h"
#include "engine/base/file.h"
#include "engine/base/progress.h"
#include "engine/base/text.h"
#include "engine/core/shape.h"

#include <stdbool.h>
#include <stddef.h>

enum { MODEL_MAX_EOS = 8, MODEL_MAX_SHARDS = 256, SHARD_NAME = 256, MODEL_STAND_IN = 160 };

// A row-major matrix (rows, columns), or a vector (1, columns). A fused tensor (Phi-3's qkv_proj) is seen as
// several of them: data points at the first row of the part.
typedef struct Tensor {
    const void *data; // NULL: the model has no such tensor
    Dtype dtype;
    int rows, columns;
} Tensor;

static inline size_t tensor_bytes(const Tensor *t) {
    return t->data ? (size_t)t->rows * (size_t)t->columns * dtype_size(t->dtype) : 0;
}

// A layer lacks what is absent: attention without q, its MLP without gate. Adapters lack more: an MLP without
// norm reads the residual stream, one without up is not gated, and without down its activations (mlp_width =
// width) are added as they are.
typedef struct LayerWeights {
    Tensor attention_norm;         // (1, width)
    Tensor q;                      // (heads * head_dim, width)
    Tensor k, v;                   // (kv_heads * head_dim, width)
    Tensor q_bias, k_bias, v_bias; // (1, rows of q, k, v), or absent
    Tensor q_norm, k_norm;         // (1, head_dim), of each head of q and of k; or absent
    Tensor o;                      // (width, heads * head_dim)
    Tensor mlp_norm;               // (1, width)
    Tensor gate, up;               // (mlp_width, width)
    Tensor down;                   // (width, mlp_width)
    Tensor gate_bias;              // (1, mlp_width), or absent
} LayerWeights;

// A file of weights, mapped for the model's life.
typedef struct WeightFile {
    FileView view;
    char name[SHARD_NAME]; // in the model's directory
} WeightFile;

typedef struct Model {
    Shape shape;
    Dtype dtype;           // of the weights: that of the first layer's q
    char architecture[64]; // model_type of config.json
    // What it stands in for a real model by ("reference (1f...) inflated to mistral-7b"); empty: it does not.
    // Whatever is shown of such a model's runs says `stand-in`.
    char stand_in[MODEL_STAND_IN];
    int bos; // -1: none
    int eos[MODEL_MAX_EOS], eos_count;
    Tensor embedding;     // (vocab, width); absent where the input is hidden states
    Tensor final_norm;    // (1, width); absent where a Medusa head reads what is normed already
    Tensor head;          // (vocab, width); the embedding where the head is tied
    LayerWeights *layers; // (shape.layers)
    WeightFile *shards;   // (shard_count)
    int shard_count;
    int unused_layers; // in the files, behind those of config.json
    bool held;         // weights are in memory of the process's own, not in the files' pages
} Model;

// False with e filled, m then empty, if anything in the directory is not as it must be.
bool model_open(Model *m, const char *dir, Error *e);

// config.json and generation_config.json alone: shape and ids, no weights (the null backend, memory
// estimates).
bool model_open_config(Model *m, const char *dir, Error *e);

// Brings the weights of a model that was opened from `dir` into memory of the process's own (hold.h).
bool model_hold(Model *m, const char *dir, const Progress *progress, Error *e);

void model_close(Model *m); // takes an empty or half-built one

// Bytes of one layer's weights; of all weights, tied ones once (0 where config.json alone is open).
size_t model_layer_bytes(const Model *m, int layer);
size_t model_bytes(const Model *m);

// --- described

// Shape, parameters, ids; weights too where the model was opened with them.
void model_describe(const Model *m, Text *out);

// --- identified by content

enum { IDENTITY_SAMPLES = 4096, IDENTITY_BYTES = 64 };

// m is open; dir is where it was opened from.
bool model_identity(const Model *m, const char *dir, char out[SHA256_TEXT], Error *e);

// --- checked for numbers that are not finite

// Scans all weights that the model uses. False with e filled if some are not finite: it names the first one's
// tensor, file and place, and tells how many there are.
bool model_check_finite(const Model *m, const char *dir, Error *e);
