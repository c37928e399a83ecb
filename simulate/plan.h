// How much tuning fits into a given time: how many points the sample has, on how many prompts, and how many
// points race.
#pragma once

enum { PLAN_PROMPTS = 2, PLAN_RACERS = 2, PLAN_ROUNDS = 4 }; // a smaller sample or race is not informative

typedef struct PlanCosts { // seconds, as expected
    double begin;          // of a point: to open and warm it up
    double baseline;       // its answer to a prompt
    const double *points;  // (count) answers of the points, in the order of use
    int count;
} PlanCosts;

// One prompt answered by the first n points and the baseline.
double plan_round(const PlanCosts *c, int n);

typedef struct PlanSample {
    int points, prompts; // points 0: nothing fits
} PlanSample;

// All points on `prompts` prompts, if that fits. Otherwise prompts are cut first, down to PLAN_PROMPTS, then
// points down to `least`, then prompts down to one, then points down to two.
PlanSample plan_sample(const PlanCosts *c, int prompts, int least, double seconds);

// Racers that fit for PLAN_ROUNDS rounds, which may be fewer than PLAN_RACERS.
int plan_racers(const PlanCosts *c, double seconds);

// The time of the smallest useful sample and race: `least` points on PLAN_PROMPTS prompts, then PLAN_RACERS
// racers.
double plan_least(const PlanCosts *c, int least);
