// An instance is a list of cards, mostly of one. A card has consecutive layers with their keys and values,
// and a stream, buffers and graphs of its own; the first has the embedding as well, the last the head. What a
// step is goes up to each. Hidden states go from card to card where a run crosses their border:
//
//      card 0:   copy up, layers 0..39 --+         wait for the copy
//      card 1:   copy up, wait ----------+- copy, layers 40..79, head
//
// The host puts it all in and waits at the end, for one card after another, so that the first that fails is
// named.
#pragma once
#include "engine/cuda/instance.h"

static inline Cuda *cuda_last(Cuda *c) {
    while (c->next) c = c->next;
    return c;
}

// "cuda:0,cuda:1", as --device takes it.
void cuda_name_all(const Cuda *first, char *out, size_t size);

// fit.c. Parts the layers among the cards by their free memory; false with a line on what is missing.
bool cuda_fit(Cuda *first, const BackendOptions *o, Error *e);
void cuda_set_context(Cuda *first, int context, const BackendOptions *o);
// The context that has room, up to the one that is set; 0: none.
int cuda_longest(Cuda *first, const BackendOptions *o);

// hidden.c. From one card to another, behind all that is in both streams; what goes in later is behind the
// copy.
bool cuda_pass(Cuda *from, Cuda *to, float *there, const float *here, size_t bytes, Error *e);
extern const HiddenMemory cuda_hidden;
