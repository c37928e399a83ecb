// Writes weights as model.safetensors, or in shards with an index where they are large. A file is written
// front to back through one buffer, so that memory does not grow with the model, and appears whole or not at
// all. Several shards may be written at once.
#pragma once
#include "engine/base/progress.h"
#include "engine/model/weights.h"

typedef struct TensorPlan {
    char name[TENSOR_NAME];
    size_t rows, columns;
    bool vector;
    Dtype dtype;
    int shard;    // filled by weights_out
    size_t begin; // in its shard's data
} TensorPlan;

typedef struct WeightsOut {
    TensorPlan *tensors; // (count)
    int count;
    size_t shard_bytes; // most in one file; 0: 5 GB
    int threads;        // shards written at once; 0: one. `fill` is called by all of them, `progress` by one
                        // at a time
    // Writes elements [from, from + count) of a tensor, row by row, as its dtype.
    void (*fill)(const void *source, int tensor, size_t from, size_t count, unsigned char *out);
    const void *source;
    Progress progress;
    int shards; // filled by weights_out
    size_t bytes, written;
} WeightsOut;

// The tensor in which a weight stands. False for a weight that the architecture lacks, and for a later part
// of a fused tensor.
bool tensor_plan(const WeightSpec *s, Dtype dtype, TensorPlan *out);

// False before anything is written where the disk has no room for it.
bool weights_out(WeightsOut *w, const char *dir, Error *e);
