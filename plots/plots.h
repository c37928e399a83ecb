// Figures by gnuplot, from the store: for each figure one query, one script and one row of a table, and one
// common style. What a figure says beside its numbers (titles, labels, what failed) comes from data too: it
// reaches gnuplot as quoted text only (put_string in script.c), in which nothing is substituted.
//
//   figures/NAME.sql   what a figure asks (figures.h says what its columns may be called)
//   figures/NAME.gp    draws it; it runs after style.gp, which lays out panels and picks colours
//   report/            what the report's page asks, and its style and script
//
// Beside a plot stand the two files that redraw it: PLOT.dat, its numbers, and PLOT.gp, all of the script
// (beside "eta.svg": "eta.svg.dat", "eta.svg.gp"). A plot for TeX is two files, too: "eta.tex" includes
// "eta-inc.pdf".
#pragma once
#include "engine/base/output.h"
#include "engine/base/text.h"
#include "plots/figures.h"
#include "results/store.h"

typedef enum { PLOT_SVG, PLOT_PNG, PLOT_PDF, PLOT_TEX, PLOT_TERM, PLOT_FORMATS } PlotFormat;

// "svg", "png", ...: how a user says it, and how files of it end. NULL for the last.
extern const char *const plot_format_names[PLOT_FORMATS + 1];

typedef struct PlotOptions {
    PlotFormat format;
    bool dark;            // on a dark page
    bool colour;          // PLOT_TERM: the terminal shows colours
    int columns, lines;   // PLOT_TERM: of the terminal; 0: 100, and 22 a panel
    const char *gnuplot;  // the program; NULL: "gnuplot" on $PATH
    const char *of;       // a text: only panels whose titles hold it are drawn, where any does; NULL: all are
    Text *left_out;       // takes a line on panels that are left out; NULL: nobody reads it
    const char *computed; // for figures that ask it (Figure.computed); NULL: nothing was computed
} PlotOptions;

// Draws figure f of a run as the file `path`, and adds it to `out` with those beside it; one that goes to a
// stream goes alone. False with e filled: nothing to draw (it says what to run), no gnuplot, no such run.
bool plot_write(Store *store, const Figure *f, int64_t run, const PlotOptions *o, const char *path,
                Output *out, Error *e);

// The same as text: SVG, or lines for a terminal. No file is left of it, whatever ends the program.
bool plot_text(Store *store, const Figure *f, int64_t run, const PlotOptions *o, Text *out, Error *e);

// The newest run that holds what f draws; 0: there is none.
bool plot_newest(Store *store, const Figure *f, int64_t *run, Error *e);
