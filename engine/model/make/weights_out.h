// Writes weights as model.safetensors, or as shards with an index if they are large. A file is written front
// to back through one buffer, so that memory does not grow with the model, and appears whole or not at all.
// Several shards may be written at once.
#pragma once
#include "engine/base/progress.h"
#include "engine/model/make/made.h"
#include "engine/model/weights.h"

#include <string.h>

typedef struct TensorPlan {
    char name[TENSOR_NAME];
    size_t rows, columns;
    size_t planes; // 0: two dimensions, or one
    bool vector;
    Dtype dtype;
    int bits;  // 8 or 4: bytes of such codes (tensor.h), whatever the dtype; 0: numbers
    int shard; // filled by weights_out
} TensorPlan;

typedef struct WeightsOut {
    TensorPlan *tensors; // (count)
    int count;
    size_t shard_bytes; // most in one file; 0: 5 GB
    int threads;        // shards written at once; 0: one. Each thread calls `fill`, one at a time `progress`
    // Writes elements [from, from + count) of a tensor, row by row, as its dtype.
    void (*fill)(const void *source, int tensor, size_t from, size_t count, unsigned char *out);
    const void *source;
    Progress progress;
    int shards; // filled by weights_out
    size_t bytes, written;
} WeightsOut;

// Writes element i of a buffer of this type.
static inline void weight_put(Dtype dtype, unsigned char *out, size_t i, float x) {
    uint16_t h = dtype == DTYPE_F16 ? f32_to_f16(x) : f32_to_bf16(x);
    if (dtype == DTYPE_F32) memcpy(out + 4 * i, &x, 4);
    else memcpy(out + 2 * i, &h, 2);
}

// The tensor that stores a weight. False for a weight that the architecture lacks, and for the later parts of
// a fused tensor.
bool tensor_plan(const WeightSpec *s, Dtype dtype, TensorPlan *out);
size_t plan_bytes(const TensorPlan *t);

// False, before anything is written, if the disk has no room.
bool weights_out(WeightsOut *w, const char *dir, Error *e);

// A whole directory: the config, the tokenizer of the model in `tokenizer` (NULL: none), and the weights.
bool weights_made(WeightsOut *w, const Made *m, const json_t *config, const char *tokenizer, Error *e);
