// The figures there are. A new one is NAME.sql, NAME.gp and a row.
//
// What a query gives, ?1 being the run, ?2 what was computed (harness/predict/computed.h), NULL where nothing
// was: a row a place in the figure, its columns by their names:
//   panel    text: a panel's title; rows of one panel follow each other
//   series   text: a legend's entry; rows of one follow each other. Equal texts have one colour in all panels
//   scan     a blank line stands where it changes: rows of a grid, for contours
//   label... text of a place: the script sees its number, from 1, in the array label; NULL is 0
//   others   numbers, as they are; NULL is nan
#pragma once
#include <stdbool.h>

typedef enum { RUN_SWEEP, RUN_SURFACE } RunKind; // what a figure draws

typedef enum {
    COMPUTED_FITS = 1,
    COMPUTED_PREDICTION = 2,
    COMPUTED_TABLES = 4
} Computed; // bits: what its query asks of ?2

typedef struct Figure {
    const char *name, *summary; // summary: its title, too
    const char *papers;         // those that it draws, as results/published names them, or NULL
    RunKind kind;
    unsigned computed; // of Computed
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
