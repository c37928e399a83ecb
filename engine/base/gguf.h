// The GGUF format of llama.cpp: values by key, then tensors, then their bytes; all little-endian.
//
//      | "GGUF" | version | tensors: u64 | values: u64 | values | tensors | padding | data ............ |
//        a text:   length: u64, bytes
//        a value:  key (a text), type, content; a list has its elements' type, their number, the elements
//        a tensor: name (a text), rank, dimensions: u64, format, offset in the data: u64
//
// Every byte is hostile until checked: numbers against the bytes that are left, products for overflow, names
// for repetition, and the tensors tile the data with nothing but padding between them. A list of lists is
// refused, so nothing nests. A parsed file points into its bytes and copies only keys and names.
#pragma once
#include "engine/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_KEY = 128, GGUF_NAME = 96, GGUF_MAX_RANK = 4 };

typedef enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_TEXT,
    GGUF_LIST,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
} GgufType;

typedef struct GgufValue {
    char key[GGUF_KEY];
    GgufType type; // of a list: of its elements
    bool list;
    size_t count;            // of elements, 1 if it isn't a list
    const unsigned char *at; // the first element
    const unsigned char *end;
} GgufValue;

// How numbers are stored: blocks of a few numbers each. The ids are those of ggml.
typedef struct GgufFormat {
    int id;
    const char *name;
    int numbers, bytes; // of a block; 0: we don't read this format
} GgufFormat;

typedef struct GgufTensor {
    char name[GGUF_NAME];
    const GgufFormat *format;
    int rank;
    int64_t dims[GGUF_MAX_RANK]; // the one of neighbouring numbers first
    size_t begin, end;           // bytes of the data, counted from the file's start
} GgufTensor;

typedef struct Gguf {
    const char *place;   // the file, for messages
    GgufValue *values;   // (value_count), sorted by key
    GgufTensor *tensors; // (tensor_count), sorted by name
    size_t value_count, tensor_count;
    size_t header; // bytes before the data
} Gguf;

// Whether a path is that of a GGUF file: its name ends in .gguf.
bool gguf_named(const char *path);

// Parses a file of `size` bytes, without a look at the tensors' own. place must outlive the result.
bool gguf_parse(const unsigned char *data, size_t size, const char *place, Gguf *out, Error *e);
void gguf_release(Gguf *g); // takes a zeroed one

const GgufValue *gguf_find(const Gguf *g, const char *key); // NULL if there is no such key
const GgufTensor *gguf_tensor(const Gguf *g, const char *name);

// Number i of a value; 0 if it holds texts.
double gguf_number(const GgufValue *v, size_t i);

// A value as JSON: a number, true or false, a text, or a list of numbers whose members are all equal as that
// number. NULL for other lists, and for text that isn't UTF-8 or has a NUL.
json_t *gguf_json(const GgufValue *v);

// A walk over the texts of a list, which is empty if v is NULL or no list of texts.
typedef struct GgufTexts {
    const unsigned char *at;
    size_t left;
} GgufTexts;

GgufTexts gguf_texts(const GgufValue *v);
bool gguf_next(GgufTexts *texts, const char **text, size_t *n); // false at the end
