// Output for people, fitted to their terminal: a grid of cells leaves out its least columns and folds long
// texts, and sentences are folded. Into a file or a pipe everything goes at full width, so that scripts read
// the same lines wherever they run.
//
//      Grid g = {.columns = COLUMNS, .count = 2};
//      grid_heads(&g);
//      text_printf(&g.cell, "%d", number), grid_next(&g);
//      text_puts(&g.cell, label), grid_next(&g);
//      grid_end(&g);
//      grid_show(&g);
//      grid_release(&g);
//
// A command's table is a RecordTable (table.h), which fills one. Cells may hold foreign text: control
// characters become '?'.
#pragma once
#include "engine/base/error.h"
#include "engine/base/progress.h"
#include "engine/base/text.h"

typedef struct Page Page; // plots/page.h

// The width of the terminal in letters; 0: standard output is a file or a pipe.
int terminal_width(void);
int terminal_height(void); // lines, of a terminal

// Appends foreign text in a form that is safe to print: control characters except ends of lines, and bytes
// that are not UTF-8, become '?'.
void terminal_letters(const char *text, Text *out);

// A foreign name (of a file, a model, a point) within a printed line: ends of lines become '?', too. The
// result lives as long as the enclosing block.
enum { SHOWN_SIZE = 4352 };
#define SHOWN(name) terminal_shown((char[SHOWN_SIZE]){0}, name)
const char *terminal_shown(char out[SHOWN_SIZE], const char *name);

// Prints lines, as terminal_letters leaves them. Lines too long for the terminal are folded at
// blanks, under the start of their last column. The text is released.
void terminal_print(Text *text);
void terminal_printf(const char *format, ...) __attribute__((format(printf, 1, 2))); // the same, whole lines
void terminal_fold(const char *text, int width, Text *out);                          // width 0: as it is

typedef struct GridColumn {
    const char *head;
    bool number; // right-aligned
    int least;   // a text may be folded to this width; 0: it may not
    int drop; // where there is no room, the column with the least number above 0 is left out first; 0: never
} GridColumn;

typedef struct Grid {
    const GridColumn *columns; // (count)
    int count;
    Text cell; // the next cell, until grid_next
    Text rows;
} Grid;

enum { GRID_MOST_COLUMNS = 24 };

void grid_heads(Grid *g); // a row of the columns' heads
void grid_next(Grid *g);
void grid_end(Grid *g);  // ends the row. A column with no text in any row is not shown
void grid_rest(Grid *g); // the cell replaces all further ones, in any width, and ends the row

// width 0: of any. A last line names the columns that were left out.
void grid_print(const Grid *g, int width, Text *out);
void grid_page(const Grid *g, const Page *p, const char *caption); // as a page's table
void grid_show(const Grid *g); // on standard output, on a terminal coloured

// Appends lines with a red 'NO' or 'differ(s)' and a dim 'disturbed'. $NO_COLOR: as they are.
void terminal_coloured(const char *text, Text *out);
void grid_release(Grid *g);

// --- a line of progress ---------------------------------------------------------------------------------

// The progress of a long command: one line on standard error. On a terminal it renews itself a few times a
// second, cut to the terminal's width; elsewhere a plain line is written once a minute.
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

// How many bytes of UTF-8 text fit into so many columns.
size_t line_fit(const char *text, int columns);
