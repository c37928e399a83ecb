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

// Writes `path`. HTML is one file that holds its figures; Markdown and LaTeX have them beside it, as
// PATH's name without its end, a dash and the figure's name. Figures of steps of given shapes are those of
// the newest surface of the same models. False with e filled.
bool report_write(Store *store, int64_t run, const ReportOptions *o, const char *path, Error *e);
