// What a kernel set is made of; each kernels_*.c includes it under its own compiler flags, after the product
// that it takes: product.h in f32, or product_bf16.h.
#pragma once
#include "engine/train/kernels/row_losses.h"

// A kernel set's row of the table: the product and every function of rows.h and row_losses.h. round: what the
// product does to its operands.
#define TRAIN_KERNELS(set, round)                                                                       \
    {                                                                                                   \
        .name = set, .rounds_to_bf16 = round, .row_unit = TILE_ROWS, .scratch = PRODUCT_SCRATCH,        \
        .product = product, .panels_size = panels_size, .pack = pack, .panel_unit = PANEL,              \
        .rmsnorm_forward = rmsnorm_forward, .rmsnorm_backward = rmsnorm_backward,                       \
        .rope_forward = rope_forward, .rope_backward = rope_backward, .swiglu_forward = swiglu_forward, \
        .swiglu_backward = swiglu_backward, .softmax_forward = softmax_forward,                         \
        .softmax_backward = softmax_backward, .cross_entropy_forward = cross_entropy_forward,           \
        .cross_entropy_backward = cross_entropy_backward, .distillation_forward = distillation_forward, \
        .distillation_backward = distillation_backward, .add = add, .sum_of_squares = sum_of_squares,   \
        .adamw = adamw                                                                                  \
    }
