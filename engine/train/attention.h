// Causal attention within one document, for one key head and the query heads that share it, forward and
// backward. Documents that are packed one after another are tasks of their own, so they cannot see each
// other, and no task writes what another one reads: the order in which tasks run does not matter.
//
// Queries go QUERY_BLOCK rows at a time against all keys up to the last of them:
//
//            keys 0 ........ t          S = scale Q K^T      P = softmax(S)      mixed = P V
//      q 0   x . . . .
//        1   x x . . .                  dV += P^T dmixed     dP = dmixed V^T
//        t   x x x x x                  dS = P (dP - rowsum(P dP)) scale
//                                       dQ = dS K            dK += dS^T Q
//
// Scores are not kept for the backward pass: it makes P again from the queries and keys.
#pragma once
#include "engine/train/kernels/kernels.h"

typedef struct AttentionTask {
    int rows;            // of the document
    int group, head_dim; // query heads of this key head, and their size
    size_t stride;       // floats from one row to the next in q, k, v and their gradients
    size_t mixed_stride; // likewise in mixed and dmixed
    const float *q;      // (rows, group, head_dim)
    const float *k, *v;  // (rows, head_dim)
    float *mixed;        // (rows, group, head_dim); forward writes it
    const float *dmixed; // backward reads it
    float *dq, *dk, *dv; // backward writes them
} AttentionTask;

// Floats of scratch that a task of at most `rows` rows needs.
size_t attention_scratch(const TrainKernels *k, int rows, int group, int head_dim);

void attention_forward(const AttentionTask *t, const TrainKernels *k, float *scratch);
void attention_backward(const AttentionTask *t, const TrainKernels *k, float *scratch);
