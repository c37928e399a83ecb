// The frozen model whose words an adapter, or a small model, learns to foretell. A pass is one step of its
// session on an empty context, with one chain of nodes per document. It gives the states that the adapter
// will read in use, and the final normed states, from which the target's head makes the distributions that
// are to be learned:
//
//                     what row t reads                     what it should say
//      kangaroo ...   the state after exit_layer layers    what the target says at t
//      medusa         the final normed state               head i: what the target says at t + 1 + i
//      a model        the token at t                       what the target, its teacher, says at t
//
// The loss is Kangaroo's Eq. 3, the cross-entropy from the target's distribution. Medusa's heads learn the
// same way, from the target in place of the text's tokens (its section on self-distillation), each weighted
// by MEDUSA_DECAY to the power of its number from 1.
#pragma once
#include "engine/core/session.h"
#include "engine/train/network.h"

static const double MEDUSA_DECAY = 0.8;

// What is given; all of it outlives the Target.
typedef struct TargetChoice {
    const Model *model;
    Session *session; // of the model: its steps hold a pass, its context the longest document
    const char *name; // model_identity: a checkpoint goes on with the same target only
    AdapterKind kind;
} TargetChoice;

typedef struct Target {
    TargetChoice choice;
    int rows;      // most in a pass
    float *head;   // (vocab, width)
    float *exits;  // (rows, width); NULL for medusa and for a model
    float *states; // (rows + ADAPTER_HEADS_MAX, width), normed
    int *nodes;    // (rows)
} Target;

// adapter: it is one that learns from it, and not a model.
bool target_open(Target *t, const TargetChoice *c, bool adapter, int rows, Error *e);
void target_close(Target *t); // takes an empty one

// Runs a pass's documents.
bool target_run(Target *t, const int *tokens, const int *start, int rows, Error *e);

// What model `head` of the adapter learns from the last run: `targets` (rows) is filled, 0 or -1, and belongs
// to *b. Gives the number of rows that have something to learn.
int target_batch(const Target *t, int head, const int *start, int rows, int *targets, Batch *b);

// The model's part in the loss.
double target_weight(const Target *t, int head);

// What its training starts from: final norm and own head are the target's, Medusa's layer adds nothing yet (W
// is zero, as in the paper), and the rest is as parameters_start gives it.
void target_start(const Target *t, Network *n, uint64_t seed);
