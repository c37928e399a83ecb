// An instance is a list of cards, usually one. A card has consecutive layers with their keys and values, and
// its own stream, buffers and graphs; the first card also has the embedding, the last the head. Each card
// gets a copy of the step. Hidden states go from card to card where a run crosses their border:
//
//      card 0:   copy up, layers 0..39 --+         wait for the copy
//      card 1:   copy up, wait ----------+- copy, layers 40..79, head
//
// The host enqueues everything and waits at the end, for one card after another, so that the error names the
// first card that fails.
#pragma once
#include "engine/cuda/instance.h"

static inline Cuda *cuda_last(Cuda *c) {
    while (c->next) c = c->next;
    return c;
}

// fit.c. Divides the layers among the cards by their free memory; the error gives the missing memory and a
// fix.
bool cuda_fit(Cuda *first, const BackendOptions *o, Error *e);
void cuda_set_context(Cuda *first, int context, const BackendOptions *o);
// The longest context that fits, up to the one that is set; 0: none.
int cuda_longest(Cuda *first, const BackendOptions *o);
