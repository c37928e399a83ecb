// All that is stored of a run on one page: the verdict first, then tables, figures, the machine, what was
// disturbed, and how to repeat it.
#pragma once
#include "plots/page.h"
#include "plots/plots.h"

typedef struct ReportOptions {
    PageFormat format;
    const char *gnuplot;  // the program; NULL: "gnuplot" on $PATH
    Text *left_out;       // takes a line a figure that leaves panels out; NULL: nobody reads it
    const char *computed; // of the run: fits, prediction (figures.h); NULL: none
} ReportOptions;

// Adds the page `path` to `out`, after its figures. HTML is one file that holds them; Markdown and LaTeX have
// them in a folder beside it: of "a/demo.md" they are "a/demo-figures/NAME.svg", with their data and scripts.
// Figures of steps of given shapes are those of the newest surface of the same models. False with e filled.
bool report_write(Store *store, int64_t run, const ReportOptions *o, const char *path, Output *out, Error *e);
