// Predicts a whole space from a few measured places: a Gaussian process around zero (kriging; Rasmussen and
// Williams, chapter 2), for the residuals of a law.
//
// Two places at distance d have the covariance s^2 exp(-d^2 / (2 l^2)); each measurement has its own error.
// All s and l of a grid contribute, weighed by likelihood: the likeliest pair by itself would be
// overconfident when measurements are few or bad. Far from all of them the prediction is zero with error s.
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
// False with e filled if a prediction is not finite.
bool kriging(const KrigingData *data, const double *places, int asked, double *mean, double *error, Error *e);

extern const double KRIGING_UNKNOWN; // s without measurements
