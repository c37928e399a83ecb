// A second model that follows the target's sequence with a cache of its own, one step of it for one step of
// the target's:
//
//      its cache            its open step: one chain
//      x0 .. x(n-1)   |     x(n) .. x(last)  -  d1 - d2 ...
//                           what it lacks       what it guessed, run to guess on
//
// Its step stays open while the target verifies; then that part of the chain is committed which the sequence
// turned out to bear. Nothing is ever taken back, so a rolling window never loses what it needs. After a full
// acceptance the last guess was never run: next time the chain begins with two tokens.
//
// A draft of several steps (Ouroboros) is appended to the sequence and committed as it is written; what
// turned out otherwise is taken back.
//
// Invariant between steps: the cache holds the first session->cache.length tokens of the sequence, at most
// all but the last.
#pragma once
#include "engine/core/session.h"

typedef struct Follower {
    Session *session;
    int *sequence; // (capacity): prompt and output, and a draft after them
    int length, capacity;
} Follower;

// limit: the longest sequence that will come.
bool follower_init(Follower *f, Session *session, int limit, Error *e);
void follower_release(Follower *f);

// A new sequence: all of the prompt but its last token goes into the cache. hidden: a row for each of them
// where the model's input is hidden states, else NULL. A prompt that is too long for the model is not
// followed at all.
bool follower_begin(Follower *f, const int *prompt, int count, const float *hidden, Error *e);

// Tokens that the cache lacks: at least the last one.
static inline int follower_missing(const Follower *f) { return f->length - f->session->cache.length; }

// Opens a step with the tokens that are missing. Gives the last one's node, or TREE_NONE, and no step is
// open, where the model has no room for them.
int follower_catch_up(Follower *f);

// A guess below `node`, to be run; TREE_NONE where there is no room.
int follower_guess(Follower *f, int node, int token);

// More of the sequence, or of a draft after it.
void follower_append(Follower *f, const int *tokens, int count);

// Takes the cache back to the first `length` tokens of the sequence, if it holds more; where its ring has
// lost what that needs, the model reads the sequence again.
bool follower_take_back(Follower *f, int length, Error *e);

// What the target's step emitted. All nodes of the chain have been run.
bool follower_settle(Follower *f, const int *emitted, int count, Error *e);
