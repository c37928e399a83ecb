// One step on several devices: lookahead parallelism, which cuts the step's tokens, against tensor and
// pipeline parallelism, which cut the model (Lookahead, section 3.4, Fig. 6 and 7).
//
//   lookahead   every device has the whole model and a share of columns and n-grams; after the step all learn
//               all new tokens: one small exchange. The slowest device's rows are the step's.
//   tensor      every device has a share of each product's columns (or sums) and of the heads; per layer two
//               sums over all devices, and at the end one exchange of what the LM head says.
//   pipeline    every device has a share of the layers; a step visits them one after another, its activations
//               handed on: one sequence gains memory, not time.
//
// An exchange among R devices takes ceil(log2 R) messages of the link's latency; a sum in a ring takes 2 (R -
// 1) messages, each of 1/R of the bytes.
#pragma once
#include "simulate/hardware.h"

enum { SCALING_MOST_DEVICES = 1024 };

typedef struct Link {   // between any two devices
    double bytes_per_s; // in one direction
    double latency_s;   // of a message of no bytes
} Link;

// A step of Lookahead's past filling: W columns, N-grams, G of them verified.
typedef struct LookaheadStep {
    int W, N, G;
    int context;
} LookaheadStep;

// Rows of device `rank` of `devices`: its root, the columns' tokens with as much of row 0 as they hang off,
// and its n-grams. No prefix is shared.
int scaling_rows(const LookaheadStep *s, int devices, int rank);

// False, with the name and the domain, if a number is outside its own.
bool link_check(const Link *link, Error *e);

// Seconds of a step over 1 <= devices <= SCALING_MOST_DEVICES; with one device all three are the same. A
// device that would have less than one head, layer or column more than there are has none: the others are as
// if there were no more of them.
double scaling_lookahead(const Hardware *h, const StepModel *m, const LookaheadStep *s, int devices,
                         const Link *link);
double scaling_tensor(const Hardware *h, const StepModel *m, const LookaheadStep *s, int devices,
                      const Link *link);
double scaling_pipeline(const Hardware *h, const StepModel *m, const LookaheadStep *s, int devices,
                        const Link *link);
