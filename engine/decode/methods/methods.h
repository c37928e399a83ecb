// Every published way of proposing tokens, a file each. To add one: a file with its MethodInfo, a line here,
// a row in table.c, and a test of the same name.
#pragma once
#include "engine/decode/method.h"

extern const MethodInfo method_autoregressive; // one token a step: the baseline of everything
extern const MethodInfo method_jacobi;         // a block of guesses, replaced by what the model says of them
extern const MethodInfo method_prompt_lookup;  // what followed the last tokens when they stood here before
extern const MethodInfo method_lookahead;      // n-grams from a window of guesses, verified as it goes
extern const MethodInfo method_speculative;    // a second, smaller model writes ahead
extern const MethodInfo method_ngrammys;  // rows of n-grams, of the context and of the model's own tables
extern const MethodInfo method_ouroboros; // a draft model that writes phrases, and learns from the target
extern const MethodInfo method_kangaroo;  // the target's first layers and an adapter write ahead
extern const MethodInfo method_medusa;    // heads that each say one further token, as a tree
extern const MethodInfo method_mix;       // several of them in one tree
extern const MethodInfo method_rest;      // what followed the last tokens in a datastore of texts
