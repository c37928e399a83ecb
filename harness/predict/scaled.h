// A point of lookahead over several devices, as predicted: strong scaling from the run's own step (Fig. 6,
// 7).
#pragma once
#include "harness/predict/simulation.h"
#include "simulate/scaling.h"

// Speedups over autoregressive decoding on one device.
typedef struct Scaled {
    bool given; // it has W, N and G of its own, and a baseline; else nothing below is there
    double lookahead, tensor, pipeline;                    // of the point
    double autoregressive_tensor, autoregressive_pipeline; // of one token a step
} Scaled;

// The point's predicted speedup times what its whole step gains by the devices, at the mean context of its
// steps. Steps that verify fewer than G n-grams gain less. cut: what tensor and pipeline parallelism were
// seen to make of one token a step on several devices, as 0.785 for a slowdown: each has then a cost a step
// that brings it there, and lookahead's step has it too. 0: they are ideal, with no cost but products and
// messages.
typedef struct Devices {
    int count;
    Link link;
    double cut;
} Devices;
bool scaled_point(Store *store, const SimulatedPoint *p, const Pricing *pricing, const Devices *devices,
                  Scaled *out, Error *e);
