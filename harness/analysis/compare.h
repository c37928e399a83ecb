// Two stored runs held against each other, point by point and prompt by prompt.
//
// The speedup is compared: each sample over the baseline that was measured with it. A busier machine, or
// another one, changes both, and so not their ratio. The baselines' own change is reported separately: it is
// the machine's, as long as the program is the same. Points without a baseline, and all where the caller asks
// for it, are compared by their absolute times.
//
// Disturbed samples are left out on both sides, unless too few would be left: then all count, and the result
// is unclear.
#pragma once
#include "results/store.h"
#include "simulate/statistics.h"

typedef enum { JUDGED_SAME, JUDGED_FASTER, JUDGED_SLOWER, JUDGED_UNCLEAR } Judgement;

// "B is so many times as fast", with the interval that holds 95% of resamples of prompts, and of passes
// within them.
typedef struct Ratio {
    double value;      // NAN: no time was seen
    Interval interval; // NAN: fewer than two prompts
    int prompts, samples;
    int disturbed; // of the samples
    bool calm;     // those are left out
    bool doubted;  // a speedup is above S: a baseline was disturbed, whatever was seen of it
} Ratio;

// An interval within the margin around 1 is the same. One beyond it, after it is widened for `judgements` of
// them to be right together, is faster or slower. Everything else is unclear, and so are fewer than
// COMPARE_PROMPTS (as in the view point_doubt), disturbed samples, and a doubted side.
enum { COMPARE_PROMPTS = 10 };
Judgement compare_judge(const Ratio *r, double margin, int judgements);
const char *compare_word(Judgement v);
const char *compare_says(Judgement v); // "no difference", "B is faster"

// One side: a run, or one point of it (from 1; 0: all).
typedef struct CompareSide {
    Store *store;
    int64_t run;
    int point;
} CompareSide;

// A side by what a user calls it: "12", "NAME", "12/3", "FILE", "FILE:12/3". store: where runs are looked for
// that no file is given with. False with e filled; else close side->store.
bool compare_find(const char *text, const char *store, CompareSide *out, Error *e);

typedef enum {
    COMPARED_SPEEDUP,
    COMPARED_TIME,    // absolute times
    COMPARED_MACHINE, // absolute times of two baselines, which tell of the machine
    COMPARED_KINDS
} CompareKind;

// Two points whose prompts can be paired.
typedef struct ComparePair {
    int64_t a, b; // ids of the points
    char *label_a, *label_b, *dataset;
    char *doubt_a, *doubt_b; // reasons to doubt their times (the view point_doubt); "" nothing
    CompareKind kind;
    Ratio ratio;
    double speedup_a, speedup_b; // over the same samples as the ratio; NAN: there is none
    double S_a, S_b;
    bool lost_text; // B's text differs from its baseline's, A's does not
} ComparePair;

typedef struct Comparison {
    ComparePair *pairs; // (count)
    int count;
    int alone;        // points of either side that have no counterpart
    CompareKind kind; // of `all`: speedups where there are any
    Ratio all;        // of all pairs of that kind together
    Ratio machine; // of all baselines together, disturbed or not: so many times as fast is B's. No samples:
                   // unknown
    bool other_program, other_machine; // by the runs' contents
} Comparison;

// Points are paired by content: of model, prompts, method and settings, wherever their files lie; two single
// points always, if their prompts are the same, or one was imported without its prompts. False with e filled
// where nothing can be paired.
bool compare_sides(const CompareSide *a, const CompareSide *b, bool absolute, Comparison *out, Error *e);
int compare_judgements(const Comparison *c); // to be right together: of each pair, and of all of them
void compare_release(Comparison *c);         // takes an empty one

// --- step by step -----------------------------------------------------------------------------------------

// Does B accept other guesses than A? Steps are compared that begin at the same token of the same text, so
// whatever differs there is the drafter's doing, not the text's.
enum { ACCEPTED_MOST = 16, ACCEPTED_PLACES = 12 };

// The first of a prompt's steps that differs.
typedef struct FirstDifference {
    int prompt, turn, pass;
    int token; // of the output, where it begins
    int step_a, step_b, accepted_a, accepted_b;
} FirstDifference;

// Steps of both sides that begin at a token of a range, or all.
typedef struct SharedSteps {
    int64_t steps, equal; // equal: they accept as many
    double a, b;          // accepted tokens, summed
} SharedSteps;

typedef struct Acceptance {
    int samples;   // on both sides
    int same;      // all their steps are equal
    int parted;    // of the samples: their texts part, and are compared up to there
    int unordered; // of the samples: a side is a histogram of steps, whose order isn't known: not compared
    SharedSteps all;
    double more; // accepted tokens a step in b, over a, with its interval over prompts (NAN: too few)
    Interval interval;
    SharedSteps places[ACCEPTED_PLACES]; // by the token where a step begins: [0, 16), [16, 32), [32, 64), ...
    int64_t least[ACCEPTED_MOST][2];     // [d]: shared steps of a, of b, that accept more than d tokens
    FirstDifference *first;              // (first_count) in order of prompts
    int first_count;
} Acceptance;

int acceptance_place(int place); // its first token; that of the next is its end

// Points by their ids. False with e filled; release takes an empty one.
bool acceptance_compare(Store *a, int64_t point_a, Store *b, int64_t point_b, Acceptance *out, Error *e);
void acceptance_release(Acceptance *x);
