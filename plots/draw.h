// Drawing what was read before.
#pragma once
#include "plots/data.h"
#include "plots/plots.h"

// As plot_write and plot_text; the data is not empty.
bool plot_draw(const Figure *f, const PlotData *d, const PlotOptions *o, const char *path, Output *out,
               Error *e);
bool plot_draw_text(const Figure *f, const PlotData *d, const PlotOptions *o, Text *out, Error *e);
