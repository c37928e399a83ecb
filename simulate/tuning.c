// See tuning.h. A race compares ratios of summed times with the leader, each with the ratio estimator's error
// over prompts.
#include "simulate/tuning.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <math.h>

// --- curve

// Pool adjacent violators: neighbours in the wrong order become one pool with their mean, which may put that
// in the wrong order with the pool before it.
void tuning_curve_rise(TuningCurve *c) {
    double mean[TUNING_MOST_CURVE];
    int size[TUNING_MOST_CURVE], pools = 0;
    assert(c->count <= TUNING_MOST_CURVE);
    for (int i = 0; i < c->count; i++) {
        mean[pools] = log(c->seconds[i]), size[pools++] = 1;
        for (; pools > 1 && mean[pools - 2] > mean[pools - 1]; pools--) {
            int both = size[pools - 2] + size[pools - 1];
            mean[pools - 2] = (mean[pools - 2] * size[pools - 2] + mean[pools - 1] * size[pools - 1]) / both;
            size[pools - 2] = both;
        }
    }
    for (int pool = 0, i = 0; pool < pools; pool++)
        for (int k = 0; k < size[pool]; k++) c->seconds[i++] = exp(mean[pool]);
}

double tuning_curve_at(const TuningCurve *c, double rows) {
    int last = c->count - 1, i = 0;
    if (rows <= c->rows[0]) return c->seconds[0];
    if (rows >= c->rows[last]) return c->seconds[last] * rows / c->rows[last];
    while (c->rows[i + 1] < rows) i++;
    double share = (rows - c->rows[i]) / (c->rows[i + 1] - c->rows[i]);
    return c->seconds[i] + share * (c->seconds[i + 1] - c->seconds[i]);
}

// --- race

enum { FIRST_LOOK = 4 };

int race_look_at(int prompts) {
    int look = 1;
    for (int at = FIRST_LOOK; at <= prompts; at += at / 2, look++)
        if (at == prompts) return look;
    return 0;
}

static double sum(const double *x, int count) {
    double total = 0;
    for (int i = 0; i < count; i++) total += x[i];
    return total;
}

double race_least_ratio(const double *racer, const double *leader, int prompts, double level) {
    double whole = sum(leader, prompts), ratio = sum(racer, prompts) / whole, squares = 0;
    for (int i = 0; i < prompts; i++) {
        double off = racer[i] - ratio * leader[i];
        squares += off * off;
    }
    double error = sqrt(squares * prompts / (prompts - 1)) / whole;
    return ratio - gsl_cdf_tdist_Qinv(level, prompts - 1) * error;
}

int race_look(const RaceRule *rule, const double *seconds, int racers, int prompts, int look, bool *out) {
    int leader = -1, left = 0;
    double best = HUGE_VAL;
    for (int i = 0; i < racers; i++) {
        double total = out[i] ? HUGE_VAL : sum(seconds + i * prompts, prompts);
        left += !out[i];
        if (total < best) best = total, leader = i;
    }
    // 1 / look^2 sums to pi^2 / 6 over all looks there could be.
    double looks = 6 / (M_PI * M_PI) / ((double)look * look);
    double share = rule->level * looks / (left > 1 ? left - 1 : 1);
    for (int i = 0; i < racers; i++) {
        if (out[i] || i == leader) continue;
        double least = race_least_ratio(seconds + i * prompts, seconds + leader * prompts, prompts, share);
        out[i] = least > 1 - rule->margin;
    }
    return leader;
}
