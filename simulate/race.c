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

// The variance of the logarithm of a racer's summed time, beside what prompts do to all alike: from the
// residuals of racer x prompt.
static double race_variance(const double *seconds, int racers, int prompts, const bool *out) {
    double squares = 0;
    int left = 0;
    for (int i = 0; i < racers; i++) left += !out[i];
    if (left < 2 || prompts < 2) return HUGE_VAL;
    for (int k = 0; k < prompts; k++) {
        double share = 0;
        for (int i = 0; i < racers; i++)
            if (!out[i]) share += seconds[i * prompts + k] / sum(seconds + i * prompts, prompts) / left;
        for (int i = 0; i < racers; i++) {
            double off = seconds[i * prompts + k] / sum(seconds + i * prompts, prompts) - share;
            squares += out[i] ? 0 : off * off;
        }
    }
    return squares * prompts / ((left - 1) * (prompts - 1.0));
}

int race_settle(const RacePrior *priors, const double *seconds, int racers, int prompts, const bool *out) {
    double variance = race_variance(seconds, racers, prompts, out), shift = 0, most = -HUGE_VAL;
    int best = -1, left = 0;
    for (int i = 0; i < racers; i++) {
        if (out[i]) continue;
        shift -= log(sum(seconds + i * prompts, prompts) * priors[i].speedup);
        left++;
    }
    for (int i = 0; i < racers; i++) {
        if (out[i]) continue;
        double raced = -log(sum(seconds + i * prompts, prompts)) - shift / left;
        double square = priors[i].error * priors[i].error, share = square / (square + variance);
        double value = isfinite(variance) ? share * raced + (1 - share) * log(priors[i].speedup)
                                          : log(priors[i].speedup);
        if (value > most) most = value, best = i;
    }
    return best;
}
