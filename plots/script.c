#include "plots/script.h"

#include "plots/letters.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

enum { WHOLE = INT_MAX }; // of a text

// --- texts -----------------------------------------------------------------------------------------------

// A string of gnuplot's of just these bytes. In single quotes nothing is substituted; a byte that cannot be
// in them, a quote or a control character, is a string of its own, by its number, and joined by a point. (A
// quote by itself in double quotes would do, were it not for gnuplot's macros, which then take '@' for
// theirs.)
static void put_string(Text *out, const char *bytes) {
    enum { DELETE = 0x7f };
    bool open = false;
    for (const char *at = bytes; *at; at++) {
        bool plain = *at != '\'' && *at != DELETE && !(*at >= 0 && *at < ' ');
        if (open && !plain) text_puts(out, "'");
        if (at > bytes && !(open && plain)) text_puts(out, ".");
        if (plain && !open) text_puts(out, "'");
        if (plain) text_add(out, at, 1);
        else text_printf(out, "\"\\%03o\"", (unsigned)*at);
        open = plain;
    }
    text_puts(out, open ? "'" : *bytes ? "" : "''");
}

// A text to be drawn. Terminals run without enhanced text; of them only TeX reads more into letters. Of a
// text of more than `most` letters the rest is dots.
static void put_quoted(Text *out, const char *text, int most, PlotFormat format) {
    char letter[LETTER_SIZE];
    Text drawn = {0};
    for (int i = 0; letters_next(&text, letter); i++) {
        const char *escaped = format == PLOT_TEX ? letters_tex(*letter) : NULL;
        if (i == most - 1 && *text) {
            text_puts(&drawn, "...");
            break;
        }
        text_puts(&drawn, escaped ? escaped : letter);
    }
    put_string(out, text_get(&drawn));
    out->failed = out->failed || drawn.failed;
    text_release(&drawn);
}

// A file in the script's folder. A name may begin as what is none to gnuplot: "|lpr", "<id", "$numbers".
static void put_file(Text *out, const char *name) {
    if (!isalnum((unsigned char)name[0])) text_puts(out, "'./'.");
    put_string(out, name);
}

static void put_names(Text *out, const char *array, const Names *n, int most, PlotFormat format) {
    // An array has one element at least.
    text_printf(out, "array %s[%zu] = [", array, n->count ? n->count : 1);
    for (size_t i = 0; i < n->count; i++) {
        if (i) text_puts(out, ", ");
        put_quoted(out, n->items[i], most, format);
    }
    text_puts(out, n->count ? "]\n" : "'']\n");
}

// --- the canvas ------------------------------------------------------------------------------------------

typedef struct Canvas {
    int across, down, width, height; // panels, and pixels or characters
} Canvas;

// A figure in a paper is as wide as its text, 5.5 in, of letters of 9 pt: pixels of 3/4 pt make that as
// legible as 12 pt are on a page that is wider.
enum {
    MOST_WIDTH = 1200,
    TEX_WIDTH = 528,
    LINE = 18,
    LETTER_WIDTH = 7,
    TEX_LETTER_WIDTH = 6,
    COLUMNS = 100,
    LEAST_LINES = 12,
    MOST_LINES = 22
};
static const double INCHES = 1 / 72.0, TEX_INCHES = 0.75 / 72;

static int rows_of_fullest(const PlotData *d) {
    int most = 0, rows = 0;
    for (size_t i = 0; i < d->count; i++) {
        rows =
            i && d->blocks[i].panel == d->blocks[i - 1].panel ? rows + d->blocks[i].rows : d->blocks[i].rows;
        if (rows > most) most = rows;
    }
    return most;
}

static Canvas canvas_of(const Figure *f, const PlotData *d, const PlotOptions *o) {
    int panels = (int)d->panels.count - d->left_out, notes = (int)d->notes.count;
    int rows = f->row_height ? rows_of_fullest(d) : 0;
    Canvas c = {.across = MOST_WIDTH / f->width};
    if (c.across > panels) c.across = panels;
    if (o->format == PLOT_TERM) c.across = 1;
    if (o->format == PLOT_TEX) c.across = panels > 2 && f->width <= MOST_WIDTH / 2 ? 2 : 1;
    c.down = (panels + c.across - 1) / c.across;
    if (o->format == PLOT_TERM) {
        c.width = o->columns ? o->columns : COLUMNS;
        int lines = o->lines ? o->lines - (notes + 4) : MOST_LINES; // a panel fills the screen
        if (lines < LEAST_LINES) lines = LEAST_LINES;
        c.height = c.down * (f->row_height ? 6 + 2 * rows : lines) + notes + 3;
    } else {
        int height = f->height + f->row_height * rows;
        // A panel alone is wider: its legend and labels need the place that others lend each other.
        c.width = panels == 1 && f->width <= MOST_WIDTH / 2 ? f->width * 4 / 3 : c.across * f->width;
        if (o->format == PLOT_TEX) c.width = TEX_WIDTH;
        c.height = c.down * height + LINE * (notes + 3);
    }
    return c;
}

// Sizes of pixels at 72 to the inch, where a terminal counts in inches.
static void put_terminal(Text *out, const Canvas *c, const PlotOptions *o) {
    const char *paper = o->dark ? "#16191d" : "#ffffff";
    double inches = o->format == PLOT_TEX ? TEX_INCHES : INCHES, x = c->width * inches,
           y = c->height * inches;
    switch (o->format) {
    case PLOT_PNG:
        text_printf(out,
                    "set terminal pngcairo noenhanced size %d,%d font 'sans-serif,12' background '%s' "
                    "fontscale 1.0\n",
                    c->width, c->height, paper);
        return;
    case PLOT_PDF:
        text_printf(
            out, "set terminal pdfcairo noenhanced size %.3fin,%.3fin font 'sans-serif,12' background '%s'\n",
            x, y, paper);
        return;
    // Letters of a page that loads no colours are black. The header stands in a group of the figure's own.
    case PLOT_TEX:
        text_printf(out,
                    "set terminal cairolatex pdf size %.3fin,%.3fin font ',9' %s header "
                    "'\\providecommand\\definecolor[3]{}\\fontsize{9}{11}\\selectfont'\n",
                    x, y, o->dark ? "colourtext" : "blacktext");
        return;
    case PLOT_TERM:
        text_printf(out, "set terminal dumb noenhanced size %d,%d %s\n", c->width, c->height,
                    o->colour ? "ansi256" : "mono");
        return;
    default:
        text_printf(out, "set terminal svg noenhanced size %d,%d font 'sans-serif,12' background '%s'\n",
                    c->width, c->height, paper);
    }
}

// --- blocks ----------------------------------------------------------------------------------------------

typedef enum { PANEL_FIRST, PANEL_LAST, BLOCK_SERIES, BLOCK_COLOUR, BLOCK_ROWS } ArrayKind;

static void put_array(Text *out, const char *name, const PlotData *d, ArrayKind kind) {
    bool of_panels = kind == PANEL_FIRST || kind == PANEL_LAST;
    const char *between = "";
    text_printf(out, "array %s[%zu] = [", name, of_panels ? d->panels.count - (size_t)d->left_out : d->count);
    for (size_t i = 0; i < d->count; i++) {
        const PlotBlock *b = &d->blocks[i];
        if (kind == PANEL_FIRST && i && b[-1].panel == b->panel) continue;
        if (kind == PANEL_LAST && i + 1 < d->count && b[1].panel == b->panel) continue;
        int value = of_panels              ? (int)i
                    : kind == BLOCK_SERIES ? b->series
                    : kind == BLOCK_COLOUR ? b->colour
                                           : b->rows;
        text_printf(out, "%s%d", between, value);
        between = ", ";
    }
    text_puts(out, "]\n");
}

// Where the numbers are, and where the plot goes. What stands between the marks is no script: nothing of it
// is read but numbers.
static void put_place(Text *out, const PlotData *d, const char *data, const char *output) {
    if (output) {
        text_puts(out, "set output ");
        put_file(out, output);
        text_puts(out, "\n");
    }
    if (!data) text_printf(out, "$numbers << END_OF_NUMBERS\n%s\nEND_OF_NUMBERS\n", text_get(&d->numbers));
    text_puts(out, "data = ");
    if (data) put_file(out, data);
    else put_string(out, "$numbers");
}

void plot_script(const Figure *f, const PlotData *d, const PlotOptions *o, const char *data,
                 const char *output, Text *out) {
    Canvas c = canvas_of(f, d, o);
    int letters = o->format == PLOT_TERM  ? c.width
                  : o->format == PLOT_TEX ? c.width / TEX_LETTER_WIDTH
                                          : c.width / LETTER_WIDTH;
    text_puts(out, "# Redraws the plot: run gnuplot on this file, in its folder.\n");
    if (data && o->format == PLOT_TEX)
        text_printf(out, "# It writes %s, for \\input, and the picture that this includes.\n", output);
    put_terminal(out, &c, o);
    text_puts(out, "set encoding utf8\n");
    put_place(out, d, data, output);
    text_printf(out,
                "\nchars = %d\ntex = %d\ndark = %d\npanels = %d\nacross = %d\ndown = %d\npixels = "
                "%d\ndoubtful = %d\ntitle = ",
                o->format == PLOT_TERM, o->format == PLOT_TEX, o->dark, (int)d->panels.count - d->left_out,
                c.across, c.down, c.height, d->doubtful);
    put_quoted(out, f->summary, WHOLE, o->format);
    text_puts(out, "\n");
    put_names(out, "panel", &d->titles, letters * 2 / 3 / c.across, o->format);
    put_names(out, "series", &d->series, letters / c.across / 3, o->format);
    put_names(out, "label", &d->labels, letters / c.across / 2, o->format);
    put_names(out, "note", &d->notes, letters, o->format);
    put_array(out, "first", d, PANEL_FIRST);
    put_array(out, "last", d, PANEL_LAST);
    put_array(out, "block_series", d, BLOCK_SERIES);
    put_array(out, "block_colour", d, BLOCK_COLOUR);
    put_array(out, "block_rows", d, BLOCK_ROWS);
    text_printf(out, "\n%s\n%s\n%sunset output\n", figures_style, f->script, f->drawing);
}
