// The distribution that logits make, by sorting pairs and summing in double: the model for samplers.
#pragma once
#include "engine/core/sampler.h"

// p in double; returns how near a sum came to the edge of top-p: don't compare where rounding may decide.
double plain_distribution(const Sampling *s, const float *logits, int vocab, double *p);
