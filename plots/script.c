#include "plots/script.h"

#include "plots/letters.h"

#include <limits.h>
#include <string.h>

enum { WHOLE = INT_MAX }; // of a text

// --- texts -----------------------------------------------------------------------------------------------

// In single quotes nothing is substituted, and only a quote needs doubling. Terminals run without enhanced
// text; of them only TeX reads more into letters. Of a text of more than `most` letters the rest is dots.
static void put_quoted(Text *out, const char *text, int most, PlotFormat format) {
    char letter[LETTER_SIZE];
    text_puts(out, "'");
    for (int i = 0; letters_next(&text, letter); i++) {
        const char *escaped = format == PLOT_TEX ? letters_tex(*letter) : NULL;
        if (i == most - 1 && *text) {
            text_puts(out, "...");
            break;
        }
        text_puts(out, *letter == '\'' ? "''" : escaped ? escaped : letter);
    }
    text_puts(out, "'");
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

enum { MOST_WIDTH = 1200, LINE = 18, LETTER_WIDTH = 7, COLUMNS = 100, MOST_LINES = 22 };

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
    c.down = (panels + c.across - 1) / c.across;
    if (o->format == PLOT_TERM) {
        c.width = o->columns ? o->columns : COLUMNS;
        c.height = c.down * (f->row_height ? 6 + 2 * rows : MOST_LINES) + notes + 3;
    } else {
        int height = f->height + f->row_height * rows;
        // A panel alone is wider: its legend and labels need the place that others lend each other.
        c.width = panels == 1 && f->width <= MOST_WIDTH / 2 ? f->width * 4 / 3 : c.across * f->width;
        c.height = c.down * height + LINE * (notes + 3);
    }
    return c;
}

// Sizes of pixels at 72 to the inch, where a terminal counts in inches.
static void put_terminal(Text *out, const Canvas *c, const PlotOptions *o) {
    const char *paper = o->dark ? "#16191d" : "#ffffff";
    double x = c->width / 72.0, y = c->height / 72.0;
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
    case PLOT_TEX: text_printf(out, "set terminal cairolatex pdf size %.3fin,%.3fin\n", x, y); return;
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

typedef enum { PANEL_FIRST, PANEL_LAST, BLOCK_SERIES, BLOCK_ROWS } ArrayKind;

static void put_array(Text *out, const char *name, const PlotData *d, ArrayKind kind) {
    bool of_panels = kind == PANEL_FIRST || kind == PANEL_LAST;
    const char *between = "";
    text_printf(out, "array %s[%zu] = [", name, of_panels ? d->panels.count - (size_t)d->left_out : d->count);
    for (size_t i = 0; i < d->count; i++) {
        const PlotBlock *b = &d->blocks[i];
        if (kind == PANEL_FIRST && i && b[-1].panel == b->panel) continue;
        if (kind == PANEL_LAST && i + 1 < d->count && b[1].panel == b->panel) continue;
        int value = of_panels ? (int)i : kind == BLOCK_SERIES ? b->series : b->rows;
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
        put_quoted(out, output, WHOLE, PLOT_SVG);
        text_puts(out, "\n");
    }
    if (!data) text_printf(out, "$numbers << END_OF_NUMBERS\n%s\nEND_OF_NUMBERS\n", text_get(&d->numbers));
    text_puts(out, "data = ");
    put_quoted(out, data ? data : "$numbers", WHOLE, PLOT_SVG);
}

void plot_script(const Figure *f, const PlotData *d, const PlotOptions *o, const char *data,
                 const char *output, Text *out) {
    Canvas c = canvas_of(f, d, o);
    int letters = o->format == PLOT_TERM ? c.width : c.width / LETTER_WIDTH;
    text_puts(out, "# Redraws the plot: run gnuplot on this file, in its folder.\n");
    if (data && o->format == PLOT_TEX)
        text_printf(out, "# It writes %s, for \\input, and the picture that this includes.\n", output);
    put_terminal(out, &c, o);
    text_puts(out, "set encoding utf8\n");
    put_place(out, d, data, output);
    text_printf(
        out,
        "\nchars = %d\ndark = %d\npanels = %d\nacross = %d\ndown = %d\npixels = %d\ndoubtful = %d\ntitle = ",
        o->format == PLOT_TERM, o->dark, (int)d->panels.count - d->left_out, c.across, c.down, c.height,
        d->doubtful);
    put_quoted(out, f->summary, WHOLE, o->format);
    text_puts(out, "\n");
    put_names(out, "panel", &d->panels, letters * 2 / 3 / c.across, o->format);
    put_names(out, "series", &d->series, letters / c.across / 3, o->format);
    put_names(out, "label", &d->labels, letters / c.across / 2, o->format);
    put_names(out, "note", &d->notes, letters, o->format);
    put_array(out, "first", d, PANEL_FIRST);
    put_array(out, "last", d, PANEL_LAST);
    put_array(out, "block_series", d, BLOCK_SERIES);
    put_array(out, "block_rows", d, BLOCK_ROWS);
    text_printf(out, "\n%s\n%s\n%sunset output\n", figures_style, f->script, f->drawing);
}
