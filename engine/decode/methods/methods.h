// Every published way of proposing tokens, one file each. To add one: a file with its MethodInfo, a line
// here, a row in table.c, and a test of the same name.
#pragma once
#include "engine/decode/method.h"

// Whether a draft guesses all levels in one forward; auto: if it was made for that.
typedef enum { PARALLEL_AUTO, PARALLEL_ON, PARALLEL_OFF } Parallel;
extern const char *const parallel_kinds[]; // by Parallel

extern const MethodInfo method_autoregressive; // one token per step: the baseline of everything
extern const MethodInfo method_jacobi;         // a block of guesses, replaced by the model's own tokens
extern const MethodInfo method_prompt_lookup;  // continuations of an earlier occurrence of the last tokens
extern const MethodInfo method_lookahead;      // n-grams from a window of guesses, verified on the way
extern const MethodInfo method_speculative;    // a second, smaller model drafts
extern const MethodInfo method_ngrammys;       // rows of n-grams, from the context and the model's own tables
extern const MethodInfo method_ouroboros;      // a draft model that writes phrases and learns from the target
extern const MethodInfo method_kangaroo;       // the target's first layers and an adapter draft
extern const MethodInfo method_early_exit;     // the target's first layers and its own head draft
extern const MethodInfo method_medusa;         // heads that each predict one further token, as a tree
extern const MethodInfo method_eagle;          // a layer over the target's last state drafts a tree
extern const MethodInfo method_eagle3;         // the same over several layers' states
extern const MethodInfo method_mtp;            // the same over the last layer's, in a target's own files
extern const MethodInfo method_dflash;         // a block of masks over several layers' states, in one forward
extern const MethodInfo method_suffix;         // what followed the text's end before, by frequency
extern const MethodInfo method_ngram_mod;      // what last followed the last n tokens, by their hash alone
extern const MethodInfo method_recycling;      // a tree of each token's likeliest successors, as last seen
extern const MethodInfo method_mix;            // several methods in one tree
extern const MethodInfo method_oracle;         // the model's own continuation, right with a set chance
extern const MethodInfo method_rest;           // continuations of the last tokens from a datastore of texts
