// From logits to a distribution to a token.
//
// The order is Hugging Face's: temperature, then top-k, then top-p. Ties at the edge of top-k go to the lower
// id. Temperature 0 is greedy, and greedy decoding needs no sampler.
#pragma once
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

void sampler_init(Sampler *s, const Sampling *sampling, int vocab);
void sampler_release(Sampler *s);

// Fills p (vocab), which sums to 1 within rounding. Ids whose logit is -INFINITY or NaN get exactly 0; if all
// are, p is 0 everywhere.
void sampler_distribution(Sampler *s, const float *logits, float *p);

// The token at which the running sum of p first exceeds u times the sum, u in [0, 1). Its p is above 0 unless
// all of p is 0.
int sampler_draw(const float *p, int vocab, double u);

// The same without these tokens, which it strikes out of p; -1 if that leaves none. And the sum of p.
int sampler_rest(float *p, int vocab, const int *tokens, int count, double u);
double sampler_sum(const float *p, int vocab);
