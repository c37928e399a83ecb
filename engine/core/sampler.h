// From logits to a distribution to a token.
//
// Order as in Hugging Face: temperature, then top-k, then top-p. Ties at the edge of top-k go to the lower
// id. Temperature 0 is greedy and never comes here.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct Sampling {
    double temperature; // 0: greedy
    int top_k;          // 0: off
    double top_p;       // 1: off
} Sampling;

static inline bool sampling_is_greedy(const Sampling *s) { return s->temperature == 0; }

typedef struct Sampler {
    Sampling sampling;
    int vocab;
    int *order;  // (vocab) scratch
    float *keys; // (vocab) scratch
} Sampler;

bool sampler_init(Sampler *s, const Sampling *sampling, int vocab, Error *e);
void sampler_release(Sampler *s);

// p (vocab): sums to 1 within rounding; ids whose logit is -INFINITY or not a number get exactly 0. Where all
// are so, p is 0 everywhere.
void sampler_distribution(Sampler *s, const float *logits, float *p);

// The token where the running sum of p first exceeds u times the sum, u in [0, 1). Never one with p = 0, as
// long as any is above.
int sampler_draw(const float *p, int vocab, double u);
