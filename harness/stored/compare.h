// Two stored measurements held against each other: the same prompts, drawn again together, and what can be
// said of the ratio of their times.
#pragma once
#include "harness/stored/tally.h"
#include "results/store.h"

typedef enum { JUDGED_SAME, JUDGED_FASTER, JUDGED_SLOWER, JUDGED_UNCLEAR } Judgement;

// Of an interval of "so many times as fast": all of it within the margin around 1 is the same; all of it
// beyond the margin is faster, or slower; else nothing can be told.
Judgement compare_judge(const Tally *t, double margin);
const char *compare_word(Judgement v);

// One side: a run, or one point of it (from 1; 0: all).
typedef struct CompareSide {
    Store *store;
    int64_t run;
    int point;
} CompareSide;

// A side by what a user calls it: "12", "NAME", "12/3", "FILE", "FILE:12/3". store: where runs are looked for
// that no file is given with. False with e filled; else close side->store.
bool compare_find(const char *text, const char *store, CompareSide *out, Error *e);

// Two points whose prompts can be paired.
typedef struct ComparePair {
    char *label_a, *label_b, *dataset;
    Tally tally; // of B over A; S is B's
    double S_a;
    bool lost_text; // B's text differs from its baseline's, A's does not
} ComparePair;

typedef struct Comparison {
    ComparePair *pairs; // (count)
    int count;
    int alone; // points of either side that have no counterpart
    Tally all; // of all pairs together
} Comparison;

// Points are paired by hash; two single points always, if their dataset is the same. False with e filled
// where nothing can be paired.
bool compare_sides(const CompareSide *a, const CompareSide *b, Comparison *out, Error *e);
void compare_release(Comparison *c); // takes an empty one
