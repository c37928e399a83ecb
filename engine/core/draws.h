// What sampling needs to know of the distributions at a step's nodes: a few numbers each, wherever the
// distributions are computed.
//
// p of a node is the distribution that its logits make (sampler.h). A backend that draws (backend.h) keeps p
// on its device and answers ahead of time, in the call that reads the node: the chance of each token proposed
// below it, and a token drawn from p without those. For that draw it is given the random number that will be
// next if all proposals are rejected, so that nothing has to be asked twice:
//
//      node -+- x   u1 < p(x)?                      Random ahead:   u1 u2 u3
//            +- y   u2 < p(y) / (1 - p(x))?                               |
//            +- none of them: drawn by u3 from p without x and y  <-------+
//
// From any other backend the logits are read, and p is computed here when a node is asked about. The caller
// sees no difference. Where the draw turns out to need another random number, p itself is fetched.
#pragma once
#include "engine/base/random.h"
#include "engine/core/session.h"

typedef struct Draws {
    Sampler sampler;
    int vocab;
    bool confident;      // draws_confidence will be asked for; to be set before a read
    float *p;            // (vocab): of node `at`
    double total;        // of p; below 0: not summed yet
    int at;              // TREE_NONE: of no node
    struct Ahead *ahead; // what a backend has drawn
} Draws;

// sampling is not greedy. vocab: ids from here on take no part; at most the model's.
bool draws_init(Draws *d, const Sampling *sampling, int vocab, Error *e);
void draws_release(Draws *d);

// Reads what session_read would, and not yet was: HEAD_ARGMAX and what draws need. ahead: the numbers that
// the caller will take from here on, one a proposal on its way and one for the draw at its end.
bool draws_read(Draws *d, Session *s, const Random *ahead, Error *e);

// All of these of a canonical node that was read. p of the token of `child`, proposed below the node; and of
// all tokens together: 1 within rounding.
double draws_chance(Draws *d, const Session *s, int node, int child);
double draws_total(Draws *d, const Session *s, int node);

// A token drawn by u from p without the tokens proposed below the node; -1: that leaves none.
bool draws_draw(Draws *d, const Session *s, int node, double u, int *token, Error *e);

// The chance of the node's likeliest token, at temperature 1 and of all ids, whatever the sampling.
double draws_confidence(const Draws *d, const Session *s, int node);

// p itself, (vocab).
bool draws_distribution(Draws *d, const Session *s, int node, float *p, Error *e);
