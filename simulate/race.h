// The fastest of several racers, from times that were taken side by side: racers that cannot be ahead by more
// than a margin drop out, and the race continues among the others.
//
// Every racer decodes the same prompts to the same texts, so the ratio of summed times is compared, with an
// error from its spread over prompts (the ratio estimator's linearization). Each racer is compared with the
// leader only. There are few looks, further and further apart, and each spends a share of the allowed error
// probability: all looks at all racers together spend at most `level`.
#pragma once
#include <stdbool.h>

typedef struct RaceRule {
    double level;  // the probability that the best drops out while ahead by more than the margin: 0.05
    double margin; // of time: a smaller lead is a tie
} RaceRule;

// The number (from 1) of the look after this many prompts, 0 for none: looks come after 4, 6, 9, 13, ...
// prompts.
int race_look_at(int prompts);

// seconds: (racers, prompts), positive for those still in. Marks racers that drop out; returns the leader,
// which never does. prompts >= 2; look >= 1.
int race_look(const RaceRule *rule, const double *seconds, int racers, int prompts, int look, bool *out);

// The lower bound of (time of racer) / (time of leader), one-sided at `level`.
double race_least_ratio(const double *racer, const double *leader, int prompts, double level);
