// Writes tensors in memory as a safetensors file (engine/model/safetensors.h), which appears whole or not at
// all.
#pragma once
#include "engine/base/output.h"

#include <stddef.h>

typedef struct TensorOut {
    const char *name;
    const char *dtype; // as safetensors writes it: "F32"
    size_t rows;       // 0: one dimension
    size_t columns;
    const void *data; // (rows, columns)
    size_t bytes;     // of data
} TensorOut;

// Adds the file to `out`. False with e filled if there is no memory for it, or `out` refuses it.
bool tensors_add(Output *out, const char *path, const TensorOut *tensors, size_t count, Error *e);
bool tensors_write(const char *path, const TensorOut *tensors, size_t count, Error *e);
