// A model's matrices as codes of 8 or 4 bits (tensor.h), in a directory of our own form (docs/models.md):
//
//      config.json   the model's own, with     "quantization_config": {"quant_method": "outpace", "bits": 4,
//                                                                      "group_size": 32}
//      X.weight         (rows, columns * bits / 8): I8, or U8 of two codes each
//      X.weight.scales  (rows, columns / group): F16
//
// Every matrix is coded: embedding and head with 8 bits whatever the others have, since errors there reach
// every token and every logit. Vectors and the routers of experts stay as they are. A weight has a tensor of
// its own, named as in Llama if the architecture fuses it with others, and is stored as it is read.
//
// Scales fit the largest number of their group; of 4 bits, the best of a few is taken. The model is
// marked by the name of the original and the start of its hash (Model.quantised).
#pragma once
#include "engine/base/progress.h"
#include "engine/model/make/weights_out.h"

typedef struct QuantiseOptions {
    const char *from;   // a model's directory
    int bits;           // 8 or 4
    int group;          // columns that share a scale: 32, 64 or 128
    bool force;         // replace a model that something else made
    size_t shard_bytes; // most in one file of weights; 0: 5 GB
    Progress progress;
} QuantiseOptions;

// Writes into dir by the rules of made.h. Refuses models of codes, and groups that don't divide the columns
// of a matrix.
bool model_quantise(const char *dir, const QuantiseOptions *o, Error *e);

// Whether a weight is coded; the tensors of its codes and scales.
bool quantise_codes(const WeightSpec *s);
bool quantise_plan(const WeightSpec *s, int bits, int group, TensorPlan *codes, TensorPlan *scales, Error *e);

// The scale and codes of a group of n <= GROUP_MOST numbers: n codes of 8 bits, or n / 2 bytes of 4.
uint16_t quantise_group(const float *x, int n, int bits, unsigned char *codes);
