// The arithmetic of tuning: the plan of a point, the time of a step by its rows, the race among a few points,
// and the best shape of a fixed tree.
#pragma once
#include <stdbool.h>

enum { TUNING_MOST_CURVE = 64 };

typedef struct TuningPoint {
    int N;       // tokens that a step can emit at most: at least 1
    double rows; // of a step, as planned: at least 1
} TuningPoint;

// The time of a step by its rows: (count), at most TUNING_MOST_CURVE; rows rising.
typedef struct TuningCurve {
    const double *rows;
    double *seconds;
    int count;
} TuningCurve;

// Makes it rise, or stay, with the rows, as near as that lets it be in the logarithms.
void tuning_curve_rise(TuningCurve *c);

// By proportion between two rows; past the last, as many times as long as there are times the rows.
double tuning_curve_at(const TuningCurve *c, double rows);

// --- race
//
// The fastest of several racers, from times that were taken side by side: racers that cannot be ahead by more
// than a margin drop out, and the race continues among the others.
//
// Every racer decodes the same prompts to the same texts, so the ratio of summed times is compared, with an
// error from its spread over prompts (the ratio estimator's linearization). Each racer is compared with the
// leader only. There are few looks, further and further apart, and each spends a share of the allowed error
// probability: all looks at all racers together spend at most `level`.
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

// --- the best fixed tree (Sequoia, section 3)
//
// chance[b] is the chance that the child of rank b is the accepted one of a node that is accepted itself: the
// same at every node, at most 1 in sum. A step then emits as many tokens as there are accepted nodes, root
// included: the sum over nodes of the product of the chances on the path to them. A node's children have the
// first ranks, without gaps.
//
// The tables have the best tree of every size, built from best subtrees: m nodes with b children are the best
// y nodes with b - 1 children, and the best tree of m - y nodes below child b.
typedef struct BestTrees BestTrees;

// chance: (ranks). Trees of at most `nodes` nodes in at most `levels` levels, the root counted in both.
BestTrees *best_trees_make(const double *chance, int ranks, int nodes, int levels);
void best_trees_free(BestTrees *t); // accepts NULL

// The tokens of the best tree of exactly `nodes` nodes in at most `levels` levels; 0: there is none.
double best_trees_tokens(const BestTrees *t, int nodes, int levels);

// Writes that tree: (nodes - 1) parents, -1 for the root, each before its children; and ranks.
void best_trees_read(const BestTrees *t, int nodes, int levels, int *parents, int *ranks);
