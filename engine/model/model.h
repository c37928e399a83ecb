// A model on disk, opened: its shape, its weights by role, its special ids. No arithmetic here.
//
// model_open reads a Hugging Face directory: config.json, generation_config.json (EOS ids only), and
// model.safetensors or the sharded index. Weights stay in the mapped files; a Tensor is a view into them.
//
// A Model is a description and owns nothing: copies are free, and one without weights needs no closing.
// ModelWeights owns what its tensors are views into.
#pragma once
#include "engine/base/error.h"
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/progress.h"
#include "engine/base/text.h"
#include "engine/core/shape.h"
#include "engine/model/roles.h"
#include "engine/model/tensor.h"

#include <stdbool.h>
#include <stddef.h>

enum { MODEL_MAX_EOS = 8, MODEL_MAX_SHARDS = 256, SHARD_NAME = 256, MODEL_STAND_IN = 160 };

// A layer without q has no attention, one without gate no MLP. In adapters, an MLP without a norm reads the
// residual stream, one without up isn't gated, and without down its activations (mlp_width = width) are added
// as they are.
typedef struct LayerWeights {
    Tensor w[LAYER_WEIGHTS];
    Tensor *experts; // (experts.count, EXPERT_WEIGHTS); NULL: the layer has none
} LayerWeights;

// How a GGUF file stores a model.
typedef struct GgufForm {
    bool is;         // the model is of such a file
    bool paired;     // rows of q and k: both of a pair that rope turns, then the next pair
    bool post_named; // the MLP's norm has the name of a norm after the attention
    unsigned fused;  // 1 << group for each WeightGroup that is stored as one tensor
} GgufForm;

// How a directory's files pack codes (packed.c), by its quantization_config.
typedef enum { PACKED_NOT, PACKED_AWQ, PACKED_GPTQ, PACKED_TENSORS } PackedForm;
typedef struct Packing {
    PackedForm form;
    int bits, group; // group 0: all columns of a row
    bool one_less;   // stored zero points are less by one
    bool ordered;    // columns may be in another order than their groups: such weights become values
} Packing;

// A file of weights, mapped for the model's life.
typedef struct WeightFile {
    FileView view;
    char name[SHARD_NAME]; // in the model's directory
    size_t header;         // bytes before the data
} WeightFile;

typedef struct ModelWeights {
    char *dir;         // that the model was opened from
    WeightFile *files; // (file_count)
    int file_count;
    LayerWeights *layers; // (shape.layers): the model's
    Tensor *experts;      // those of all layers with experts
    MemBlocks rearranged; // weights that files store in another form (weights.h)
    bool exact, held;     // by model_open_exact; in the process's own memory, not the files' pages
    // Of a model without files (make/synth.h), else NULL: the rule of its numbers, and all it depends on.
    struct SynthNumbers *numbers;
    const char *numbers_config;
    void (*free_numbers)(struct SynthNumbers *n);
} ModelWeights;

typedef struct Model {
    Shape shape;
    Dtype dtype;                   // of the weights: that of the first layer's q
    int bits, group;               // of the first layer's q, if it is codes (tensor.h); else 0
    bool unfused;                  // files are in the form of quantise.h
    Packing packing;               // how they pack weights; zero: not
    char architecture[64];         // model_type of config.json
    char stand_in[MODEL_STAND_IN]; // how a proxy was made ("reference (1f...) inflated to mistral-7b"), or
                                   // that weights are random; shown with every result; empty: neither
    // The form of its codes and the model they were made from, "Q4_1 (GGUF), of Llama 3"; shown with every
    // result; empty: weights aren't codes.
    char quantised[MODEL_STAND_IN];
    GgufForm gguf; // how its file stores it; zero: as safetensors
    int bos;       // -1: none
    int eos[MODEL_MAX_EOS], eos_count;
    Tensor embedding;                  // (shape_tokens, width); absent if the input is hidden states
    Tensor final_norm;                 // (1, width); absent in a Medusa head, whose input is already normed
    Tensor final_norm_bias, head_bias; // (1, width), (1, vocab)
    Tensor positions;                  // (context, width), if they are learned
    Tensor head;                       // (vocab, width); the embedding if the head is tied
    Tensor fc, fc_bias; // (width, shape_fc_width), (1, width): of a model of tokens and hidden states
    Tensor token_norm;  // (1, width): of the embedding's rows, on their way to paired attention, or MTP's fc
    Tensor fc_norm;     // (1, shape_fc_width): of the given states, on their way to fc
    Tensor state_norm, markov_from, markov_to, markov_gate, markov_gate_bias; // block.h; the first MTP's, too
    Tensor confidence, confidence_bias;                                       // block.h
    LayerWeights *layers;               // (shape.layers); NULL: only the config is open
    int valued;                         // weights that files have as codes, and memory as values
    int unused_layers, mtp_layers;      // in the files: after those of config.json; a draft (adapter.h)
    int name_form;                      // of the files' tensors (weights.c)
    const struct SynthNumbers *numbers; // the rule by which a device makes weights; NULL: they are there
} Model;

// dir may also be a GGUF file, which has all of this. Its quantised tensors become codes (tensor.h) in memory
// or, exact, values in f32; packed weights have no exact ones. False with e filled, m and w empty, if
// anything in the directory is wrong.
bool model_open(Model *m, ModelWeights *w, const char *dir, Error *e);
bool model_open_exact(Model *m, ModelWeights *w, const char *dir, Error *e);

// Reads config.json and generation_config.json only: shape and ids, no weights (the null backend, estimates).
bool model_open_config(Model *m, const char *dir, Error *e);

// Copies a model's weights into the process's own memory (file_hold).
bool model_hold(Model *m, ModelWeights *w, const Progress *progress, Error *e);

// False with e filled if one of the files changed since the model was opened.
bool model_is_unchanged(const ModelWeights *w, Error *e);

void model_close(ModelWeights *w); // takes an empty or half-built one

// Bytes of one layer's weights, and of all weights, tied ones counted once (0 if only the config is open).
size_t model_layer_bytes(const Model *m, int layer); // without its experts
size_t model_expert_bytes(const Model *m);           // of the largest expert; 0: there are none
size_t model_fc_bytes(const Model *m);               // of the weights in front of the first layer
size_t model_bytes(const Model *m);
size_t model_expected_bytes(const Model *m); // from the config only, about

const char *model_dtype_name(const Model *m); // "BF16", "Q8", "Q4": most of the layers' numbers
// The first weight of codes (tensor.h) that products read, NULL if there isn't one.
const Tensor *model_coded(const Model *m);

// Parameters of the whole model with embedding and head (counted once if tied); those of them that a token
// goes through, which chooses some of the experts; and the same of all layers.
size_t shape_parameters(const Shape *s);
size_t shape_active_parameters(const Shape *s);
size_t shape_layers_parameters(const Shape *s);
// Those of a head that repeats the embedding, perhaps in codes of another format. 0: it's tied, or its own.
size_t model_repeated_parameters(const Model *m);

// --- described
void model_describe(const Model *m, const ModelWeights *w, Text *out);

// --- identified by content

enum { IDENTITY_SAMPLES = 4096, IDENTITY_BYTES = 64 };

// A hash of config and weights; without weights of the config only.
bool model_identity(const ModelWeights *w, const char *dir, char out[SHA256_TEXT], Error *e);

// --- checked for numbers that are not finite

// False with e filled if some weights that it uses aren't finite: where the first is, and how many.
bool model_check_finite(const Model *m, const ModelWeights *w, Error *e);
