// How well the law predicts points that it has not seen, beside rivals that explain the same numbers
// otherwise.
//
// All points of one W (or one N) are left out, the rest is fitted, those left out are predicted; for each W
// in turn. A rival is asked only where what is left determines it.
#pragma once
#include "simulate/sample.h"

typedef enum {
    RIVAL_LAW,      // the law itself, by least squares
    RIVAL_LOG,      // S = c0 + c1 ln b
    RIVAL_PROMPT,   // phi of each prompt its own, alpha common
    RIVAL_POSITION, // phi = 1, but alpha of each position its own; past the last seen it stays
    RIVAL_COUNT
} Rival;

typedef struct LeaveOut {
    int points[RIVAL_COUNT]; // predicted
    double rms[RIVAL_COUNT]; // of S; 0 where there are no points
} LeaveOut;

extern const char *const RIVAL_NAMES[RIVAL_COUNT];

// s is left as it was. False without memory.
bool leave_out(Sample *s, const Points *points, bool by_N, LeaveOut *out, Error *e);
