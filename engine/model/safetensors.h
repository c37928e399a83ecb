// The safetensors format: 8 bytes of header length, a JSON header, the tensors' bytes.
//
//      | n: u64, little-endian | n bytes of JSON | data ................................ |
//        {"name": {"dtype": "BF16", "shape": [r, c], "data_offsets": [begin, end]}, ...}
//
// Every byte is hostile until checked: lengths, shapes and offsets agree with each other and with the file,
// and the tensors tile the data exactly, without overlap, hole or rest.
#pragma once
#include "engine/base/numbers.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TENSOR_MAX_RANK = 4, TENSOR_NAME = 160 };

typedef struct StoredTensor {
    char name[TENSOR_NAME];
    char dtype[8]; // as written: "BF16", "I64", ...
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
    size_t begin, end; // bytes of the data, counted from the file's start
} StoredTensor;

typedef struct Safetensors {
    StoredTensor *tensors; // (count), sorted by name
    size_t count;
} Safetensors;

// Parses a file of `size` bytes, without a look at the tensors' own bytes.
bool safetensors_parse(const unsigned char *data, size_t size, const char *place, Safetensors *out, Error *e);
struct Gguf;                                           // engine/base/gguf.h
Safetensors safetensors_of_gguf(const struct Gguf *g); // its tensors, under their names there
void safetensors_release(Safetensors *s);

// Where the tensors' bytes begin in a parsed file.
size_t safetensors_data(const unsigned char *data);

// NULL if there is no such tensor.
const StoredTensor *safetensors_find(const Safetensors *s, const char *name);

// False for dtypes that we don't read.
bool safetensors_dtype(const StoredTensor *t, Dtype *out);

// --- writing

// Builds everything before the data: begin, one entry per tensor in the order of the data, end. Spaces after
// the header make the data begin at a cache line: if vectors of weights cross lines, a step of one token
// takes 6% longer on a Zen 4. An entry's planes are 0 if it has two dimensions, and rows if it has one; `at`
// counts bytes from the start of the data.
void safetensors_begin(Text *header);
void safetensors_entry(Text *header, const char *name, const char *dtype, size_t planes, size_t rows,
                       size_t columns, size_t at, size_t bytes);
void safetensors_end(Text *header);

typedef struct TensorOut {
    const char *name;
    const char *dtype; // as safetensors writes it: "F32"
    size_t rows;       // 0: one dimension
    size_t columns;
    const void *data; // (rows, columns)
    size_t bytes;     // of data
} TensorOut;

// Builds a file of tensors in memory and adds it to `out`. False with e filled if memory runs out for it,
// or `out` refuses it.
struct Output; // engine/base/output.h
bool safetensors_add(struct Output *out, const char *path, const TensorOut *tensors, size_t count, Error *e);
bool safetensors_write(const char *path, const TensorOut *tensors, size_t count, Error *e); // alone
