// What a few measured places of a space say of all others: a Gaussian process about zero (kriging; Rasmussen
// and Williams, chapter 2), for what a law leaves over.
//
// Two places at distance d agree as s^2 exp(-d^2 / (2 l^2)); each measurement has an error of its own. All s
// and l of a grid have a say, by how likely each makes what was measured: the likeliest alone would be too
// sure of itself where measurements are few or bad. Far from all of them the answer is zero, give or take s.
#pragma once
#include "engine/base/error.h"

typedef struct KrigingData {
    int axes;
    const double *places; // (count, axes), each in [0, 1]
    const double *values; // (count)
    const double *errors; // (count) standard errors of values; at least 0
    int count;
} KrigingData;

// places: (asked, axes). Fills mean and error (asked). count 0: the mean is 0, the error KRIGING_UNKNOWN.
// False with e filled without memory, and where a value is no number.
bool kriging(const KrigingData *data, const double *places, int asked, double *mean, double *error, Error *e);

extern const double KRIGING_UNKNOWN; // what s is taken for where nothing is measured
