// The figures there are. A new one is figures/NAME.sql, figures/NAME.gp and a row in figures.c.
//
// A figure's query is given the run as ?1, and as ?2 what was computed of it (harness/predict/computed.h), or
// NULL. Each row that it returns is one point of the figure. What a column is follows from its name:
//
//   panel     text: the panel's title; the rows of one panel come one after another
//   series    text: the legend's entry; the rows of one series come one after another. Equal texts have the
//             same colour in all panels
//   colour    text: series of equal ones have the same colour and mark instead, whatever they are called
//   scan      where it changes, a blank line is written: rows of a grid, for contours
//   label...  text beside the point: the script sees its number, from 1, in the array `label`; NULL is 0
//   doubtful  1: there are reasons to doubt the point's times (the view point_doubt), and the script draws a
//   star beside
//             it; its variable `doubtful` is the number of this column, 0 where no point of the figure has a
//             1
//   others    numbers; NULL is nan
#pragma once
#include <stdbool.h>

typedef enum { RUN_SWEEP, RUN_SURFACE } RunKind; // what a figure draws

typedef enum {
    COMPUTED_FITS = 1,
    COMPUTED_PREDICTION = 2,
    COMPUTED_TABLES = 4
} Computed; // bits: which parts of ?2 its query reads

// Which steps of a machine that is named it draws instead of measured ones
// (harness/predict/priced_surface.h).
typedef enum { PRICED_NONE, PRICED_TREES, PRICED_CHAINS } PricedSteps;

typedef struct Figure {
    const char *name, *summary; // summary: its title, too
    const char *papers;         // those that it draws, as results/published names them, or NULL
    RunKind kind;
    unsigned computed; // of Computed
    PricedSteps priced;
    const char *query;
    const char *script, *drawing; // in this order; drawing (how several figures are drawn) may be ""
    const char *needs;            // what to run, where a run has nothing to draw
    int width, height;            // of a panel, in pixels
    int row_height;               // height grows by it for every row of the panel that has most
} Figure;

extern const Figure figures[];
extern const int figure_count;
extern const char figures_style[]; // style.gp, before every script
extern const char figures_notes[]; // notes.sql: a run's own lines under each figure

const Figure *figure_find(const char *name); // or of a paper's; NULL: there is none
