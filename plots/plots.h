// Figures by gnuplot, from the store: for each figure one query, one script and one row of a table, and one
// common style. The texts of a figure (titles, labels, failures) are data too: they reach gnuplot only as
// quoted text (put_string in plot.c), in which nothing is substituted.
//
//   figures/NAME.sql   the figure's query
//   figures/NAME.gp    draws it, after style.gp, which lays out panels and picks colours
//   report/            the queries, the style and the scripts of the report's page
//
// Next to a plot are the two files that redraw it: PLOT.dat, its numbers, and PLOT.gp, the whole script (next
// to "eta.svg": "eta.svg.dat", "eta.svg.gp"). A plot for TeX is two files, too: "eta.tex" includes
// "eta-inc.pdf", or "eta-inc.eps" by a gnuplot without cairo.
#pragma once
#include "engine/base/output.h"
#include "engine/base/text.h"
#include "plots/page.h"
#include "results/store.h"

// --- the figures (figures.c) -----------------------------------------------------------------------------

// A new figure is figures/NAME.sql, figures/NAME.gp and a row in figures.c. Its query gets the run as ?1 and
// the run's computed values as ?2 (harness/papers/computed.h), or NULL. Each row is a point; the names of
// the columns give their meaning:
//
//   panel     text: the panel's title; the rows of one panel are adjacent
//   series    text: the legend's entry; the rows of one series are adjacent. Equal texts have the same colour
//   in
//             all panels
//   colour    text: series with equal colours have the same colour and mark, whatever their names
//   scan      a blank line separates different values: rows of a grid, for contours
//   label...  text at the point: the script sees its number, from 1, in the array `label`; NULL is 0
//   doubtful  1: the point's times are doubtful (the view point_doubt), and the script draws a star; its
//             variable `doubtful` is the number of this column, 0 if no point is doubtful
//   others    numbers; NULL is nan
typedef enum { RUN_SWEEP, RUN_SURFACE } RunKind; // of the run that a figure draws
typedef enum { COMPUTED_FITS = 1, COMPUTED_PREDICTION = 2, COMPUTED_TABLES = 4 } Computed; // parts of ?2
typedef enum { PRICED_NONE, PRICED_TREES, PRICED_CHAINS } PricedSteps; // harness/analysis/priced.h

typedef struct Figure {
    const char *name, *summary; // summary: also the title
    const char *papers; // the papers' figures that it draws, by their names in results/published, or NULL
    RunKind kind;
    unsigned computed;  // parts of ?2 that its query reads
    PricedSteps priced; // the steps that it draws of a named machine instead of measured ones
    const char *query;
    const char *script, *drawing; // in this order; drawing, shared by several figures, may be ""
    const char *needs;            // what to run, if a run has nothing to draw
    int width, height;            // of a panel, in pixels
    int row_height;               // added to height for every row of the fullest panel
} Figure;

extern const Figure figures[];
extern const int figure_count;
extern const char figures_style[]; // style.gp, before every script
extern const char figures_notes[]; // notes.sql: a run's own lines under each figure

const Figure *figure_find(const char *name); // its own name or a paper's; NULL: there is none

// --- plots (plot.c) --------------------------------------------------------------------------------------

typedef enum { PLOT_SVG, PLOT_PNG, PLOT_PDF, PLOT_TEX, PLOT_TERM, PLOT_FORMATS } PlotFormat;
extern const char
    *const plot_format_names[PLOT_FORMATS + 1]; // "svg", ..., also the files' extensions; NULL last

typedef struct PlotOptions {
    PlotFormat format;
    bool dark;            // for a dark page
    bool colour;          // PLOT_TERM: the terminal shows colours
    int columns, lines;   // PLOT_TERM: of the terminal; 0: 100, and 22 a panel
    const char *gnuplot;  // the program; NULL: "gnuplot" on $PATH
    const char *of;       // draws only panels whose titles contain this, if any do; NULL: all
    Text *notes;          // gets a line on panels left out, and on a poorer terminal; NULL: ignored
    const char *computed; // for figures that need it (Figure.computed); NULL: nothing was computed
} PlotOptions;

// Draws figure f of a run as the file `path`, and adds it to `out` with the files next to it; a stream gets
// only the picture. False with e filled: nothing to draw (with what to run), no gnuplot, or no such run.
bool plot_write(Store *store, const Figure *f, int64_t run, const PlotOptions *o, const char *path,
                Output *out, Error *e);

// The same as text: SVG, or lines for a terminal. Leaves no file, however the program ends.
bool plot_text(Store *store, const Figure *f, int64_t run, const PlotOptions *o, Text *out, Error *e);
bool plot_newest(Store *store, const Figure *f, int64_t *run, Error *e); // of f's kind; 0: there is none

// The curve of a training, whose numbers are not in the store. As plot_write.
typedef struct PlotLosses {
    const char *title;
    const double *steps;     // (count)
    const double *series[2]; // (count) each: of batches, held out; NAN: unknown
    size_t count;
} PlotLosses;
bool plot_losses(const PlotLosses *l, const PlotOptions *o, const char *path, Output *out, Error *e);

// --- the report (report.c) -------------------------------------------------------------------------------

typedef struct ReportOptions {
    PageFormat format;
    const char *gnuplot;  // the program, which HTML doesn't need; NULL: "gnuplot" on $PATH
    Text *notes;          // gets a line per figure that leaves panels out; NULL: ignored
    const char *computed; // of the run; NULL: none
} ReportOptions;

// Everything stored of a run on one page: the verdict first, then tables, figures, the machine, disturbances,
// and how to repeat it. Adds the page `path` to `out`, after its figures. HTML is one file that includes
// them; Markdown and LaTeX have them in a folder: for "a/demo.md" they are "a/demo-figures/NAME.svg", with
// their data and scripts. Figures of steps of given shapes draw the newest surface of the same models.
bool report_write(Store *store, int64_t run, const ReportOptions *o, const char *path, Output *out, Error *e);
extern const char report_tasks[]; // tasks.sql: the section of run ?1 by category of its data

// --- a figure's data (data.c) ----------------------------------------------------------------------------

enum { PLOT_MOST_PANELS = 12 }; // further panels are left out, with a note

typedef struct Names {
    char **items; // (count), all different
    size_t count, capacity;
} Names;

typedef struct PlotBlock {
    int panel, series, colour; // numbers of names, from 1
    int rows;
} PlotBlock;

// The result of a figure's query as gnuplot reads it: a file of numbers with one block per series of a panel,
// and every text under a number.
typedef struct PlotData {
    Text numbers; // of the data file
    Names panels, series, colours, labels;
    Names titles;      // of the panels, with shortened paths
    Names notes;       // lines under the figure: run and machine, proxy models, omissions
    PlotBlock *blocks; // (count); the blocks of a panel are adjacent
    size_t count, capacity;
    int left_out;   // panels
    int doubtful;   // number of the column `doubtful`, from 1; 0: no point is doubtful
    const char *of; // panels whose titles don't contain it go into `others`; NULL: all are drawn
    Names others;
} PlotData;

// A count of 0 means that the run has nothing to draw. Release it either way.
bool plot_data(Store *store, const Figure *f, int64_t run, const char *computed, const char *of,
               PlotData *out, Error *e);
int plot_name(Names *n, const char *text); // adds a name if it is new; returns its number
void plot_left_out(const Figure *f, const PlotData *d, Text *out); // a line on the panels that are left out
void plot_data_release(PlotData *d);                               // takes an empty one

// plot_write and plot_text for data that isn't empty; plot.c.
bool plot_draw(const Figure *f, const PlotData *d, const PlotOptions *o, const char *path, Output *out,
               Error *e);
bool plot_draw_text(const Figure *f, const PlotData *d, const PlotOptions *o, Text *out, Error *e);
