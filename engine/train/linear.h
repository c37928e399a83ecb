// y = x W^T for a weight W (outputs, inputs), and the two products that take its gradients back.
//
// Each function works on a share: of rows, or for the weight's gradient of outputs. Shares touch nothing in
// common, so threads need no order among them.
#pragma once
#include "engine/train/kernels/kernels.h"

typedef struct Linear {
    const TrainKernels *kernels;
    float *scratch; // of this thread
    int inputs, outputs;
    size_t y_stride; // floats from one row of y, or dy, to the next
    float *panels;   // of the weight, packed for forward or for backward_input; NULL: packed in each call
} Linear;

// Floats that panels need, whichever way.
size_t linear_panels_size(const TrainKernels *k, int inputs, int outputs);

// A thread's share of the packing of l->panels: for linear_backward_input, or for linear_forward.
void linear_pack(const Linear *l, const float *weight, bool backward, int thread, int threads);

// Rows [from, to). y = x W^T, or y += x W^T.
void linear_forward(const Linear *l, const float *x, const float *weight, float *y, int from, int to,
                    bool add);

// Rows [from, to). dx = dy W.
void linear_backward_input(const Linear *l, const float *dy, const float *weight, float *dx, int from,
                           int to);

// Outputs [from, to). dweight += dy^T x over all rows.
void linear_backward_weight(const Linear *l, const float *dy, const float *x, int rows, float *dweight,
                            int from, int to);
