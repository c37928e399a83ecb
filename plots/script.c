// The script of a plot: its texts as gnuplot's arrays, the style, the figure's own script, and where that has
// the line "#layout", the layout of the page and the terminal. No text of the data is ever script:
// script_string quotes every byte of it.
#include "plots/data.h"

#include "plots/letters.h"
#include "plots/plots.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>

// --- texts -----------------------------------------------------------------------------------------------

void script_string(Text *out, const char *bytes) {
    enum { DELETE = 0x7f };
    bool open = false;
    for (const char *at = bytes; *at; at++) {
        bool plain = *at != '\'' && *at != DELETE && (unsigned char)*at >= ' ';
        if (open && !plain) text_puts(out, "'");
        if (at > bytes && !(open && plain)) text_puts(out, ".");
        if (plain && !open) text_puts(out, "'");
        if (plain) text_add(out, at, 1);
        else text_printf(out, "\"\\%03o\"", (unsigned)*at);
        open = plain;
    }
    text_puts(out, open ? "'" : *bytes ? "" : "''");
}

enum { WHOLE = INT_MAX }; // of a text

// Writes a text to be drawn, cut to `most` letters with dots. Terminals run without enhanced text, so only
// TeX needs escapes.
static void put_quoted(Text *out, const char *text, int most, PlotFormat format) {
    char letter[LETTER_SIZE];
    LOCAL_TEXT drawn = {0};
    for (int i = 0; letters_next(&text, letter); i++) {
        const char *escaped = format == PLOT_TEX ? letters_tex(*letter) : NULL;
        if (i == most - 1 && *text) {
            text_puts(&drawn, "...");
            break;
        }
        text_puts(&drawn, escaped ? escaped : letter);
    }
    script_string(out, text_get(&drawn));
}

// Writes the name of a file in the script's folder. Names such as "|lpr", "<id" and "$numbers" would not be
// files to gnuplot.
static void put_file(Text *out, const char *name) {
    if (!isalnum((unsigned char)name[0])) text_puts(out, "'./'.");
    script_string(out, name);
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

// Of the longest, as it is drawn: cut to `most`.
static int longest(const Names *n, int most) {
    int found = 0;
    for (size_t i = 0; i < n->count; i++) {
        char letter[LETTER_SIZE];
        int letters = 0;
        for (const char *at = n->items[i]; letters_next(&at, letter);) letters++;
        if (letters > found) found = letters;
    }
    return found < most ? found : most;
}

// --- the terminal ----------------------------------------------------------------------------------------

// A picture's units are pixels on the screen, points on paper, or characters.
typedef struct Canvas {
    double width, height; // height 0: as needed
    double size;          // of a letter
    bool on_paper;
} Canvas;

enum {
    ONE_PANEL_WIDTH = 720,
    WIDTH = 960,
    SCREEN_SIZE = 12,
    COLUMNS = 100,
    LEAST_LINES = 12,
    MOST_LINES = 22
};
static const double POINTS_AN_INCH = 72, MM_AN_INCH = 25.4, TEXT_MM = 5.5 * 25.4; // of LaTeX's article

static Canvas canvas_of(const PlotData *d, const PlotOptions *o) {
    Canvas c = {.size = o->points, .on_paper = o->width_mm > 0 || o->format == PLOT_TEX};
    int panels = (int)d->panels.count - d->left_out;
    if (o->format == PLOT_TERM) {
        int lines = o->lines ? o->lines - ((int)d->notes.count + 4) : MOST_LINES; // a panel fills the screen
        return (Canvas){.width = o->columns ? o->columns : COLUMNS,
                        .height = lines < LEAST_LINES ? LEAST_LINES : lines,
                        .size = 1};
    }
    if (!c.on_paper) c.width = panels == 1 ? ONE_PANEL_WIDTH : WIDTH;
    else c.width = (o->width_mm > 0 ? o->width_mm : TEXT_MM) * POINTS_AN_INCH / MM_AN_INCH;
    c.height = o->height_mm * POINTS_AN_INCH / MM_AN_INCH;
    if (c.size <= 0) c.size = !c.on_paper ? SCREEN_SIZE : o->width_mm > 0 ? 8 : 9;
    return c;
}

// The terminals that draw a format: the better one, and one of gnuplots that are built without cairo or lua
// (pip's). The script chooses where it runs.
typedef struct Terminals {
    const char *better, *other; // other: NULL: there is none
    const char *lost;           // of the format, by the other
} Terminals;

static const Terminals TERMINALS[PLOT_FORMATS] = {
    [PLOT_SVG] = {"svg", NULL, NULL},
    [PLOT_PNG] = {"pngcairo", "png", "its letters and lines are coarser"},
    [PLOT_PDF] = {"pdfcairo", NULL, NULL},
    [PLOT_TEX] = {"cairolatex", "epslatex", "the picture is an .eps, which pdflatex converts"},
    [PLOT_TERM] = {"dumb", NULL, NULL},
};

// How a terminal measures: of one of our units on the screen and on paper, in its own (pixels or inches); and
// of its line and its mark of size 1, in our units. cairo takes a point for a pixel of 1/96 in; fontscale
// corrects it.
typedef struct Measures {
    const char *name;
    double screen, paper, line, mark, fontscale; // fontscale: of letters of our units on the screen; 0: none
} Measures;

static const Measures MEASURES[] = {
    {"svg", 1, 96.0 / 72, 1, 1, 0},
    {"pngcairo", 1, 300.0 / 72, 1, 1, 0.75},
    {"png", 1, 300.0 / 72, 1, 1, 0.75},
    {"pdfcairo", 1.0 / 72, 1.0 / 72, 0.5, 0.5, 0.75},
    {"cairolatex", 1.0 / 72, 1.0 / 72, 0.25, 0.5, 0},
    {"epslatex", 1.0 / 72, 1.0 / 72, 0.25, 0.5, 0},
};

static const Measures *measures_of(const char *terminal) {
    for (size_t i = 0; i < sizeof MEASURES / sizeof *MEASURES; i++)
        if (strcmp(MEASURES[i].name, terminal) == 0) return &MEASURES[i];
    return NULL; // of characters
}

static double scale_of(const Measures *m, const Canvas *c) {
    return !m ? 1 : c->on_paper ? m->paper : m->screen;
}

// A letter's size as the terminals of the format count it: those for LaTeX and cairo in points or pixels.
static double letter_of(const Canvas *c, PlotFormat format) {
    return format == PLOT_SVG ? c->size * scale_of(measures_of("svg"), c) : c->size;
}

// Lines of width 1 are as wide as a pixel on the screen, and 0.6 points on paper; marks of size `dot` have a
// radius of 0.3 letters or so.
static void put_measures(Text *out, const Measures *m, const Canvas *c, PlotFormat format) {
    static const double PAPER_LINE = 0.6;
    bool inches = format == PLOT_PDF || format == PLOT_TEX;
    double scale = scale_of(m, c), pixels = inches ? 1 : scale;
    text_printf(out, " size width * %.9g%s, height * %.9g%s", scale, inches ? " in" : "", scale,
                inches ? " in" : "");
    text_printf(out, " linewidth %.4g", (c->on_paper ? PAPER_LINE : 1) * pixels / m->line);
    if (m->fontscale > 0) text_printf(out, " fontscale %.4g", m->fontscale * pixels);
}

static void put_terminal_options(Text *out, const char *name, const Canvas *c, const PlotOptions *o) {
    const Measures *m = measures_of(name);
    if (strcmp(name, "cairolatex") == 0) text_puts(out, " pdf");
    if (strcmp(name, "epslatex") == 0) text_puts(out, " color");
    if (strcmp(name, "png") == 0) text_puts(out, " truecolor");
    if (o->format == PLOT_TEX) text_puts(out, o->dark ? " colourtext" : " blacktext");
    else text_puts(out, " noenhanced");
    if (!m) {
        text_printf(out, " size width, height%s\n", o->colour ? " ansi256" : " mono");
        return;
    }
    put_measures(out, m, c, o->format);
    text_puts(out, " font ");
    if (o->format != PLOT_TEX) script_string(out, o->font ? o->font : "sans-serif");
    text_printf(out, "%s',%.4g'", o->format == PLOT_TEX ? "" : ".", letter_of(c, o->format));
    // Letters on a page that loads no colours are black. The header is in a group of the figure's own.
    if (o->format == PLOT_TEX)
        text_printf(out, " header '\\providecommand\\definecolor[3]{}\\fontsize{%.4g}{%.4g}\\selectfont'",
                    c->size, 1.2 * c->size);
    else text_printf(out, " background '%s'", o->dark ? "#16191d" : "#ffffff");
    text_puts(out, "\n");
}

static void put_dot(Text *out, const char *name, const Canvas *c) {
    const Measures *m = measures_of(name);
    if (!m) return;
    double radius = c->on_paper ? 0.55 : 1; // of the mark of size 1 on the screen
    double pixels = m->mark < 1 ? 1 : scale_of(m, c);
    text_printf(out, "    dot = %.4g\n", strcmp(name, "svg") == 0 ? radius * 1.5 : radius * pixels / m->mark);
}

static void put_terminal(Text *out, const Canvas *c, const PlotOptions *o) {
    const Terminals *t = &TERMINALS[o->format];
    const char *const names[] = {t->better, t->other};
    for (int i = 0; i < 2 && names[i]; i++) {
        text_printf(out, "%sif (strstrt(' '.GPVAL_TERMINALS.' ', ' %s ')) {\n", i ? "} else { " : "",
                    names[i]);
        text_printf(out, "    set terminal %s", names[i]);
        put_terminal_options(out, names[i], c, o);
        put_dot(out, names[i], c);
    }
    if (t->other)
        text_printf(out, "    print '" SCRIPT_NOTE "this gnuplot has no %s, so %s drew the %s: %s'\n",
                    t->better, t->other, plot_format_names[o->format], t->lost);
    text_printf(out,
                "} else {\n    printerr 'it cannot draw %s, since it was built without %s%s%s'\n    exit "
                "status 1\n}%s\n",
                plot_format_names[o->format], t->better, t->other ? " or " : "", t->other ? t->other : "",
                t->other ? " }" : "");
}

void script_can(int format, Text *out) {
    const Terminals *t = &TERMINALS[format];
    text_printf(out,
                "set print '-'\nhas(name) = strstrt(' '.GPVAL_TERMINALS.' ', ' '.name.' ') > 0\nprint "
                "has('%s') || has('%s')\n",
                t->better, t->other ? t->other : t->better);
}

// --- blocks ----------------------------------------------------------------------------------------------

// The look of a series: its colour's, and of further series of that colour another mark and other dashes.
static PlotLook look_of(const PlotData *d, size_t block) {
    enum { MARKS = 12, DASHES = 5 };
    static const int MARK[MARKS] = {7, 5, 9, 11, 13, 15, 6, 4, 8, 10, 12, 14};
    PlotLook look = palette[(d->blocks[block].colour - 1) % palette_count];
    int others = plot_alike(d, block), at = 0;
    while (at < MARKS && MARK[at] != look.mark) at++;
    look.mark = MARK[(at + others) % MARKS];
    look.dash = 1 + (look.dash - 1 + others) % DASHES;
    return look;
}

static void put_blocks(Text *out, const PlotData *d) {
    enum { SERIES, HUE, MARK, DASH, ROWS, KINDS };
    static const char *const NAMES[KINDS] = {"series", "hue", "mark", "dash", "rows"};
    for (int kind = 0; kind < KINDS; kind++) {
        text_printf(out, "array block_%s[%zu] = [", NAMES[kind], d->count);
        for (size_t i = 0; i < d->count; i++) {
            PlotLook look = look_of(d, i);
            const int numbers[KINDS] = {[SERIES] = d->blocks[i].series,
                                        [MARK] = look.mark,
                                        [DASH] = look.dash,
                                        [ROWS] = d->blocks[i].rows};
            if (i) text_puts(out, ", ");
            if (kind == HUE) text_printf(out, "'%s'", look.hue);
            else text_printf(out, "%d", numbers[kind]);
        }
        text_puts(out, "]\n");
    }
}

// The first or the last blocks of the panels.
static void put_panels(Text *out, const char *name, const PlotData *d, bool last) {
    const char *between = "";
    text_printf(out, "array %s[%zu] = [", name, d->panels.count - (size_t)d->left_out);
    for (size_t i = 0; i < d->count; i++) {
        const PlotBlock *b = &d->blocks[i];
        if (last ? i + 1 < d->count && b[1].panel == b->panel : i && b[-1].panel == b->panel) continue;
        text_printf(out, "%s%zu", between, i);
        between = ", ";
    }
    text_puts(out, "]\n");
}

// Writes the place of the numbers, and that of the plot. Between the marks gnuplot reads only numbers.
static void put_place(Text *out, const PlotData *d, const char *data, const char *output) {
    if (output) {
        text_puts(out, "set output ");
        put_file(out, output);
        text_puts(out, "\n");
    }
    if (!data) {
        text_puts(out, "$numbers << END_OF_NUMBERS\n");
        plot_data_text(d, out);
        text_puts(out, "\nEND_OF_NUMBERS\n");
    }
    text_puts(out, "data = ");
    if (data) put_file(out, data);
    else script_string(out, "$numbers");
}

// --- all of it -------------------------------------------------------------------------------------------

static void put_texts(Text *out, const Figure *f, const PlotData *d, const PlotOptions *o, const Canvas *c) {
    static const double LETTER = 0.56, TEX_LETTER = 0.5; // of a letter's size
    int letters = (int)(c->width / (o->format == PLOT_TERM  ? 1
                                    : o->format == PLOT_TEX ? TEX_LETTER * c->size
                                                            : LETTER * c->size));
    int series = o->format == PLOT_TERM ? letters / 3 : letters - 6;
    bool cut = o->format == PLOT_TERM || (o->format == PLOT_TEX && d->panels.count > 2);
    int notes = o->no_footer ? 0 : (int)d->notes.count;
    bool short_titles = o->no_title;
    text_printf(out, "how = '%s%s'\n", f->how ? ", " : "", f->how ? f->how : "");
    text_puts(out, "title = ");
    put_quoted(out, o->no_title ? "" : f->summary, WHOLE, o->format);
    text_printf(out, "\nnotes = %d\nmost_bar = %d\nmost_method = %d\n", notes,
                longest(&d->settings, letters / 2), longest(&d->methods, letters / 2));
    put_names(out, "panel", short_titles ? &d->short_titles : &d->titles, cut ? letters * 2 / 3 : letters,
              o->format);
    put_names(out, "series", &d->series, series, o->format);
    put_names(out, "label", &d->labels, letters / 2, o->format);
    put_names(out, "note", &d->notes, letters, o->format);
}

// A page of LaTeX sets all numbers in black: it has a lighter ramp.
static void put_palette(Text *out, bool tex) {
    static const char *const LIGHT[] = {"#a3a8b0", "#b3b19f", "#c8b866", "#fee838"};
    const char *const *ramp = tex ? LIGHT : plot_ramp;
    int count = tex ? (int)(sizeof LIGHT / sizeof *LIGHT) : plot_ramp_count;
    text_puts(out, "set palette defined (");
    for (int i = 0; i < count; i++) text_printf(out, "%s%d '%s'", i ? ", " : "", i, ramp[i]);
    text_printf(out, ")\narray stop[%d] = [", plot_stop_count);
    for (int i = 0; i < plot_stop_count; i++) text_printf(out, "%s%g", i ? ", " : "", plot_stops[i]);
    text_puts(out, "]\n");
}

static void put_text(Text *out, const char *name, const char *value) {
    if (!value) return;
    text_printf(out, "%s = ", name);
    script_string(out, value);
    text_puts(out, "\n");
}

static void put_number(Text *out, const char *name, const double *value) {
    if (value) text_printf(out, "%s = %.9g\n", name, *value);
}

static void put_axes(Text *out, const FigureAxes *a) {
    put_text(out, "x_name", a->x);
    put_text(out, "y_name", a->y);
    put_text(out, "bar_name", a->bar);
    if (a->x_by_powers) text_printf(out, "x_by_powers = %d\n", a->x_by_powers);
    put_number(out, "y_from", a->from);
    put_number(out, "y_to", a->to);
    put_number(out, "y_within", a->within);
    int levels = figure_levels(a);
    if (levels) text_printf(out, "array level[%d] = [", levels);
    for (int i = 0; i < levels; i++) text_printf(out, "%.1f%s", a->levels[i], i + 1 < levels ? ", " : "]\n");
}

// Writes the figure's script with the layout and the terminal in the place of the line that names them.
static void put_figure(Text *out, const Figure *f, const PlotOptions *o, const Canvas *c) {
    static const char MARK[] = "\n#layout\n";
    LOCAL_TEXT whole = {0};
    text_printf(&whole, "%s\n%s", f->script, f->drawing);
    const char *text = text_get(&whole), *mark = strstr(text, MARK);
    assert(mark);
    text_add(out, text, (size_t)(mark + 1 - text));
    text_printf(out, "%s\n", figures_layout);
    put_terminal(out, c, o);
    text_printf(out, "set multiplot\n%s\n%s", mark + strlen(MARK), figures_end);
}

void script_put(const Figure *f, const PlotData *d, const PlotOptions *o, const char *data,
                const char *output, Text *out) {
    Canvas c = canvas_of(d, o);
    text_puts(out, "# Redraws the plot: run gnuplot on this file, in its folder.\n");
    if (data && o->format == PLOT_TEX)
        text_printf(out, "# It writes %s, for \\input, and the picture that this includes.\n", output);
    text_puts(out, "set encoding utf8\n");
    put_place(out, d, data, output);
    text_printf(out, "\nchars = %d\ntex = %d\ndark = %d\non_paper = %d\nwidth = %.9g\nasked_height = %.9g\n",
                o->format == PLOT_TERM, o->format == PLOT_TEX, o->dark, c.on_paper, c.width, c.height);
    text_printf(out, "size = %.9g\nletter = %.9g\npanels = %d\ndoubtful = %d\n", c.size,
                letter_of(&c, o->format), (int)d->panels.count - d->left_out, d->doubtful);
    put_texts(out, f, d, o, &c);
    put_panels(out, "first", d, false);
    put_panels(out, "last", d, true);
    put_blocks(out, d);
    text_printf(out, "\n%s\n", figures_style);
    put_palette(out, o->format == PLOT_TEX);
    put_axes(out, &f->axes);
    put_figure(out, f, o, &c);
    text_puts(out, output ? "unset output\n" : "");
}
