// Figures by gnuplot, from the store: for each figure one query, one script and one row of a table, and one
// common style. The texts of a figure (titles, labels, failures) are data too: they reach gnuplot only as
// quoted text (script_string), in which nothing is substituted.
//
//   figures/NAME.sql   the figure's query
//   figures/NAME.gp    its settings or, if it has a form of its own, its drawing: after style.gp, whose
//                      settings it changes, and before end.gp, which draws the page's texts; layout.gp, in
//                      the place of its line "#layout", lays out the panels
//   report/            the queries, the style and the scripts of the report's page
//
// Next to a plot are the two files that redraw it: PLOT.dat, its numbers, and PLOT.gp, the whole script (next
// to "eta.svg": "eta.svg.dat", "eta.svg.gp"). A plot for TeX is two files, too: "eta.tex" includes
// "eta-inc.pdf", or "eta-inc.eps" by a gnuplot without cairo.
#pragma once
#include "engine/base/output.h"
#include "engine/base/text.h"
#include "plots/figures.h"
#include "plots/page.h"
#include "results/store.h"

// --- plots (plot.c) --------------------------------------------------------------------------------------

typedef enum { PLOT_SVG, PLOT_PNG, PLOT_PDF, PLOT_TEX, PLOT_TERM, PLOT_FORMATS } PlotFormat;
extern const char
    *const plot_format_names[PLOT_FORMATS + 1]; // "svg", ..., also the files' extensions; NULL last

struct PlotOptions {
    PlotFormat format;
    double width_mm, height_mm; // on paper; 0: a picture for the screen (tex: 5.5 in wide), as high as needed
    double points;              // size of its letters; 0: 8 (tex without a width: 9), on the screen 12 pixels
    const char *font;           // NULL: sans-serif; tex: the page's
    bool no_title, no_footer; // neither the figure's title, and panels' titles as short as can be, nor notes
    bool dark;                // for a dark page
    bool colour;              // PLOT_TERM: the terminal shows colours
    int columns, lines;       // PLOT_TERM: of the terminal; 0: 100, and 22 a panel
    const char *gnuplot;      // the program; NULL: "gnuplot" on $PATH
    const char *of;           // draws only panels whose titles contain this, if any do; NULL: all
    const char *panel;        // as `of`, but an error if there is none
    Text *caption;            // gets a caption in plain text; NULL: ignored
    Text *notes;              // gets a line on panels left out, and on a poorer terminal; NULL: ignored
    const char *computed;     // for figures that need it (Figure.computed); NULL: nothing was computed
};

// Draws figure f of a run as the file `path`, and adds it to `out` with the files next to it; a stream gets
// only the picture. False with e filled: nothing to draw (with what to run), no gnuplot, or no such run.
bool plot_write(Store *store, const Figure *f, int64_t run, const PlotOptions *o, const char *path,
                Output *out, Error *e);

// The same as text: SVG, or lines for a terminal. Leaves no file, however the program ends.
bool plot_text(Store *store, const Figure *f, int64_t run, const PlotOptions *o, Text *out, Error *e);
bool plot_newest(Store *store, const Figure *f, int64_t *run, Error *e); // of f's kind; 0: there is none

// plot_write and plot_text for data that isn't empty (data.h).
bool plot_draw(const Figure *f, const PlotData *d, const PlotOptions *o, const char *path, Output *out,
               Error *e);
bool plot_draw_text(const Figure *f, const PlotData *d, const PlotOptions *o, Text *out, Error *e);

#define PLOT_COLUMN_MM 85.0  // a paper's column
#define PLOT_TEXT_MM   175.0 // and its two columns

// Whether gnuplot can draw the format; `program` as PlotOptions.gnuplot.
bool plot_can(PlotFormat format, const char *program, bool *can, Error *e);

// --- a paper's figures (paper.c) -------------------------------------------------------------------------

// Pictures in a folder, and FOLDER/figures.tex, a page that includes them with their captions.
typedef struct Paper {
    const PlotOptions *o; // width_mm 0: a column's for up to two panels, else the text's
    const char *folder;
    bool no_page; // the pictures alone, of width 0 for the screen
    Output *out;
    int count;    // of figures drawn
    Text figures; // of the page
} Paper;
// Adds a figure's files, unless it has nothing to draw.
bool paper_add(Paper *p, Store *store, const Figure *f, int64_t run, const char *computed, Error *e);
bool paper_finish(Paper *p, Error *e); // adds the page
void paper_release(Paper *p);

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
    int64_t against;      // another run, whose texts stand beside this one's; 0: none
} ReportOptions;

// Everything stored of a run on one page: the verdict first, then tables, figures, the machine, disturbances,
// and how to repeat it. Adds the page `path` to `out`, after its figures. HTML is one file that includes
// them; Markdown and LaTeX have them in a folder: for "a/demo.md" they are "a/demo-figures/NAME.svg", with
// their data and scripts. Figures of steps of given shapes draw the newest surface of the same models.
bool report_write(Store *store, int64_t run, const ReportOptions *o, const char *path, Output *out, Error *e);

// Queries of run ?1 by name (rows_named): doubt, a sentence on what disturbed it; tasks, by category of its
// data; priced and summary, a row a point and a sentence, on the machine of ?2 (ReportOptions.computed).
extern const char report_sql[];

// Queries of texts token by token (plots/report/tokens.sql): texts, a row a text; steps, a row a step of one.
extern const char tokens_sql[];
