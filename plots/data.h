// What a figure's query gave, as gnuplot reads it: a file of numbers in blocks, one block per series of a
// panel, and beside it every text, each known to the script by its number.
#pragma once
#include "engine/base/text.h"
#include "plots/figures.h"
#include "results/store.h"

enum { PLOT_MOST_PANELS = 12 }; // more are left out, and the figure says so

typedef struct Names {
    char **items; // (count): no two equal
    size_t count, capacity;
} Names;

typedef struct PlotBlock {
    int panel, series, colour; // numbers of texts, from 1; series of one colour are alike, in other panels
    int rows;
} PlotBlock;

typedef struct PlotData {
    Text numbers; // of the data file
    Names panels, series, colours, labels;
    Names titles;      // of the panels, without what leads to their paths
    Names notes;       // lines under the figure: run and machine, stand-ins, what was left out
    PlotBlock *blocks; // (count): those of a panel follow each other
    size_t count, capacity;
    int left_out;   // panels
    int doubtful;   // the column that says which points are, from 1; 0: none is
    const char *of; // panels that do not hold it are `others`, and are not drawn; NULL: there are none
    Names others;
} PlotData;

// False with e filled. A count of 0: the run has nothing to draw. Release it either way. of: draws the panels
// whose titles hold it, where any does; NULL: all.
bool plot_data(Store *store, const Figure *f, int64_t run, const char *computed, const char *of,
               PlotData *out, Error *e);
// A line on the panels that it leaves out; nothing where it draws all.
void plot_left_out(const Figure *f, const PlotData *d, Text *out);
void plot_data_release(PlotData *d); // takes an empty one
