// The numbers that sampling needs from the distributions at a step's nodes, wherever those are computed.
//
// p of a node is the distribution that its logits make (sampler.h). A backend that draws (backend.h) keeps p
// on its device and computes, in the call that reads the node, the chance of each token proposed below it and
// a token drawn from p without those tokens. The draw uses the random number that will be next if all
// proposals are rejected, so one call to the device is enough:
//
//      node -+- x   u1 < p(x)?                      Random ahead:   u1 u2 u3
//            +- y   u2 < p(y) / (1 - p(x))?                               |
//            +- none of them: drawn by u3 from p without x and y  <-------+
//
// On any other backend the logits are read, and p is computed here when it's needed. The caller sees no
// difference. If the draw turns out to need another random number, p itself is fetched.
#pragma once
#include "engine/base/random.h"
#include "engine/core/session.h"

typedef struct Draws {
    Sampler sampler;
    int vocab;
    bool confident;      // set before a read: draws_confidence will be called
    float *p;            // (vocab): of node `at`
    double total;        // of p; below 0: not summed yet
    int at;              // TREE_NONE: p is not any node's distribution
    struct Ahead *ahead; // the backend's draws
} Draws;

// sampling is not greedy. Ids from vocab on take no part; vocab is at most the model's.
void draws_init(Draws *d, const Sampling *sampling, int vocab);
void draws_release(Draws *d);

// Reads the nodes that session_read would read, with HEAD_ARGMAX and the numbers that draws need. ahead: the
// random numbers that the caller will use next, one for each proposal on its way and one for the final draw.
bool draws_read(Draws *d, Session *s, const Random *ahead, Error *e);

// For a canonical node that was read: p of the token of `child`, proposed below the node; and the sum of p
// over all tokens, 1 within rounding.
double draws_chance(Draws *d, const Session *s, int node, int child);
double draws_total(Draws *d, const Session *s, int node);

// Draws a token by u from p without the tokens proposed below the node; -1 if that leaves none.
bool draws_draw(Draws *d, const Session *s, int node, double u, int *token, Error *e);

// The probability of the node's likeliest token, at temperature 1 over all ids, whatever the sampling.
double draws_confidence(const Draws *d, const Session *s, int node);

// Copies p of the node, (vocab).
bool draws_distribution(Draws *d, const Session *s, int node, float *p, Error *e);

// The share of the softmax at temperature 1 that belongs to `largest`, the largest of n logits. Within 1e-6
// of the exact share, and the same bits on every machine. Kangaroo and adaptive drafts call it after every
// guess: 32,000 logits take 10 to 20 microseconds.
double top_chance(const float *logits, int n, float largest);
