// A weight in memory: its values as a file has them, or codes of 4, 5, 6 or 8 bits that stand for values in
// bf16.
//
// The columns of a coded row are cut into groups, and a value is
//
//      bf16(code * scale + low)         rounded to f32 after the product, after the sum, and then to bf16
//
// with the group's own scale and low. Codes of 8 and 6 bits are signed; kernels have none with a low, so
// these become values when a file is opened. Codes of 4 and 5 bits are 0 to 15 and 0 to 31. A product with a
// coded weight is, bit for bit, the product with these values: dtype is DTYPE_BF16, and only code that reads
// elements asks for codes.
//
//      row of codes   | group 0: 32 codes | group 1: 32 codes | ..        rows one after another
//      5 and 6 bits   | lower four bits of all blocks | upper ones of all blocks |
//      row of scales  | group 0 | group 1 | ..                            an array of its own
//
// Of 4 bits two neighbouring columns are in a byte, the first in its low half. Codes of 5 and 6 bits, the
// latter with 32 more, are in two planes. Of a block of 32 columns, byte c of sixteen has the lower bits of
// column c in its low half, and those of column 16 + c. The upper bits of column c are, of 5 bits, bit c / 4
// of byte c % 4 of four; of 6 bits, the two from bit c / 8 * 2 on, of byte c % 8 of eight.
//
// Scales have at most 15 significant bits (18 for codes of 6 bits in groups of 16, 16 of 8; 17 for codes of 5
// bits, 20 of 4), so that code * scale is exact. A value is 0 or at least 2^-126, and below 2^111.
#pragma once
#include "engine/base/numbers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    SCALES_F16,    // one f16 for each group; of 4 bits low is -8 * scale: codes less 8; of 5 bits -16 * scale
    SCALES_F32,    // one f32; low as above
    SCALES_PAIRS,  // ScalePair
    SCALES_NESTED, // ScaleNest, for GROUPS_NESTED groups at a time; of 4 and 5 bits
    SCALES_HALVES, // two f16: scale and low
    SCALES_TIMES,  // ScaleTimes, for GROUPS_TIMES groups at a time; of 6 and 8 bits
} ScaleKind;

enum { GROUPS_NESTED = 8, GROUPS_TIMES = 16, GROUP_LEAST = 32, GROUP_MOST = 128 };
enum { PLANE_BLOCK = 32, PLANE_BITS = 4 }; // columns whose lower bits are 16 bytes

typedef struct ScalePair {
    float scale, low;
} ScalePair;

// scale = f16(scale) * factor[i], low = -(f16(low) * lows[i]), of the i-th of GROUPS_NESTED groups.
typedef struct ScaleNest {
    uint16_t scale, low;
    uint8_t factor[GROUPS_NESTED], lows[GROUPS_NESTED];
} ScaleNest;

// scale = f16(scale) * factor[i], of the i-th of GROUPS_TIMES groups.
typedef struct ScaleTimes {
    uint16_t scale;
    int8_t factor[GROUPS_TIMES];
} ScaleTimes;

typedef struct Codes {
    int bits;  // 0: the tensor's data are its values, and the rest is unused
    int group; // columns of a group: 32, 64 or 128, of 8 bits also 16, of 6 bits 16, of 5 bits 32; divides
               // the columns, as GROUPS_NESTED groups do if nested, or GROUPS_TIMES
    ScaleKind kind;
    const void *scales; // (rows, groups of a row)
} Codes;

// A row-major matrix (rows, columns), or a vector (1, columns). A fused tensor (Phi-3's qkv_proj) becomes
// several of them: data points at the first row of a part.
typedef struct Tensor {
    const void *data; // NULL: the model has no such tensor
    Dtype dtype;      // of the values
    int rows, columns;
    Codes codes;
} Tensor;

// Bytes of a row's values or codes; of its scales.
size_t tensor_row_bytes(const Tensor *t);
size_t tensor_row_scale_bytes(const Tensor *t);

// All bytes; 0 without data.
static inline size_t tensor_bytes(const Tensor *t) {
    return t->data ? (size_t)t->rows * (tensor_row_bytes(t) + tensor_row_scale_bytes(t)) : 0;
}

// The bytes of a coded tensor's values, and of others: those that a device reads which decodes at the start.
static inline size_t tensor_value_bytes(const Tensor *t) {
    return t->data ? (size_t)t->rows * (size_t)t->columns * dtype_size(t->dtype) : 0;
}

// Rows [first, first + count) as a tensor.
Tensor tensor_rows(const Tensor *t, int first, int count);

// Whether codes are in two planes; whether they have a low.
static inline bool codes_planes(int bits) { return bits == 5 || bits == 6; }
static inline bool codes_lowered(int bits) { return bits == 4 || bits == 5; }

// The code at a place of a coded tensor: signed, or from 0 on.
int tensor_code(const Tensor *t, size_t row, size_t column);

// Stores `count` such codes from column `from` of a row on; with planes whole blocks.
void codes_store(int bits, const int8_t *codes, size_t from, size_t count, int columns, void *row);

// Scale and low of a group.
ScalePair tensor_scale(const Tensor *t, size_t row, size_t group);

// The value at a place, any type.
float tensor_value(const Tensor *t, size_t row, size_t column);

// A row's values, (columns), of any type.
void tensor_row(const Tensor *t, size_t row, float *out);

// The values of a coded row: bf16, (columns). Kernels must give the same bits.
void tensor_decode_row(const Tensor *t, size_t row, uint16_t *out);

// The same before they are rounded: f32, (columns).
void tensor_exact_row(const Tensor *t, size_t row, float *out);

// The first group of all rows with a scale or low that isn't finite; their number if there is none.
size_t tensor_bad_scale(const Tensor *t);

// --- from the blocks of GGUF files (blocks.c)

// A quantised format of such a file.
typedef struct BlockFormat {
    const char *name;
    int numbers, bytes; // of a block in the file
    Codes codes;        // of the result
    void (*unpack)(const uint8_t *block, int8_t *codes, void *scales);
} BlockFormat;

// NULL if there is no format of that name.
const BlockFormat *block_format(const char *name);

// Codes and scales of a row of whole blocks. The two have room for tensor_row_bytes and
// tensor_row_scale_bytes.
void block_row(const BlockFormat *f, const uint8_t *blocks, int columns, void *codes, void *scales);
