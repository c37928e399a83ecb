// The best fixed tree of a method (Sequoia; simulate/tuning.h): for the model, the prompts and the machine.
//
//      calibrate  the method tries a wide tree on the first half of the prompts, which gives the acceptance
//                 per rank, and the time of drafting
//      surface    steps of the target, and of a draft, are timed by their rows, at the prompts' context
//      choose     of the best trees of every size and depth, the one with the least expected time per token
//      check      the chosen tree decodes the other prompts, and is measured
#pragma once
#include "engine/base/output.h"
#include "harness/tune/tune.h"

// Counts over steps. The index of `tried` and `taken` is a node's depth, then the rank of its child.
typedef struct TreeCounts {
    double tried[RANK_TREE_DEPTH + 1][RANK_TREE_RANKS]; // accepted nodes with such a child
    double taken[RANK_TREE_DEPTH + 1][RANK_TREE_RANKS]; // of them: it was accepted
    double prompts, steps, tokens, rows, context;       // sums
    double propose_s, forward_s, verify_s, observe_s;
} TreeCounts;

void tree_count(TreeCounts *c, const StepReport *r);

// The share of accepted nodes whose child of this rank is accepted, over all depths; 0 if never tried.
double tree_chance(const TreeCounts *c, int rank);
// The share of accepted nodes at this depth of which any child is accepted.
double tree_level_chance(const TreeCounts *c, int depth);

// Seconds of a step. A forward of the draft for each level takes `forward` of the nodes that it runs; empty:
// a level takes `level_s`, whatever its nodes.
typedef struct TreeCost {
    TuningCurve target, forward;
    double level_s; // of a level; the scale of `forward` if that is not empty
    double row_s;   // for learning from a node
    double step_s;  // for all else
} TreeCost;

typedef struct TreeChoice {
    RankTree tree;
    double tokens, seconds; // of a step, as expected
} TreeChoice;

// The best tree with one guess at least, of at most `nodes` guesses in `levels` levels below the root. The
// tree belongs to the caller.
void tree_choose(const double *chance, int nodes, int levels, const TreeCost *c, TreeChoice *out);

typedef struct TreeAsk {
    const Plan *plan; // of tune_prepare, with `tree`
    const TuneAsk *ask;
    const char *path; // of the file that is written
    int nodes;        // guesses at most
    double budget_s;
    bool processor, quiet;
    Clock (*clock)(const Session *target); // a test's; NULL: the real one
} TreeAsk;

typedef struct TreeResult {
    Text method;                    // as --method takes it, with the file
    TreeCounts calibrated, checked; // checked: of no prompts, if there was one only
    int guesses, levels;            // of the calibration's tree
    TuneSurface target, draft;      // draft: empty if the method has none
    TreeCost cost;
    double target_s[TUNING_MOST_CURVE], draft_s[TUNING_MOST_CURVE]; // memory of cost's curves
    double chance[RANK_TREE_RANKS];
    TreeChoice choice;
} TreeResult;

// Writes the file to `files`, and finishes them. Release also what failed.
bool tree_tune(const TreeAsk *ask, Output *files, TreeResult *out, Error *e);
void tree_result_release(TreeResult *r);

extern const OutputKind TREE_FILE;

void tree_report(const TreeAsk *ask, const TreeResult *r);
json_t *tree_report_json(const TreeAsk *ask, const TreeResult *r);
