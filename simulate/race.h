// Who is fastest, from times that were taken side by side: racers that cannot be ahead by more than a margin
// drop out, and the race goes on among the others.
//
// Every racer decodes the same prompts to the same texts, so that what is compared is the ratio of their
// summed times, with an error from how it differs between prompts (the ratio estimator's linearisation). Each
// racer is held against the leader only. There are few looks, further and further apart, and each spends a
// part of the allowed chance of error: all looks, at all racers, together no more than `level`.
#pragma once
#include <stdbool.h>

typedef struct RaceRule {
    double level;  // the chance that the best drops out though it is ahead by more than the margin: 0.05
    double margin; // of time: being ahead by less is the same
} RaceRule;

// Which look (from 1) there is after this many prompts: looks come after 4, 6, 9, 13, ... prompts. 0: none.
int race_look_at(int prompts);

// seconds: (racers, prompts), each positive, of those that are not out. Marks who drops out; gives the
// leader, who never does. prompts >= 2; look >= 1.
int race_look(const RaceRule *rule, const double *seconds, int racers, int prompts, int look, bool *out);

// The least that time of racer over time of leader can be, at `level` (one-sided).
double race_least_ratio(const double *racer, const double *leader, int prompts, double level);

typedef struct RacePrior { // what was known of a racer before
    double speedup;        // expected, beside anything that all share
    double error;          // of its logarithm; above 0
} RacePrior;

// Who is fastest by what was known and what was raced, each by its weight; -1 where all are out. A few
// prompts tell equals apart by luck; where there are many, they alone decide.
int race_settle(const RacePrior *priors, const double *seconds, int racers, int prompts, const bool *out);
