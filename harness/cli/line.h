// The progress of a long command: one line on standard error. On a terminal it renews itself a few times a
// second, cut to the terminal's width; elsewhere a plain line is written once a minute.
#pragma once
#include "engine/base/progress.h"
#include "engine/base/text.h"

typedef struct Line {
    bool on;       // all zero: nothing is written
    bool terminal; // standard error is one
    bool there;    // the terminal's line is not empty
    double shown;  // when it was last written, in seconds of the monotonic clock
    // Of line_progress:
    char at[160];     // prefix: where the command is
    const char *what; // the current work, and when it began
    double began;
} Line;

void line_begin(Line *l, bool on);

// Whether it is time to write again.
bool line_due(const Line *l);
void line_show(Line *l, const char *text);
void line_clear(Line *l); // before anything else is written; and at the end

// Appends "making bigrams 40%, 3 min left": `share` of the work `what` is done.
void line_share(Line *l, const char *what, double share, Text *out);
void line_left(double seconds, Text *out); // "90 s left"

// Shows only that. The work ends once interrupt_seen. `l` outlives it.
Progress line_progress(Line *l);

// Columns of the terminal behind a descriptor; if unknown, $COLUMNS, or 80.
int line_columns(int descriptor);

// How many bytes of UTF-8 text fit into so many columns.
size_t line_fit(const char *text, int columns);
