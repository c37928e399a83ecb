// When a point has been measured often enough. Pure functions of what was measured so far, so that a run that
// goes on later decides as if it had never stopped.
#pragma once
#include "harness/config/experiment.h"

// The relative standard error of the mean pass, from the differences between passes of the same prompt alone:
// how prompts differ among themselves is no error of timing. seconds: (passes, prompts). INFINITY where there
// are fewer than two passes.
double repeat_error(const double *seconds, int passes, int prompts);

// passes: those that count; spent: seconds of the point so far.
bool repeat_is_done(const Measurement *m, int passes, double error, double spent);

// Marks the passes of one prompt, at least three, whose time is far from the middle one. seconds: (passes),
// `stride` apart.
void repeat_outliers(const double *seconds, int passes, int stride, bool *out);
