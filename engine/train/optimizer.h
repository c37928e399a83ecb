// Updates the weights: by AdamW, or by Muon for the layers' matrices and AdamW for the rest. With warm-up, a
// schedule of the rate, and clipping by the norm of the whole gradient.
#pragma once
#include "engine/train/network.h"

typedef enum OptimizerKind { OPTIMIZER_ADAMW, OPTIMIZER_MUON } OptimizerKind;

// How the rate falls from its highest: along half a cosine, or, after a constant part, in a straight line
// over the last `cooldown` of the steps (warm-up, stable, decay).
typedef enum RateSchedule { SCHEDULE_COSINE, SCHEDULE_STABLE } RateSchedule;

// The matrices that weight decay pulls at; norms keep theirs.
typedef enum DecayPlace { DECAY_ALL, DECAY_LAYERS } DecayPlace; // LAYERS: neither embedding nor head

typedef struct OptimizerOptions {
    OptimizerKind kind;
    RateSchedule schedule;
    DecayPlace decays;
    double cooldown;       // share of the steps; of the stable schedule
    double momentum;       // Muon's
    double embedding_rate; // of the embedding and an own head, at its highest; 0: rate
    int steps;             // of the whole training
    int warmup;            // steps in which the rate rises from 0
    int begun;   // steps that another training did: averages and a second warm-up begin after them; 0: none
    double rate; // of learning, at its highest
    double last_rate; // at the end
    double beta1, beta2, epsilon;
    double weight_decay;
    double clip; // most length of a gradient; 0: any
} OptimizerOptions;

typedef struct Optimizer {
    OptimizerOptions options;
    float *mean, *square; // (parameters.total): moving averages of the gradient and its square
    double *sums;         // (chunks): squares of the gradient, summed apart and then in order
    float *scratch;       // (threads, scratch_size): Muon's
    size_t scratch_size;
} Optimizer;

bool optimizer_open(Optimizer *o, const OptimizerOptions *options, const Network *n, Error *e);
void optimizer_close(Optimizer *o); // takes an empty one

// Whether Muon moves a parameter: it has no average of squares.
bool optimizer_is_muon(const Optimizer *o, const Parameters *p, const Parameter *x);

// The rate of step 1 .. steps.
double optimizer_rate(const OptimizerOptions *o, int step);

// Moves the weights by n->gradients, which are zero afterwards. Gives the gradient's length before clipping.
double optimizer_step(Optimizer *o, Network *n, int step);
