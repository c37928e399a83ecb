// The arithmetic a session computes in, how fast a device is at it, and the places where f16 can overflow.
//
// Compute f16 rounds activations, keys and values to f16, where numbers from 65520 on become infinite. Such a
// step fails, and its error names the first place in the model that overflowed: by the time the infinity
// reaches the logits, it may look like an ordinary number.
#pragma once
#include "engine/base/error.h"
#include "engine/base/numbers.h"

#include <stddef.h>

// The type that activations, keys and values are rounded to. Sums and the residual stream stay in f32. int8
// is bf16, except that the inputs of products with coded weights have 8 bits (engine/cpu/kernels/int8.h).
typedef enum { COMPUTE_F32, COMPUTE_BF16, COMPUTE_F16, COMPUTE_INT8, COMPUTE_KINDS } Compute;
static inline Dtype compute_dtype(Compute c) {
    return (Dtype[]){DTYPE_F32, DTYPE_BF16, DTYPE_F16, DTYPE_BF16}[c];
}
static inline const char *compute_name(Compute c) {
    return (const char *[]){"f32", "bf16", "f16", "int8"}[c];
}

// A kind as a user chooses it: that of the weights, or by its name.
typedef enum { CHOOSE_WEIGHTS, CHOOSE_F32, CHOOSE_BF16, CHOOSE_F16, CHOOSE_INT8 } ComputeChoice;
static inline Compute compute_choose(ComputeChoice c, Dtype weights) {
    if (c != CHOOSE_WEIGHTS) return (Compute)(c - CHOOSE_F32);
    return weights == DTYPE_F32 ? COMPUTE_F32 : weights == DTYPE_BF16 ? COMPUTE_BF16 : COMPUTE_F16;
}

// The rate in Ceilings at which products with these weights run. A GPU has one rate for both 16-bit formats
// and rounds weights of the other format; a CPU widens f16.
static inline Compute compute_rate(Compute c, Dtype weights) {
    if (c == COMPUTE_F32 || weights == DTYPE_F32) return COMPUTE_F32;
    if (c == COMPUTE_INT8) return COMPUTE_INT8;
    return c == COMPUTE_BF16 && weights == DTYPE_BF16 ? COMPUTE_BF16 : COMPUTE_F16;
}

// The measured limits of a device: the two floors under a step's time.
typedef struct Ceilings {
    double bytes_per_s;                     // read from its memory
    double operations_per_s[COMPUTE_KINDS]; // of products; a multiply-add counts as two; 0: not measured
    const char *isa;                        // of the kernels that were measured
    int threads;
    size_t few_bytes; // bytes_per_s was measured on only this much, maybe from a cache; 0: on enough
} Ceilings;

// Whether a GPU rounds these weights as it loads them, so that the model differs slightly from the published
// one.
static inline bool compute_rounds(Compute c, Dtype weights) {
    return c != COMPUTE_F32 && weights != DTYPE_F32 && compute_dtype(c) != weights;
}

// The values that a layer rounds, in the order it computes them.
typedef enum {
    ROUNDED_FC_INPUT, // in front of the first layer
    ROUNDED_ATTENTION_INPUT,
    ROUNDED_HEADS, // q, k and v
    ROUNDED_ATTENTION_OUTPUT,
    ROUNDED_MLP_INPUT,
    ROUNDED_MLP_PRODUCT, // activation(gate) * up
    ROUNDED_PLACES,
} Rounded;

static const unsigned OVERFLOW_NONE = ~0u;

// A place as a number, in the order of computation. The head's input counts as a layer after the last.
static inline unsigned overflow_place(int layer, Rounded what) {
    return (unsigned)layer * ROUNDED_PLACES + (unsigned)what;
}

// Writes the error of an overflow at `place`; returns false.
static inline bool overflow_refuse(unsigned place, int layers, Error *e) {
    static const char *const names[] = {"fc's input",      "the attention's input",
                                        "q, k or v",       "the attention's output",
                                        "the MLP's input", "the MLP's gated product"};
    int layer = (int)(place / ROUNDED_PLACES);
    if (layer < layers)
        return error_input(e,
                           "layer %d: %s has a number beyond 65504, which compute f16 cannot hold; --compute "
                           "bf16 and f32 can",
                           layer, names[place % ROUNDED_PLACES]);
    return error_input(e, "the head's input has a number beyond 65504, which compute f16 cannot hold; "
                          "--compute bf16 and f32 can");
}
