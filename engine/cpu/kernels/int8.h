// Compute int8: what a product of codes (engine/model/tensor.h) with activations of 8 bits is, to the bit, on
// every kernel set and processor.
//
// A row's activations are rounded in blocks of 32 columns, each with its own scale, int8_round. Sums of codes
// times activations are integers and exact; they are taken in sixteen lanes, as all sums (lanes.h):
//
//      16 blocks      as long as there are as many: the i-th of them has lane i
//      the rest       4 blocks at a time: the i-th of these has the lanes 4 i to 4 i + 3
//                     lane 4 i + j has, of codes of 4 bits, the columns 8 j to 8 j + 7 of the block,
//                     of others 4 j to 4 j + 3, and 16 more than these
//      groups of 16   the same as two sums, of the first and the last 16 columns, each with its own scale
//
// and a lane becomes fma(sum, scale of the weights * scale of the activations, lane), from the first block to
// the last. Codes of 4 and 5 bits have a low, times the sum of a block's activations: before the products of
// 16 blocks, or of the rest, lane i becomes fma(low, sum * scale of the activations, lane) for the i-th of
// them. Codes of 6 bits are those less 32, as 8 bits have them.
// In the end the lanes are added as lanes_sum does.
#pragma once
#include "engine/base/numbers.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { INT8_BLOCK = 32, INT8_WIDE = 16, INT8_NARROW = 4 }; // columns; blocks at a time
enum { INT8_WORDS = 8, INT8_VECTOR = 64 }; // a block's words of four codes; bytes of one of sixteen blocks

typedef struct Int8Block {
    int8_t code[INT8_BLOCK];
    float scale, sum; // of the codes, times the scale
} Int8Block;

// To the nearest integer of x * (127 / largest), ties to even. A block of zeros, or below 2^-100, has scale
// 0; one with an infinity or a NaN has scale NaN.
static inline void int8_round(const float *x, Int8Block *out) {
    const uint32_t infinite = 0x7f800000u;
    uint32_t bits[INT8_BLOCK], largest = 0;
    int32_t sum = 0;
    memcpy(bits, x, sizeof bits);
    for (int i = 0; i < INT8_BLOCK; i++) {
        int32_t size = (int32_t)(bits[i] & 0x7fffffffu);
        largest = (int32_t)largest > size ? largest : (uint32_t)size;
    }
    float most, up;
    memcpy(&most, &largest, sizeof most);
    bool none = largest >= infinite || most < 0x1p-100f;
    up = none ? 0 : 127 / most;
    for (int i = 0; i < INT8_BLOCK; i++) {
        float y = none ? 0 : x[i] * up + 0x1.8p23f; // the integer is in the low digits
        uint32_t digits;
        memcpy(&digits, &y, sizeof digits);
        int8_t code = (int8_t)(digits & 0xff);
        out->code[i] = code;
        sum += code;
    }
    out->scale = largest >= infinite ? NAN : none ? 0 : most / 127;
    out->sum = out->scale * (float)sum;
}
