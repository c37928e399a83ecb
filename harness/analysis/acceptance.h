// Two points of the same prompts, step by step: does B accept other guesses than A? Steps are compared that
// begin at the same token of the same text, so whatever differs there is the drafter's doing, not the text's.
#pragma once
#include "results/store.h"
#include "simulate/statistics.h"

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
