// Proposals over a tiny vocabulary with known chances, over which the verifier's tests sum.
//
// A plan lists a method's proposals: one-hot or drawn from q, with or without replacement, each below the
// root or an earlier one. A place is the tokens after the root, up to PLAN_LENGTH - 1 of them; the model's p
// and the draft's q are random tables over the places. A drawing gives each slot its token.
#pragma once
#include "engine/base/random.h"
#include "engine/core/session.h"

enum {
    PLAN_VOCAB = 3,
    PLAN_LENGTH = 3, // tokens that are looked at
    PLAN_WORDS = 27, // VOCAB ^ LENGTH
    PLAN_PLACES = 1 + 3 + 9,
    PLAN_SLOTS = 5,
    PLAN_NODES = 16,
};

typedef enum { SLOT_ONE_HOT, SLOT_DRAWN, SLOT_DRAWN_DISTINCT } SlotKind;

typedef struct PlanSlot {
    int parent; // an earlier slot, or -1: the root
    SlotKind kind;
    int token; // of a one-hot
} PlanSlot;

typedef struct Plan {
    float p[PLAN_PLACES][PLAN_VOCAB], q[PLAN_PLACES][PLAN_VOCAB];
    PlanSlot slots[PLAN_SLOTS];
    int count;
    int room; // nodes, at most PLAN_NODES: a full tree refuses
    bool merge;
    Layout layout;
} Plan;

static inline int place_below(int place, int token) { return place * PLAN_VOCAB + 1 + token; }

// The place of the slot's parent, which has its p and q.
int plan_place(const Plan *plan, const int *tokens, int slot);

Plan plan_random(Random *r);

// p = (.5, .3, .2) and q = (.6, .3, .1) at every place, a draw and a one-hot on token 0 below the root: what
// breaks careless verifiers.
Plan plan_example(bool one_hot_first);

// The chance of each token at a slot, the earlier ones being drawn. All zero where q has no token left: then
// the slot stays empty.
void plan_chances(const Plan *plan, const int *tokens, int slot, double *chance);

// A drawing with its chances: tokens[slot], or -1 where the slot stays empty.
void plan_draw(const Plan *plan, Random *r, int *tokens);

// Opens a step and fills its tree. keeps_merging breaks it: in a full tree a sampled proposal is kept if it
// happens to merge.
void plan_build(const Plan *plan, const int *tokens, Session *s, bool keeps_merging);

// Runs the tree, reads it, and replaces the model's own output at each node by p.
void plan_speak(const Plan *plan, Session *s);

// The chance that the model writes a word, whose tokens are the digits of a number in base PLAN_VOCAB.
double plan_word_chance(const Plan *plan, int word);
