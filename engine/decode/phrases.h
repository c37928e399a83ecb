// What a verified draft teaches about phrases (Ouroboros, section 2.5): the target's words after a wrong
// token are not thrown away.
//
// A phrase of beta tokens is a key of the pool and beta - 1 tokens under it.
#pragma once
#include "engine/decode/ngram_pool.h"

// Candidate inspiration: where, after the first wrong token, beta-1 tokens of the draft in a row are what
// the target says, those and what it says next are a phrase. draft (count); says (count + 1): the target's
// word at each place of the draft and after it; accepted: tokens of the draft that stand.
void phrases_inspire(NgramPool *p, const int *draft, const int *says, int count, int accepted);

// As the authors' code has it: the key is the draft's token, from the wrong one on and right or not, and
// beta-2 tokens after it are asked to agree.
void phrases_inspire_loosely(NgramPool *p, const int *draft, const int *says, int count, int accepted);

// Candidate refinement: `phrase`, tried below the key, makes way for what the target said along it. Both
// (beta - 1); the phrase is not one of the pool's own tuples.
void phrases_refine(NgramPool *p, int key, const int *phrase, const int *says);
