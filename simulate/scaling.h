// One step on several devices: lookahead parallelism, which cuts the step's tokens, against tensor and
// pipeline parallelism, which cut the model (Lookahead, section 3.4, Fig. 6 and 7).
//
//   lookahead   every device has the whole model and a share of columns and n-grams; after the step all learn
//               all new tokens: one small exchange. The slowest device's rows are the step's.
//   tensor      every device has a share of each product's columns (or sums) and of the heads; per layer two
//               sums over all devices, and at the end one exchange of logits.
//   pipeline    every device has a share of the layers; a step visits them one after another, its activations
//               passed on: one sequence gains memory, not time.
//
// An exchange among R devices takes ceil(log2 R) messages of the link's latency; a sum in a ring takes 2 (R -
// 1) messages, each of 1/R of the bytes.
#pragma once
#include "simulate/hardware.h"

enum { SCALING_MOST_DEVICES = 1024 };

typedef struct Link {   // between any two devices
    double bytes_per_s; // in one direction
    double latency_s;   // of an empty message
} Link;

// A step of Lookahead after filling: W columns, N-grams, G of them verified.
typedef struct LookaheadStep {
    int W, N, G;
    int context;
} LookaheadStep;

// Rows of device `rank` of `devices`: its root, its columns' tokens with the part of row 0 above them, and
// its n-grams. No prefix is shared.
int scaling_rows(const LookaheadStep *s, int devices, int rank);

// False with e filled (name and domain) if a number is outside its domain.
bool link_check(const Link *link, Error *e);

// Seconds of a step over 1 <= devices <= SCALING_MOST_DEVICES; with one device all three are the same. A
// device beyond the number of heads, layers or columns has no work: the others take as long as without it.
double scaling_lookahead(const Hardware *h, const StepModel *m, const LookaheadStep *s, int devices,
                         const Link *link);
double scaling_tensor(const Hardware *h, const StepModel *m, const LookaheadStep *s, int devices,
                      const Link *link);
double scaling_pipeline(const Hardware *h, const StepModel *m, const LookaheadStep *s, int devices,
                        const Link *link);
