// The products of a pass with the matrices of layers, and with heads (linear.c).
#pragma once
#include "engine/train/pass.h"

// y = x W^T for a weight W (outputs, inputs), and the two products of its gradients.
typedef struct Linear {
    const TrainKernels *kernels;
    float *scratch; // of this thread
    int inputs, outputs;
    size_t y_stride; // floats from one row of y, or dy, to the next
    float
        *panels; // the packed weight, for linear_forward or for linear_backward_input; NULL: each call packs
} Linear;

// The products of a thread with a matrix of the pass's layer, which matrices_pack has packed.
Linear pass_linear(const Pass *p, int thread, LayerMatrix m);

// Rows [from, to): y = x W^T, or y += x W^T.
void linear_forward(const Linear *l, const float *x, const float *weight, float *y, int from, int to,
                    bool add);

// Rows [from, to): dx = dy W.
void linear_backward_input(const Linear *l, const float *dy, const float *weight, float *dx, int from,
                           int to);

// A thread's share of the gradient of a weight, if the network has it, and of a bias, dy's rows being
// `stride` apart; backward.c.
void pass_weight(const Pass *p, const Linear *l, int thread, int threads, const float *dy, const float *x,
                 size_t weight);
void pass_bias(const Pass *p, int thread, int threads, const float *dy, int stride, int width, size_t bias);

// Adds the parts of a norm weight's gradient to it, in order; of slopes.head_norms one of three; backward.c.
void pass_add_parts(const Pass *p, const float *parts, size_t weight);
void pass_add_head_norm(const Pass *p, int which, size_t weight);

// Outputs [from, to): dweight += dy^T x over all rows.
void linear_backward_weight(const Linear *l, const float *dy, const float *x, int rows, float *dweight,
                            int from, int to);

// Allocates n->panels for the matrices of any layer, and n->head_panels. False if memory runs out.
bool matrices_open(Network *n);

// The products with a head, which pass_pack_heads has packed.
Linear pass_head(const Pass *p, int thread, HeadProduct h);

// A thread's share of packing the frozen heads, when a network is opened, or else the one that learns;
// argument: the Pass.
void pass_pack_heads(void *argument, int thread, int threads);

// A thread's share of packing all matrices of the pass's layer for its direction; argument: the Pass.
void pass_pack(void *argument, int thread, int threads);
