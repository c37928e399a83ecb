// Between the store and gnuplot: a figure's data, its caption, and the script that draws it.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "results/store.h"

// Of plots.h:
typedef struct Figure Figure;
typedef struct PlotOptions PlotOptions;

// --- data (data.c) ---------------------------------------------------------------------------------------

// How a series looks, wherever it is drawn.
typedef struct PlotLook {
    const char *name; // of a method; NULL: no method has it yet
    const char *hue;  // "#rrggbb"
    int mark, dash;   // gnuplot's numbers
} PlotLook;
extern const PlotLook palette[]; // methods first; further names have these colours in turn, from the first on
extern const int palette_count;

// Of heat maps, from dark to light at an even pace, so that grey print keeps the order. A value has its
// colour in every figure: the stops share the ramp evenly, and between two of them it goes by the value's
// logarithm.
extern const char *const plot_ramp[]; // (plot_ramp_count)
extern const double plot_stops[];     // (plot_stop_count)
extern const int plot_ramp_count, plot_stop_count;

enum { PLOT_MOST_PANELS = 12 }; // further panels are left out, with a note

typedef struct Names {
    char **items; // (count), all different
    size_t count, capacity;
} Names;

typedef struct PlotBlock {
    int panel, series, colour; // numbers of names, from 1
    int rows;                  // a blank one between scans isn't counted
} PlotBlock;

// The result of a figure's query: numbers in blocks, one per series of a panel, and every text under a
// number.
typedef struct PlotData {
    Names columns;  // of the numbers
    double *values; // (value_count, whole rows of columns), block by block; NAN: none
    size_t value_count, value_capacity;
    size_t *scans; // (scan_count), in order: the rows, of all blocks, that a blank one precedes
    size_t scan_count, scan_capacity;
    Names panels, series, colours, labels;
    Names titles;            // of the panels, with shortened paths
    Names short_titles;      // without words that all of them begin or end with; `shared` has these words
    Names settings, methods; // texts of the columns label_bar and label_method
    Text shared;
    Names notes;       // lines under the figure: run and machine, proxy models, omissions
    PlotBlock *blocks; // (count); the blocks of a panel are adjacent
    size_t count, capacity;
    bool intervals;        // the column `low` has numbers
    int left_out;          // panels
    int doubtful;          // number of the column `doubtful`, from 1; 0: no point is doubtful
    bool some_doubt, lost; // whether the column has a 1, a 2
    const char *of;        // panels whose titles don't contain it go into `others`; NULL: all are drawn
    Names others;
} PlotData;

// A count of 0 means that the run has nothing to draw. Release it either way.
bool plot_data(Store *store, const Figure *f, int64_t run, const char *computed, const char *of,
               PlotData *out, Error *e);
int plot_name(Names *n, const char *text);       // adds a name if it is new; returns its number
void plot_block(PlotData *d, PlotBlock b);       // begins a block, which has no rows yet
double *plot_row(PlotData *d);                   // adds a row of NANs to the last block; returns its numbers
int plot_alike(const PlotData *d, size_t block); // how many series before the block's have its colour
void plot_left_out(const Figure *f, const PlotData *d, Text *out); // a line on the panels that are left out
void plot_data_text(const PlotData *d, Text *out);                 // the file that gnuplot reads
void plot_data_release(PlotData *d);                               // takes an empty one

// --- captions (plot.c) -----------------------------------------------------------------------------------

// A caption in plain text, some sentences: subject, marks, intervals, n, conditions, settings, notes.
bool plot_caption(Store *store, const Figure *f, int64_t run, const char *computed, const PlotData *d,
                  Text *out, Error *e);

// --- the script (script.c) -------------------------------------------------------------------------------

#define SCRIPT_NOTE "note: " // begins a line that a script prints for the user

// Writes the script that redraws a plot. data, output: file names without folders, as the script will find
// them where it runs; NULL: the numbers are in the script, and the plot goes to standard output.
void script_put(const Figure *f, const PlotData *d, const PlotOptions *o, const char *data,
                const char *output, Text *out);

// A script that prints 1 if gnuplot has a terminal for the PlotFormat, else 0.
void script_can(int format, Text *out);

// Writes a gnuplot string of exactly these bytes. In single quotes nothing is substituted; a byte that can't
// be in them, a quote or a control character, becomes a string of its own, by its number, joined by a point.
// (A quote alone in double quotes would do, but then gnuplot's macros would expand '@'.)
void script_string(Text *out, const char *bytes);

// --- charts ---------------------------------------------------------------------------------------------

// Figures as data that the report's page draws itself (report/charts.js), in the reader's browser.

// Appends a figure as a JSON object: its labels and axes, read from its script, and its panels, each with its
// series of rows. Rows have the query's columns; a label is a number in `labels`, from 1, and null an unknown
// number; an empty row separates scans. y goes from `from` to `to`, and has `within` on it, where these are
// known. Colours and marks are numbers from 1; series of one colour have marks of their own.
//
//   {"x": "window W", "y": "S", "log": "x", "from": 1, "levels": [1.1, 1.5], "columns": ["W", "S", "low",
//    "high"], "labels": [], "notes": ["run 1, ..."], "panels": [{"title": "chat", "series": [{"name": "N=5",
//    "colour": 2, "mark": 2, "rows": [[5, 1.4, 1.3, 1.5]]}]}]}
void chart_put(const Figure *f, const PlotData *d, Text *out);

// Appends the palette's colours and those of heat maps as a JSON object: {"hues": ["#0072b2", ...], "ramp":
// ["#00224e", ...], "stops": [0.25, ...]}.
void chart_put_look(Text *out);
