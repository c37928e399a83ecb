// From a query's rows to the blocks of a data file. Rows of one panel and series are adjacent in the query,
// so a block ends where either changes, and texts are numbered in the order in which they first appear.
//
// Invariant: a block's panel, series and colour are numbers of names, and its rows are those written since it
// began.
#include "plots/plots.h"

#include "engine/base/memory.h"
#include "plots/letters.h"
#include "results/rows.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// --- texts -----------------------------------------------------------------------------------------------

int plot_name(Names *n, const char *text) {
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->items[i], text) == 0) return (int)i + 1;
    mem_grow(&n->items, &n->capacity, n->count + 1, sizeof *n->items);
    n->items[n->count] = mem_text(text, strlen(text));
    return (int)++n->count;
}

static void names_release(Names *n) {
    for (size_t i = 0; i < n->count; i++) mem_free(n->items[i]);
    mem_free(n->items);
    *n = (Names){0};
}

void plot_data_release(PlotData *d) {
    text_release(&d->numbers);
    names_release(&d->panels);
    names_release(&d->titles);
    names_release(&d->series);
    names_release(&d->colours);
    names_release(&d->labels);
    names_release(&d->notes);
    names_release(&d->others);
    mem_free(d->blocks);
    *d = (PlotData){0};
}

static void check(const PlotData *d) {
    for (size_t i = 0; i < d->count; i++) {
        const PlotBlock *b = &d->blocks[i];
        assert(b->panel >= 1 && b->panel <= (int)d->panels.count && b->panel <= PLOT_MOST_PANELS);
        assert(b->series >= 1 && b->series <= (int)d->series.count && b->colour >= 1 && b->rows > 0);
    }
}

// --- titles ----------------------------------------------------------------------------------------------

static bool is_path(const char *word, size_t n) {
    return word[0] == '/' || word[0] == '.' || !memchr(word, ' ', n);
}

// Copies a text, but only the last name and `above` folders of every path in it. A path is a word up to ',',
// ':' or ';'.
static void put_path_ends(Text *out, const char *text, int above) {
    while (*text) {
        const char *word = text + strspn(text, " ");
        size_t n = strcspn(word, ",:;"), from = n;
        for (int slashes = is_path(word, n) ? 0 : above + 1; from > 0; from--)
            if (word[from - 1] == '/' && from < n && slashes++ == above) break;
        text_add(out, text, (size_t)(word - text));
        text_add(out, word + from, n - from + (word[n] != 0));
        text = word + n + (word[n] != 0);
    }
}

// Shortens the paths in the panels' titles as far as the titles stay different.
static void make_titles(PlotData *d) {
    enum { MOST_ABOVE = 64 };
    for (int above = 0; above <= MOST_ABOVE && d->titles.count < d->panels.count; above++) {
        names_release(&d->titles);
        for (size_t i = 0; i < d->panels.count; i++) {
            Text title = {0};
            put_path_ends(&title, d->panels.items[i], above);
            plot_name(&d->titles, text_get(&title));
            text_release(&title);
        }
    }
}

// --- rows ------------------------------------------------------------------------------------------------

typedef enum {
    COLUMN_NUMBER,
    COLUMN_PANEL,
    COLUMN_SERIES,
    COLUMN_COLOUR,
    COLUMN_SCAN,
    COLUMN_LABEL
} ColumnKind;

static ColumnKind column_kind(const char *name) {
    return strcmp(name, "panel") == 0       ? COLUMN_PANEL
           : strcmp(name, "series") == 0    ? COLUMN_SERIES
           : strcmp(name, "colour") == 0    ? COLUMN_COLOUR
           : strcmp(name, "scan") == 0      ? COLUMN_SCAN
           : strncmp(name, "label", 5) == 0 ? COLUMN_LABEL
                                            : COLUMN_NUMBER;
}

// The panel, series and scan of a row.
typedef struct Place {
    int panel, series, colour; // colour 0: there is no such column
    double scan;
} Place;

static const char *panel_of(const Rows *r) {
    for (int i = 0; i < rows_columns(r); i++)
        if (column_kind(rows_name(r, i)) == COLUMN_PANEL) return rows_text(r, i);
    return "";
}

static Place place_of(PlotData *d, const Rows *r) {
    Place at = {0};
    for (int i = 0; i < rows_columns(r); i++) switch (column_kind(rows_name(r, i))) {
        case COLUMN_PANEL: at.panel = plot_name(&d->panels, rows_text(r, i)); break;
        case COLUMN_SERIES: at.series = plot_name(&d->series, rows_text(r, i)); break;
        case COLUMN_COLOUR: at.colour = plot_name(&d->colours, rows_text(r, i)); break;
        case COLUMN_SCAN: at.scan = rows_real(r, i); break;
        default: break;
        }
    return at;
}

// Writes a text on one line, for a comment of the data file.
static void put_comment(Text *out, const char *text) {
    char letter[LETTER_SIZE];
    while (letters_next(&text, letter)) text_puts(out, letter);
}

static void open_block(PlotData *d, Place at, const Rows *r) {
    mem_grow(&d->blocks, &d->capacity, d->count + 1, sizeof *d->blocks);
    text_puts(&d->numbers, d->count ? "\n\n# " : "# ");
    put_comment(&d->numbers, d->panels.items[at.panel - 1]);
    text_puts(&d->numbers, ": ");
    put_comment(&d->numbers, d->series.items[at.series - 1]);
    text_puts(&d->numbers, "\n#");
    for (int i = 0; i < rows_columns(r); i++)
        if (column_kind(rows_name(r, i)) == COLUMN_NUMBER || column_kind(rows_name(r, i)) == COLUMN_LABEL)
            text_printf(&d->numbers, " %s", rows_name(r, i));
    text_puts(&d->numbers, "\n");
    d->blocks[d->count++] =
        (PlotBlock){.panel = at.panel, .series = at.series, .colour = at.colour ? at.colour : at.series};
}

static void put_row(PlotData *d, const Rows *r) {
    const char *between = "";
    assert(d->count);
    for (int i = 0, column = 0; i < rows_columns(r); i++) {
        ColumnKind kind = column_kind(rows_name(r, i));
        bool null = rows_type(r, i) == VALUE_NULL;
        if (kind != COLUMN_NUMBER && kind != COLUMN_LABEL) continue;
        column++;
        if (strcmp(rows_name(r, i), "doubtful") == 0 && rows_int(r, i)) d->doubtful = column;
        text_puts(&d->numbers, between);
        between = " ";
        if (kind == COLUMN_LABEL)
            text_printf(&d->numbers, "%d", null ? 0 : plot_name(&d->labels, rows_text(r, i)));
        else if (null) text_puts(&d->numbers, "nan");
        else text_printf(&d->numbers, "%.9g", rows_real(r, i));
    }
    text_puts(&d->numbers, "\n");
    d->blocks[d->count - 1].rows++;
}

static void read_rows(PlotData *d, Rows *r) {
    Place last = {0};
    while (rows_next(r)) {
        if (d->of && !strstr(panel_of(r), d->of)) {
            plot_name(&d->others, panel_of(r));
            continue;
        }
        Place at = place_of(d, r);
        assert(at.panel && at.series); // every query has both columns
        if (at.panel > PLOT_MOST_PANELS) continue;
        bool another = at.panel != last.panel || at.series != last.series;
        if (another) open_block(d, at, r);
        else if (at.scan < last.scan || at.scan > last.scan) text_puts(&d->numbers, "\n");
        put_row(d, r);
        last = at;
    }
}

static void read_notes(PlotData *d, Rows *r) {
    while (rows_next(r)) plot_name(&d->notes, rows_text(r, 0));
}

// Gives methods the same colours in every figure: those of style.gp, in this order.
static void name_methods(PlotData *d) {
    static const char *const METHODS[] = {
        "lookahead",      "speculative", "ngrammys", "kangaroo", "prompt-lookup", "ouroboros",
        "autoregressive", "medusa",      "rest",     "jacobi",   "mix",           "suffix",
        "recycling",      "ngram-mod",   "eagle",    "eagle3",   "oracle",        "early-exit"};
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) plot_name(&d->colours, METHODS[i]);
}

// --- all of it -------------------------------------------------------------------------------------------

static bool each(Store *store, const char *sql, int64_t run, const char *computed, PlotData *d,
                 void (*take)(PlotData *d, Rows *r), Error *e) {
    Rows *r = rows_open(store, sql, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    if (rows_parameters(r) > 1) rows_bind_text(r, 2, computed);
    take(d, r);
    return rows_end(r, true, e);
}

static void put_notes(const Figure *f, PlotData *d) {
    static const char *const LINES[] = {
        [RUN_SWEEP] = "*: a tenth of its samples or its baseline's disturbed, or speedup above S",
        [RUN_SURFACE] = "*: too few of its samples are undisturbed"};
    if (d->doubtful) plot_name(&d->notes, LINES[f->kind]);
    Text line = {0};
    if (d->panels.count > PLOT_MOST_PANELS) {
        d->left_out = (int)d->panels.count - PLOT_MOST_PANELS;
        text_printf(&line, "%d more panels are left out: choose which to draw", d->left_out);
        plot_name(&d->notes, text_get(&line));
        text_clear(&line);
    }
    if (d->others.count) {
        text_printf(&line, "%zu panels are not of %s, and left out", d->others.count, d->of);
        plot_name(&d->notes, text_get(&line));
    }
    text_release(&line);
}

void plot_left_out(const Figure *f, const PlotData *d, Text *out) {
    enum { MOST_NAMED = 4 };
    size_t drawn = d->panels.count - (size_t)d->left_out, all = d->panels.count + d->others.count;
    const char *between = "";
    if (d->left_out + (int)d->others.count == 0) return;
    text_printf(out, "%s: %zu of %zu panels are drawn, without ", f->name, drawn, all);
    for (size_t i = drawn; i < all && i < drawn + MOST_NAMED; i++, between = ", ") {
        text_puts(out, between);
        text_puts(out, "'");
        put_comment(out, i < d->panels.count ? d->panels.items[i] : d->others.items[i - d->panels.count]);
        text_puts(out, "'");
    }
    if (all > drawn + MOST_NAMED) text_printf(out, " and %zu more", all - drawn - MOST_NAMED);
    text_puts(out, "; --model, --dataset, --method and --label choose which\n");
}

bool plot_data(Store *store, const Figure *f, int64_t run, const char *computed, const char *of,
               PlotData *out, Error *e) {
    *out = (PlotData){.of = of};
    name_methods(out);
    if (!each(store, f->query, run, computed, out, read_rows, e)) return false;
    if (!out->count && out->others.count) {
        plot_data_release(out);
        return plot_data(store, f, run, computed, NULL, out, e);
    }
    make_titles(out);
    if (!each(store, figures_notes, run, computed, out, read_notes, e)) return false;
    put_notes(f, out);
    check(out);
    return true;
}
