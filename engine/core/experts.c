// The choice of experts: sums in double, in ascending order of experts.
#include "engine/core/experts.h"

#include <assert.h>
#include <math.h>

static float rank_of(float logit) { return isnan(logit) ? INFINITY : logit; }

void experts_choose(const Experts *e, const float *logits, Route *out) {
    bool chosen[EXPERTS_MAX] = {false};
    float highest = logits[0];
    double sum = 0, weight[CHOSEN_MAX] = {0};
    assert(e->chosen >= 1 && e->chosen <= CHOSEN_MAX && e->chosen <= e->count && e->count <= EXPERTS_MAX);
    for (int i = 0; i < e->chosen; i++) { // the best, one at a time; of equals, the first
        int best = -1;
        for (int k = 0; k < e->count; k++)
            if (!chosen[k] && (best < 0 || rank_of(logits[k]) > rank_of(logits[best]))) best = k;
        assert(best >= 0);
        chosen[best] = true;
    }
    for (int k = 1; k < e->count; k++)
        if (rank_of(logits[k]) > rank_of(highest)) highest = logits[k];
    for (int k = 0, at = 0; k < e->count; k++) {
        if (!chosen[k] && e->renormalised) continue;
        double x = exp((double)logits[k] - (double)highest);
        sum += x;
        if (!chosen[k]) continue;
        out->expert[at] = k;
        weight[at++] = x;
    }
    for (int i = 0; i < e->chosen; i++) out->weight[i] = (float)(weight[i] / sum);
}

float experts_shared_weight(float x) { return (float)(1 / (1 + exp(-(double)x))); }
