// The curve of a training: a figure of numbers that are no run of the store.
#pragma once
#include "plots/plots.h"

typedef struct PlotLosses {
    const char *title;
    const double *steps;     // (count)
    const double *series[2]; // (count) each: of batches, of what is held out; NAN: not known
    size_t count;
} PlotLosses;

// As plot_write: the picture at `path`, its numbers and its script.
bool plot_losses(const PlotLosses *l, const PlotOptions *o, const char *path, Output *out, Error *e);
