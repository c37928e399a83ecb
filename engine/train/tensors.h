// Writes a safetensors file (see engine/model/safetensors.h) of tensors that are in memory. The file appears
// whole or not at all.
#pragma once
#include "engine/base/output.h"

#include <stddef.h>

typedef struct TensorOut {
    const char *name;
    const char *dtype; // as safetensors writes it: "F32"
    size_t rows;       // 0: of one dimension
    size_t columns;
    const void *data;
    size_t bytes;
} TensorOut;

// Adds the file to `out`.
bool tensors_add(Output *out, const char *path, const TensorOut *tensors, size_t count, Error *e);
bool tensors_write(const char *path, const TensorOut *tensors, size_t count, Error *e);
