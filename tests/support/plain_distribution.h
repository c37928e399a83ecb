// The distribution that logits make, by sorting pairs and summing in double: what samplers are held against.
#pragma once
#include "engine/core/sampler.h"

// p in double; gives how near a sum came to the edge of top-p: a comparison that rounding may turn is no
// test.
double plain_distribution(const Sampling *s, const float *logits, int vocab, double *p);
