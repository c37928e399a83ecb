// The certificate that a method's output is the model's own: greedy ids against autoregressive ones, and,
// when sampling, whether each token was drawn from what the model says in front of it.
//
// A sampled token becomes a number: the probability that stands before it in the model's distribution, in the
// order of likelihood, and a random share of its own. Whatever the model and the text, these numbers are
// uniform and independent if, and only if, tokens are drawn as the model says (simulate/statistics.h).
#pragma once
#include "engine/decode/decode.h"
#include "engine/text/tokenizer.h"

typedef struct Divergence {
    int position;  // of the output; -1: none
    int want, got; // tokens; -1: the output had ended there
    float margin;  // between the two best logits there
} Divergence;

// Where `got` first differs from `want`, both outputs of one prompt. The session is run for the margin.
bool certify_greedy(Session *s, const IdList *prompt, const DecodeResult *want, const DecodeResult *got,
                    Divergence *out, Error *e);

// The numbers of sampled tokens, over all outputs that were looked at.
typedef struct SampledPlaces {
    Sampling sampling;
    Random random; // for each token's share of its own
    double *u;     // (count), in [0, 1); the caller's, with room for what is added
    size_t count;
    int impossible; // tokens that had no probability at all
} SampledPlaces;

// Adds the numbers of the `count` ids that follow the prompt.
bool certify_sampled(Session *s, const IdList *prompt, const int *ids, int count, SampledPlaces *out,
                     Error *e);
