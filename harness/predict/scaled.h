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
// steps. Steps that verify fewer than G n-grams gain less.
bool scaled_point(Store *store, const SimulatedPoint *p, const Pricing *pricing, const Link *link,
                  int devices, Scaled *out, Error *e);
