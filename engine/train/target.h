// The frozen model whose predictions an adapter, or a small model, learns. A pass is one step of its session
// on an empty context, with one chain of nodes per document. It returns the states that the adapter will read
// in use, and the final normed states, which the target's head turns into the distributions to learn:
//
//                     input of row t                       wanted distribution
//      kangaroo ...   the state after exit_layer layers    the target's at t
//      medusa         the final normed state               head i: the target's at t + 1 + i
//      eagle          the final normed state               forward n: the target's at t + 1 + n, and state
//      eagle3         the states after three layers        forward n: the target's at t + 1 + n
//      mtp            the last layer's state, or its norm  forward n: the target's at t + 1 + n
//      dflash         the states after several layers      the target's at t
//      a model        the token at t                       the target's, its teacher's, at t
//
// The loss is Kangaroo's Eq. 3, the cross-entropy from the target's distribution. Medusa's heads learn in the
// same way, from the target instead of the text's tokens (its section on self-distillation), each weighted by
// MEDUSA_DECAY to the power of its number from 1. A head for fewer tokens learns the target's distribution
// over these.
#pragma once
#include "engine/base/file.h"
#include "engine/core/session.h"
#include "engine/train/network.h"

static const double MEDUSA_DECAY = 0.8;

// The caller's part; all of it outlives the Target.
typedef struct TargetChoice {
    const Model *model;
    Session *session; // of the model: a step takes a pass, the context takes the longest document
    const char *name; // model_identity: a checkpoint resumes only with the same target
    AdapterKind kind;
    int forwards;         // of an EAGLE head
    const int *draft_ids; // (kind.vocab), ascending: the tokens that it learns; the trainer sets them
} TargetChoice;

typedef struct Target {
    TargetChoice choice;
    int rows;         // maximum in a pass
    float *head;      // (vocab, width), or its rows of draft_ids
    float *embedding; // (vocab, width), of a draft; else NULL
    Captures read;    // the layers after which its exits are
    float *exits;     // (rows, read.count, width); NULL for medusa, eagle and a model
    float *captured;  // (rows, width): those of one layer
    float *states;    // (rows + ADAPTER_HEADS_MAX, width), normed
    int *nodes;       // (rows); TREE_NONE: the row was known
    FileView kept;    // (places, read.count + 1, width): exits and state of tokens of the corpus, in f32
    bool *known;      // (places): those that are there, always a whole beginning of a document
    size_t places;
    MemBlocks blocks; // all but `kept`
} Target;

// adapter: an adapter learns from the target, not a model. False with e filled if a pass doesn't fit into a
// step, or memory runs out.
bool target_open(Target *t, const TargetChoice *c, bool adapter, int rows, Error *e);
void target_close(Target *t); // takes an empty one

// Keeps exits and states of the corpus's first tokens from now on, `most` bytes of them: each is run once
// and has the same bits later. Memory is taken as they come. False with e filled if there isn't enough.
bool target_keep(Target *t, size_t tokens, size_t most, Error *e);
size_t target_kept_bytes(const Target *t, size_t tokens); // that so many take

// Runs the documents of a pass, unless they are known, and fills exits and states. places: as feed_fill's.
bool target_run(Target *t, const int *tokens, const int *start, const size_t *places, int rows, Error *e);

// Fills *b with the batch of model `head` of the adapter, from the last run of `tokens`, and `targets`
// (rows), which *b refers to, with 0 or -1: there is nothing to learn.
void target_batch(const Target *t, int head, const int *tokens, const int *start, int rows, int *targets,
                  Batch *b);

// The weight of model `head` in the loss.
double target_weight(const Target *t, int head);

// Fills in the initial weights: final norm and own head are the target's, Medusa's W is zero, so that its
// layer adds nothing yet (as in the paper), EAGLE-1's bias is zero, and the rest is as in parameters_start.
void target_start(const Target *t, Network *n, uint64_t seed);
