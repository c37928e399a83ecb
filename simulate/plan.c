// Costs are sums of expected seconds; each limit is found by counting down from the most.
#include "simulate/plan.h"

double plan_round(const PlanCosts *c, int n) {
    double sum = c->baseline;
    for (int i = 0; i < n && i < c->count; i++) sum += c->points[i];
    return sum;
}

static double sample_seconds(const PlanCosts *c, int points, int prompts) {
    return points * c->begin + prompts * plan_round(c, points);
}

// At least two, as far as there are two.
static int least_points(const PlanCosts *c, int least) {
    if (least < 2) least = 2;
    return least < c->count ? least : c->count;
}

PlanSample plan_sample(const PlanCosts *c, int prompts, int least, double seconds) {
    int few = prompts < PLAN_PROMPTS ? prompts : PLAN_PROMPTS, fewest = least_points(c, 2);
    least = least_points(c, least);
    for (int k = prompts; k > few; k--)
        if (sample_seconds(c, c->count, k) <= seconds) return (PlanSample){c->count, k};
    for (int n = c->count; n >= least && n > 0; n--)
        if (sample_seconds(c, n, few) <= seconds) return (PlanSample){n, few};
    for (int n = least; n >= fewest && n > 0; n--)
        if (sample_seconds(c, n, 1) <= seconds) return (PlanSample){n, 1};
    return (PlanSample){0, 0};
}

static double race_seconds(const PlanCosts *c, int racers) {
    return racers * c->begin + PLAN_ROUNDS * plan_round(c, racers);
}

int plan_racers(const PlanCosts *c, double seconds) {
    int n = c->count;
    while (n > 0 && race_seconds(c, n) > seconds) n--;
    return n;
}

double plan_least(const PlanCosts *c, int least) {
    int racers = c->count < PLAN_RACERS ? c->count : PLAN_RACERS;
    return sample_seconds(c, least_points(c, least), PLAN_PROMPTS) + race_seconds(c, racers);
}
