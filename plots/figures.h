// The table of figures (figures.c): what each draws, its axes, its query and its script.
#pragma once
#include "plots/data.h"

#include <stdbool.h>

// A new figure is figures/NAME.sql, figures/NAME.gp and a row in figures.c. Its query gets the run as ?1 and
// the run's computed values as ?2 (harness/papers/computed.h), or NULL. Each row is a point; the names of
// the columns give their meaning:
//
//   panel     text: the panel's title; the rows of one panel are adjacent
//   series    text: the legend's entry; the rows of one series are adjacent. Equal texts have the same colour
//             in all panels
//   colour    text: series of one colour have it whatever their names; a method has that of the palette
//   scan      a blank line separates different values: rows of a grid
//   label...  text at the point: the script sees its number, from 1, in the array `label`; NULL is 0.
//             label_bar and label_method name a bar, the second where there is little room; captions have
//             the first
//   low       the lower end of an interval over resamples of prompts, which a caption then explains
//   doubtful  1: the point's times are doubtful (the views point_doubt and surface_doubt), and the script
//             draws a star; 2: they aren't those of this machine, all samples being disturbed: it's grey,
//             where it has an area hatched, and no scale of colours, line or level goes by it. The script's
//             variable `doubtful` is the number of this column, 0 if no point is doubtful
//   point, step_rows  the number of the point, or the rows of the steps, that the report's page opens
//   others    numbers; NULL is nan
typedef enum { RUN_SWEEP, RUN_SURFACE } RunKind; // of the run that a figure draws
typedef enum {
    COMPUTED_FITS = 1,
    COMPUTED_PREDICTION = 2,
    COMPUTED_TABLES = 4,
    COMPUTED_SURFACE = 8
} Computed;                                                            // parts of ?2
typedef enum { PRICED_NONE, PRICED_TREES, PRICED_CHAINS } PricedSteps; // harness/price/priced.h

typedef struct FigureAxes {
    const char *x, *y, *bar;          // names; NULL: each panel has its own
    int x_by_powers;                  // 1: of two, 2: of ten
    bool logarithmic;                 // both
    const double *from, *to, *within; // of y: its ends, and a value that must be on it; NULL: by the data
    double levels[3];                 // of the lines between cells; 0: no more
} FigureAxes;

struct Figure {
    const char *name, *summary; // summary: also the title
    const char *papers; // the papers' figures that it draws, by their names in results/published, or NULL
    RunKind kind;
    unsigned computed;  // parts of ?2 that its query reads
    PricedSteps priced; // the steps that it draws of a named machine instead of measured ones
    FigureAxes axes;
    const char *query;
    const char *script, *drawing; // in this order; drawing, shared by several figures, may be ""
    const char *caption;          // sentences that the summary doesn't have; NULL: none
    const char *needs;            // what to run, if a run has nothing to draw
    const char *how;              // its steps have their times: "priced"; NULL: measured
};

extern const Figure figures[];
extern const int figure_count;
extern const char figures_style[];  // style.gp, before every script
extern const char figures_layout[]; // layout.gp, in the place of its line "#layout"
extern const char figures_end[];    // end.gp, after it
extern const char figures_notes[];  // notes.sql: a run's own lines under each figure

int figure_levels(const FigureAxes *a);      // how many
const Figure *figure_find(const char *name); // its own name or a paper's; NULL: there is none
