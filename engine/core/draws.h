// The few numbers that sampling needs of the distributions at a step's nodes, wherever those are computed.
//
// p of a node is the distribution that its logits make (sampler.h). A backend that draws (backend.h) keeps p
// where its logits are and says, in the call that reads a node, what it will be asked: the chances of the
// tokens proposed below the node, and a token drawn from what they leave. The draw takes the random number
// that is next when all of them have been rejected, so none waits for another:
//
//      node -+- x   u1 < p(x)?                      Random ahead:   u1 u2 u3
//            +- y   u2 < p(y) / (1 - p(x))?                               |
//            +- none of them: drawn by u3 from p without x and y  <-------+
//
// Of other backends the logits are read, and p is computed here, for nodes that are asked about, when they
// are. Who asks sees no difference; where the guess of a random number was wrong, p is fetched.
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
