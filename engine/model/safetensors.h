// The safetensors format: 8 bytes of header length, a JSON header, the tensors' bytes.
//
//      | n: u64, little-endian | n bytes of JSON | data ................................ |
//        {"name": {"dtype": "BF16", "shape": [r, c], "data_offsets": [begin, end]}, ...}
//
// Every byte is hostile until checked: lengths, shapes and offsets agree with each other and with the file,
// and the tensors tile the data exactly: no overlap, no hole, nothing after the last.
#pragma once
#include "engine/base/error.h"
#include "engine/base/numbers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Files that we write begin their data at a multiple of SAFETENSORS_ALIGN, a cache line: a header is filled
// up with spaces. Where vectors of weights lie across two lines, a step of one token takes 6% longer on a
// Zen 4.
enum { TENSOR_MAX_RANK = 4, TENSOR_NAME = 160, SAFETENSORS_PREFIX = 8, SAFETENSORS_ALIGN = 64 };

// How many spaces fill up a header of this many bytes.
static inline size_t safetensors_padding(size_t header) {
    return (SAFETENSORS_ALIGN - (SAFETENSORS_PREFIX + header) % SAFETENSORS_ALIGN) % SAFETENSORS_ALIGN;
}

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

// Parses a file of `size` bytes; the tensors' bytes themselves are not looked at.
bool safetensors_parse(const unsigned char *data, size_t size, const char *place, Safetensors *out, Error *e);
void safetensors_release(Safetensors *s);

// Where the tensors' bytes begin in a file that was parsed.
size_t safetensors_data(const unsigned char *data);

// NULL if there is none of that name.
const StoredTensor *safetensors_find(const Safetensors *s, const char *name);

// False for a dtype that we do not read.
bool safetensors_dtype(const StoredTensor *t, Dtype *out);
