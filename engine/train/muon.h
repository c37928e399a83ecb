// Muon (Jordan et al., 2024): a matrix moves by its gradient's momentum with all singular values brought
// close to 1, so that directions that the gradient seldom takes are learned as fast as the frequent ones.
// Scaled by 0.2 * sqrt(larger side) (Liu et al., 2025, section 2.2) a step is as long as AdamW's usually is,
// and both share one rate.
#pragma once
#include "engine/train/kernels/kernels.h"

typedef struct MuonStep {
    const TrainKernels *kernels;
    float *product;       // scratch of the kernels' products
    float *scratch;       // muon_scratch floats
    float rate;           // of learning, in this step
    float decay;          // share of a weight that a step at rate 1 takes away
    float momentum;       // of the moving average
    float gradient_scale; // clipping
} MuonStep;

size_t muon_scratch(int rows, int columns);

// Moves weight and mean, (rows, columns) each, by one step. One thread does a matrix, so that bits do not
// depend on the threads.
void muon(const MuonStep *s, float *weight, const float *gradient, float *mean, int rows, int columns);

// x (rows, columns) becomes close to U V^T of its singular value decomposition U S V^T: five steps of the
// quintic 3.4445 x - 4.7750 x^3 + 2.0315 x^5 lead singular values from 0.003 to 1 of the largest to between
// 0.6 and 1.3.
void muon_orthogonalise(const MuonStep *s, float *x, int rows, int columns);
