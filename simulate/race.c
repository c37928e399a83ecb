// Ratios of summed times against the leader, each with the ratio estimator's error over prompts.
#include "simulate/race.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

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

// 1 / look^2 sums to pi^2 / 6 over all looks there could be.
static double share_of(const RaceRule *rule, int racers, int look) {
    double looks = 6 / (M_PI * M_PI) / ((double)look * look);
    return rule->level * looks / (racers > 1 ? racers - 1 : 1);
}

int race_look(const RaceRule *rule, const double *seconds, int racers, int prompts, int look, bool *out) {
    int leader = -1, left = 0;
    double best = HUGE_VAL;
    for (int i = 0; i < racers; i++) {
        double total = out[i] ? HUGE_VAL : sum(seconds + i * prompts, prompts);
        left += !out[i];
        if (total < best) best = total, leader = i;
    }
    for (int i = 0; i < racers; i++) {
        if (out[i] || i == leader) continue;
        double least = race_least_ratio(seconds + i * prompts, seconds + leader * prompts, prompts,
                                        share_of(rule, left, look));
        out[i] = least > 1 - rule->margin;
    }
    return leader;
}
