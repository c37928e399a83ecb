// A whole run on another machine: its points as priced, next to the measured ones where there are any.
#pragma once
#include "harness/price/priced.h"
#include "simulate/scaling.h"

typedef struct SimulatedPoint {
    int64_t id, number, baseline; // baseline 0: it is one, or has none
    char *label, *group;          // group: model and dataset, and the batch that the run has
    char *method;
    int batch;        // sequences that share its steps; tokens a second are those of all
    bool needs_draft; // then nothing below is there
    Tally tally;
    double step_s;   // mean, decoding
    int beyond_rows; // of a step of more rows than the machine was fitted to: the price is a guess; 0: none
    // measured on that machine by another run (SimulationAgainst)
    bool measured;
    double measured_step_s, measured_S, measured_speedup; // NAN: not known
    char *doubt;   // about these, as the view point_doubt has it; NULL: none
    bool doubtful; // more than a little
} SimulatedPoint;

typedef struct Simulation {
    SimulatedPoint *points; // (count), each model and dataset by itself
    size_t count;
} Simulation;

// A run of the same points measured on the machine that is priced; NULL store: none. Points are the same that
// have the same decoder, name of dataset, temperature, and batch (that of the price).
typedef struct SimulationAgainst {
    Store *store;
    int64_t run;
} SimulationAgainst;

// Fails where the run has no samples. Release also what failed.
bool simulation_run(Store *store, int64_t run, const Pricing *pricing, const SimulationAgainst *against,
                    Simulation *out, Error *e);
void simulation_release(Simulation *s);

// Relative errors of prediction over the points that were measured: the median, and the worst, by size.
typedef struct SimulationError {
    int points;
    double median, worst;
} SimulationError;

typedef enum { SIMULATED_STEP, SIMULATED_S, SIMULATED_SPEEDUP, SIMULATED_COUNT } SimulatedWhat;

// predicted / measured - 1 of a point; NAN where it is not known, or is 1 by definition.
double simulation_error(const SimulatedPoint *p, SimulatedWhat what);

// Of one method, and one group; NULL: of all.
SimulationError simulation_errors(const Simulation *s, const char *method, const char *group,
                                  SimulatedWhat what);

// --- over several devices

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
