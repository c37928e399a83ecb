// What moves the weights: AdamW with warm-up, a cosine, and clipping by the gradient's whole length.
#pragma once
#include "engine/train/network.h"

typedef struct OptimizerOptions {
    int steps;        // of the whole training
    int warmup;       // steps in which the rate rises from 0
    double rate;      // of learning, at its highest
    double last_rate; // at the end
    double beta1, beta2, epsilon;
    double weight_decay; // of matrices; norms keep theirs
    double clip;         // most length of a gradient; 0: any
} OptimizerOptions;

typedef struct Optimizer {
    OptimizerOptions options;
    float *mean, *square; // (parameters.total): moving averages of the gradient and its square
    double *sums;         // (chunks): squares of the gradient, summed apart and then in order
} Optimizer;

bool optimizer_open(Optimizer *o, const OptimizerOptions *options, const Network *n, Error *e);
void optimizer_close(Optimizer *o); // takes an empty one

// The rate of step 1 .. steps.
double optimizer_rate(const OptimizerOptions *o, int step);

// Moves the weights by n->gradients, which are zero afterwards. Gives the gradient's length before clipping.
double optimizer_step(Optimizer *o, Network *n, int step);
