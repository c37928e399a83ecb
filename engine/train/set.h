// What a kernel set is made of; each kernels_*.c includes it under its own compiler flags.
#pragma once
#include "engine/train/product.h"
#include "engine/train/rows.h"

// A kernel set's row of the table: every function of product.h and rows.h.
#define TRAIN_KERNELS(set)                                                                              \
    {                                                                                                   \
        .name = set, .row_unit = TILE_ROWS, .scratch = PRODUCT_SCRATCH, .product = product,             \
        .rmsnorm_forward = rmsnorm_forward, .rmsnorm_backward = rmsnorm_backward,                       \
        .rope_forward = rope_forward, .rope_backward = rope_backward, .swiglu_forward = swiglu_forward, \
        .swiglu_backward = swiglu_backward, .softmax_forward = softmax_forward,                         \
        .softmax_backward = softmax_backward, .cross_entropy_forward = cross_entropy_forward,           \
        .cross_entropy_backward = cross_entropy_backward, .add = add, .sum_of_squares = sum_of_squares, \
        .adamw = adamw                                                                                  \
    }
