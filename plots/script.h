// The script that redraws a plot: where it goes, its texts as gnuplot's arrays, the style, the figure's own.
#pragma once
#include "plots/data.h"
#include "plots/plots.h"

// data, output: file names without folders, as the script will find them where it runs; NULL: the numbers
// stand in the script, and the plot goes to its output.
void plot_script(const Figure *f, const PlotData *d, const PlotOptions *o, const char *data,
                 const char *output, Text *out);
