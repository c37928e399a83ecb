// Updates the weights: by AdamW, or by Muon for the layers' matrices and AdamW for the rest. With warm-up, a
// schedule of the rate, and clipping by the norm of the whole gradient.
#pragma once
#include "engine/train/network.h"

typedef enum OptimizerKind { OPTIMIZER_ADAMW, OPTIMIZER_MUON } OptimizerKind;

// How the rate falls from its maximum: along half a cosine or, after a constant part, in a straight line over
// the last `cooldown` of the steps (warm-up, stable, decay).
typedef enum RateSchedule { SCHEDULE_COSINE, SCHEDULE_STABLE } RateSchedule;

// The matrices that have weight decay; norms never have it.
typedef enum DecayPlace { DECAY_ALL, DECAY_LAYERS } DecayPlace; // LAYERS: neither embedding nor head

typedef struct OptimizerOptions {
    OptimizerKind kind;
    RateSchedule schedule;
    DecayPlace decays;
    double cooldown;       // share of the steps; of the stable schedule
    double momentum;       // Muon's
    double embedding_rate; // maximum for the embedding, an adapter's own head and a Markov head; 0: rate
    int steps;             // of the whole training
    int warmup;            // steps in which the rate rises from 0
    int begun;   // steps done by another training: averages and a second warm-up begin after them; 0: none
    double rate; // of learning, maximum
    double last_rate; // at the end
    double beta1, beta2, epsilon;
    double weight_decay;
    double clip; // maximum length of a gradient; 0: any
} OptimizerOptions;

typedef struct Optimizer {
    OptimizerOptions options;
    float *mean, *square; // (parameters.total): moving averages of the gradient and its square
    double *sums;         // (chunks): squares of the gradient, summed by chunk and then in order
    float *scratch;       // (threads, scratch_size): Muon's
    size_t scratch_size;
    MemBlocks blocks; // all of these
} Optimizer;

// False with e filled if memory runs out for the moments.
bool optimizer_open(Optimizer *o, const OptimizerOptions *options, const Network *n, Error *e);
void optimizer_close(Optimizer *o); // takes an empty one

// Whether Muon updates a parameter, which then has no average of squares.
bool optimizer_is_muon(const Optimizer *o, const Parameters *p, const Parameter *x);

// The rate of a step in 1 .. steps.
double optimizer_rate(const OptimizerOptions *o, int step);

// Whether the rates up to this step are the same for any number of steps and any fall at the end: both may
// still change.
bool optimizer_is_open(const OptimizerOptions *o, int64_t step);

// Updates the weights by n->gradients, and zeroes those. Returns the gradient's length before clipping.
double optimizer_step(Optimizer *o, Network *n, int step);

// --- Muon ------------------------------------------------------------------------------------------------

// Muon (Jordan et al., 2024) moves a matrix along its gradient's momentum, with all singular values brought
// close to 1, so that rare directions of the gradient are learnt as fast as frequent ones. Scaled by
// 0.2 * sqrt(larger side) (Liu et al., 2025, section 2.2), a step is as long as AdamW's usually is, and one
// rate serves both.
typedef struct MuonStep {
    const TrainKernels *kernels;
    float *product;       // scratch of the kernels' products
    float *scratch;       // muon_scratch floats
    float rate;           // of learning, in this step
    float decay;          // the share of a weight that a step at rate 1 removes
    float momentum;       // of the moving average
    float gradient_scale; // clipping
} MuonStep;

size_t muon_scratch(int rows, int columns);

// Updates weight and mean, (rows, columns) each, by one step.
void muon(const MuonStep *s, float *weight, const float *gradient, float *mean, int rows, int columns);

// Turns x (rows, columns) into approximately U V^T of its singular value decomposition U S V^T: five steps of
// the quintic 3.4445 x - 4.7750 x^3 + 2.0315 x^5 bring singular values from 0.003 to 1 of the largest to
// between 0.6 and 1.3.
void muon_orthogonalise(const MuonStep *s, float *x, int rows, int columns);
