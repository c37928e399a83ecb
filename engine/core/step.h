// A step as a backend sees it: nodes through layers, and the head's results; of one sequence, or of several
// that share the step.
#pragma once
#include "engine/base/error.h"
#include "engine/core/cache.h"
#include "engine/core/sampler.h"
#include "engine/core/tree.h"

// Nodes [first, last) of a tree through layers [a, b).
typedef struct StepRun {
    const Tree *tree;
    const Cache *cache;
    int first, last;
    int a, b;
    int given; // nodes from here on have no given row; of INPUT_BLOCK: all or none of the run
} StepRun;

typedef enum { HEAD_ARGMAX = 1, HEAD_LOGITS = 2, HEAD_TOP = 4, HEAD_DRAW = 8 } HeadWant;

// HEAD_DRAW, on backends that have `distribution`: the few numbers that a step needs from each node's
// distribution p (sampler.h). The arrays are the caller's.
typedef struct HeadDraws {
    Sampling sampling;  // not greedy
    int vocab;          // ids from here on are left out
    const double *u;    // (count), in [0, 1)
    const int *first;   // (count + 1): row i's tokens are token[first[i]] .. token[first[i + 1] - 1]
    const int *token;   // distinct within a row; at most as many as a step has nodes
    double *chance;     // p of each token
    double *total;      // (count): the sum of p; holds 1, within rounding, and may be left so
    double *confidence; // (count): the largest probability at temperature 1, over all ids; or NULL
    int *drawn; // (count): drawn by u from p without the row's tokens, like sampler_draw; -1: none is left
} HeadDraws;

enum { HEAD_BAD = -1 }; // a row with a logit that is NaN or +INFINITY, or with none above -INFINITY
// The LM head's results for the given nodes, row i for nodes[i]. The arrays are the caller's. The search for
// the best reads every logit, so finding bad rows is free: NaN counts as +INFINITY. The session refuses bad
// rows.
typedef struct HeadOut {
    int *argmax;      // (count): the largest, the lowest id among equals; or HEAD_BAD
    float *logits;    // (count, vocab); masked ids hold -INFINITY
    int top;          // k for HEAD_TOP
    int *top_id;      // (count, top), largest first, lowest id first among equals
    float *top_logit; // (count, top); the first of a bad row is infinite
    float *log_sum; // (count), with HEAD_TOP: ln of the sum of e^(logit - the largest) over all ids, or NULL
    HeadDraws *draws; // for HEAD_DRAW
} HeadOut;

// Nodes that a device has run and read ahead of a session (session_grow).
typedef struct Grown {
    HeadOut out;   // top, top_id, top_logit, log_sum: of nodes [from, end)
    int from, end; // nodes [0, end) of the open step have been run
    size_t room;   // numbers in each of the arrays
} Grown;

// DSpark's heads (block.h), for the guess of a block's row.
typedef struct Follow {
    int token;         // in front of the guess
    float *state;      // (rank): s, which moves on; NULL unless MARKOV_RNN
    float *logits;     // (vocab): the bias is added; NULL: there is no Markov head, or it isn't wanted
    double confidence; // filled; 1 if there is none
} Follow;

enum { SEQUENCES_MAX = 64 }; // that share steps

// One sequence's part of what several run together, and whether it failed.
typedef struct RunCall {
    void *self;
    StepRun run;
    bool ok;
    Error error;
} RunCall;

typedef struct HeadCall {
    void *self;
    const int *nodes;
    int count;
    HeadOut *out;
    bool ok;
    Error error;
} HeadCall;

// --- passes ---------------------------------------------------------------------------------------------

// The log of a step's passes, from which its time on other hardware can be computed.
typedef enum { PASS_TARGET, PASS_DRAFT, PASS_ADAPTER } PassModel;

// One forward. a < b: nodes through layers [a, b). a = b: the LM head on nodes that have been through a
// layers; a = b = 0: EAGLE-3's and DFlash's fc on the states that nodes were given.
typedef struct Pass {
    PassModel model;
    int a, b;
    int rows;    // nodes of one pass
    int context; // tokens committed before it
    int count;   // equal passes
} Pass;

enum { PASS_LOG_SIZE = 512 };

// The passes of all models of a step; equal ones are counted together, in the order of the first of them.
typedef struct PassLog {
    Pass passes[PASS_LOG_SIZE]; // (count)
    int count;
} PassLog;

static inline void pass_log_clear(PassLog *log) { log->count = 0; }

// Counts a pass (not its `count`). A nearly full log counts it with the last one of its model and layers.
void pass_log_add(PassLog *log, const Pass *pass);
