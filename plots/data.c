// From a query's rows to blocks of numbers, and to the file of them. Rows of one panel and series are
// adjacent in the query, so a block ends where either changes, and texts are numbered in the order in which
// they first appear.
//
// Invariant: a block's panel, series and colour are numbers of names, and all blocks' rows are all values.
#include "plots/data.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "plots/letters.h"
#include "plots/plots.h"
#include "results/rows.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// --- colours ---------------------------------------------------------------------------------------------

// Okabe and Ito's colours, told apart by colour-blind eyes, then eleven more. Each has a mark and
// dashes of its own for grey print.
const PlotLook palette[] = {
    {"lookahead", "#0072b2", 7, 1},      {"speculative", "#d55e00", 5, 1},
    {"ngrammys", "#009e73", 9, 1},       {"kangaroo", "#cc79a7", 11, 1},
    {"prompt-lookup", "#e69f00", 13, 1}, {"ouroboros", "#56b4e9", 6, 1},
    {"autoregressive", "#888888", 4, 1}, {"medusa", "#b09a00", 8, 1},
    {"rest", "#7b6fd0", 15, 1},          {"jacobi", "#a33b3b", 10, 1},
    {"mix", "#6b8e23", 12, 1},           {"suffix", "#17a2a2", 14, 1},
    {"recycling", "#a0724a", 7, 2},      {"ngram-mod", "#c2b280", 5, 2},
    {"eagle", "#e377c2", 9, 2},          {"eagle3", "#2b4a8b", 11, 2},
    {"oracle", "#8fce5a", 13, 2},        {"early-exit", "#5f4b3f", 6, 2},
    {"dflash", "#e4572e", 15, 2},        {"mtp", "#3f8f6b", 8, 2},
};
const int palette_count = sizeof palette / sizeof *palette;

// The stops are those of cividis.
const char *const plot_ramp[] = {"#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"};
const int plot_ramp_count = sizeof plot_ramp / sizeof *plot_ramp;

// Most of the room is where methods begin or cease to pay.
const double plot_stops[] = {0.25, 0.5, 1, 1.1, 1.5, 2, 4, 16};
const int plot_stop_count = sizeof plot_stops / sizeof *plot_stops;

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
    Names *const all[] = {&d->columns, &d->panels,  &d->titles, &d->short_titles, &d->settings, &d->methods,
                          &d->series,  &d->colours, &d->labels, &d->notes,        &d->others};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) names_release(all[i]);
    text_release(&d->shared);
    MEM_FREE(d->values, d->scans, d->blocks);
    *d = (PlotData){0};
}

static void plot_data_check(const PlotData *d) {
    size_t rows = 0;
    for (size_t i = 0; i < d->count; i++) {
        const PlotBlock *b = &d->blocks[i];
        assert(b->panel >= 1 && b->panel <= (int)d->panels.count && b->panel <= PLOT_MOST_PANELS);
        assert(b->series >= 1 && b->series <= (int)d->series.count && b->colour >= 1 && b->rows > 0);
        rows += (size_t)b->rows;
    }
    assert(d->value_count == rows * d->columns.count);
}

// --- titles ----------------------------------------------------------------------------------------------

// Copies a text, but only the last name and `above` folders of every path in it. A path is a word up to
// ',', ':' or ';'.
static void put_path_ends(Text *out, const char *text, int above) {
    while (*text) {
        const char *word = text + strspn(text, " ");
        size_t n = strcspn(word, ",:;"), from = n;
        bool path = word[0] == '/' || word[0] == '.' || !memchr(word, ' ', n);
        for (int slashes = path ? 0 : above + 1; from > 0; from--)
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
            LOCAL_TEXT title = {0};
            put_path_ends(&title, d->panels.items[i], above);
            plot_name(&d->titles, text_get(&title));
        }
    }
}

// The end of a part of a title: of words up to ", ", ": " or "; ", or up to the title's end.
static const char *part_end(const char *part) {
    while (*part && !(strchr(",:;", *part) && part[1] == ' ')) part++;
    return part;
}

enum { MOST_PARTS = 8 };

// Cuts a title into parts. Returns their number.
static int cut(const char *title, const char *parts[MOST_PARTS]) {
    int count = 0;
    for (const char *at = title; count < MOST_PARTS; at = part_end(at) + 2) {
        parts[count++] = at;
        if (!*part_end(at)) break;
    }
    return count;
}

static bool same_part(const char *a, const char *b) {
    size_t n = (size_t)(part_end(a) - a);
    return n == (size_t)(part_end(b) - b) && memcmp(a, b, n) == 0;
}

// Without the parts that all titles share; these become `shared`. Titles of different numbers of parts
// stay.
static void make_short_titles(PlotData *d) {
    const char *first[MOST_PARTS], *own[MOST_PARTS];
    bool shared[MOST_PARTS] = {0};
    int count = d->titles.count ? cut(d->titles.items[0], first) : 0;
    for (int k = 0; k < count; k++) shared[k] = true;
    for (size_t i = 1; i < d->titles.count; i++) {
        bool alike = cut(d->titles.items[i], own) == count;
        for (int k = 0; k < count; k++) shared[k] = shared[k] && alike && same_part(first[k], own[k]);
    }
    for (int k = 0; k < count; k++)
        if (shared[k]) {
            text_puts(&d->shared, d->shared.length ? ", " : "");
            text_add(&d->shared, first[k], (size_t)(part_end(first[k]) - first[k]));
        }
    for (size_t i = 0; i < d->titles.count; i++) {
        LOCAL_TEXT title = {0};
        int parts = cut(d->titles.items[i], own);
        bool whole = parts != count || d->titles.count == 1;
        for (int k = 0; k < parts; k++) {
            if (!whole && shared[k]) continue;
            if (title.length) text_add(&title, own[k] - 2, 2); // its separator
            const char *end = k == parts - 1 ? own[k] + strlen(own[k]) : part_end(own[k]);
            text_add(&title, own[k], (size_t)(end - own[k]));
        }
        plot_name(&d->short_titles, text_get(&title));
    }
}

// --- rows ------------------------------------------------------------------------------------------------

static int column_of(const Rows *r, const char *name) { // below 0: there is none
    int i = rows_columns(r) - 1;
    while (i >= 0 && strcmp(rows_name(r, i), name) != 0) i--;
    return i;
}

// A label is a number of `labels`.
static bool is_number(const char *name) {
    static const char *const OTHERS[] = {"panel", "series", "colour", "scan"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (strcmp(name, OTHERS[i]) == 0) return false;
    return true;
}

void plot_block(PlotData *d, PlotBlock b) {
    mem_grow(&d->blocks, &d->capacity, d->count + 1, sizeof *d->blocks);
    d->blocks[d->count++] = b;
}

double *plot_row(PlotData *d) {
    assert(d->count);
    mem_grow(&d->values, &d->value_capacity, d->value_count + d->columns.count, sizeof *d->values);
    double *row = d->values + d->value_count;
    for (size_t i = 0; i < d->columns.count; i++) row[i] = NAN;
    d->value_count += d->columns.count;
    d->blocks[d->count - 1].rows++;
    return row;
}

static void put_row(PlotData *d, const Rows *r) {
    double *row = plot_row(d);
    for (int i = 0, column = 0; i < rows_columns(r); i++) {
        const char *name = rows_name(r, i);
        bool null = rows_type(r, i) == VALUE_NULL;
        if (!is_number(name)) continue;
        double *value = &row[column++];
        int doubt = strcmp(name, "doubtful") == 0 ? (int)rows_int(r, i) : 0;
        if (doubt) d->doubtful = column;
        d->some_doubt = d->some_doubt || doubt == 1;
        d->lost = d->lost || doubt > 1;
        if (strcmp(name, "low") == 0 && !null) d->intervals = true;
        if (strcmp(name, "label_bar") == 0) plot_name(&d->settings, rows_text(r, i));
        if (strcmp(name, "label_method") == 0) plot_name(&d->methods, rows_text(r, i));
        if (strncmp(name, "label", 5) == 0) *value = null ? 0 : plot_name(&d->labels, rows_text(r, i));
        else if (!null) *value = rows_real(r, i);
    }
}

static void read_rows(PlotData *d, Rows *r) {
    const int panel = column_of(r, "panel"), series = column_of(r, "series"), colour = column_of(r, "colour"),
              scan = column_of(r, "scan");
    double last = 0; // scan
    assert(panel >= 0 && series >= 0);
    for (int i = 0; i < rows_columns(r); i++)
        if (is_number(rows_name(r, i))) plot_name(&d->columns, rows_name(r, i));
    while (rows_next(r)) {
        if (d->of && !strstr(rows_text(r, panel), d->of)) {
            plot_name(&d->others, rows_text(r, panel));
            continue;
        }
        PlotBlock b = {.panel = plot_name(&d->panels, rows_text(r, panel)),
                       .series = plot_name(&d->series, rows_text(r, series))};
        const PlotBlock *before = d->count ? &d->blocks[d->count - 1] : NULL;
        double at = scan < 0 ? 0 : rows_real(r, scan);
        b.colour = colour < 0 ? b.series : plot_name(&d->colours, rows_text(r, colour));
        if (b.panel > PLOT_MOST_PANELS) continue;
        if (!before || b.panel != before->panel || b.series != before->series) plot_block(d, b);
        else if (at < last || at > last) { // another scan of the series
            mem_grow(&d->scans, &d->scan_capacity, d->scan_count + 1, sizeof *d->scans);
            d->scans[d->scan_count++] = d->value_count / d->columns.count;
        }
        put_row(d, r);
        last = at;
    }
}

int plot_alike(const PlotData *d, size_t block) {
    const PlotBlock *b = &d->blocks[block];
    int count = 0;
    for (int series = 1; series < b->series; series++)
        for (size_t i = 0; i < d->count; i++)
            if (d->blocks[i].series == series && d->blocks[i].colour == b->colour) {
                count++;
                break;
            }
    return count;
}

// --- the file --------------------------------------------------------------------------------------------

// Writes a text on one line.
static void put_comment(Text *out, const char *text) {
    char letter[LETTER_SIZE];
    while (letters_next(&text, letter)) text_puts(out, letter);
}

static void put_head(Text *out, const PlotData *d, const PlotBlock *b) {
    text_puts(out, b > d->blocks ? "\n\n# " : "# ");
    put_comment(out, d->panels.items[b->panel - 1]);
    text_puts(out, ": ");
    put_comment(out, d->series.items[b->series - 1]);
    text_puts(out, "\n#");
    for (size_t i = 0; i < d->columns.count; i++) text_printf(out, " %s", d->columns.items[i]);
    text_puts(out, "\n");
}

void plot_data_text(const PlotData *d, Text *out) {
    size_t row = 0, scan = 0, columns = d->columns.count;
    for (const PlotBlock *b = d->blocks; b < d->blocks + d->count; b++) {
        put_head(out, d, b);
        for (size_t end = row + (size_t)b->rows; row < end; row++) {
            bool begins = scan < d->scan_count && d->scans[scan] == row;
            scan += begins;
            text_puts(out, begins ? "\n" : "");
            for (size_t i = 0; i < columns; i++) {
                double x = d->values[row * columns + i];
                text_puts(out, i ? " " : "");
                if (isnan(x)) text_puts(out, "nan");
                else text_printf(out, "%.9g", x);
            }
            text_puts(out, "\n");
        }
    }
}

// --- all of it -------------------------------------------------------------------------------------------

static Rows *ask(Store *store, const char *sql, int64_t run, const char *computed, Error *e) {
    Rows *r = rows_ask(store, sql, run, e);
    if (rows_parameters(r) > 1) rows_bind_text(r, 2, computed);
    return r;
}

static void put_notes(const Figure *f, PlotData *d) {
    static const char *const LINES[] = {
        [RUN_SWEEP] = "*: a tenth of its samples or its baseline's disturbed, or speedup above S",
        [RUN_SURFACE] = "*: too few of its samples, or of one token's, are undisturbed"};
    static const char *const LOST[] = {
        [RUN_SWEEP] = "grey or hatched: all of its samples or its baseline's are disturbed",
        [RUN_SURFACE] = "grey or hatched: all of its samples, or of one token's, are disturbed"};
    if (d->some_doubt) plot_name(&d->notes, LINES[f->kind]);
    if (d->lost) plot_name(&d->notes, LOST[f->kind]);
    LOCAL_TEXT line = {0};
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
    // Methods have the colours of the palette, which are the same in every figure.
    for (int i = 0; i < palette_count; i++) plot_name(&out->colours, palette[i].name);
    Rows *r = ask(store, f->query, run, computed, e);
    if (r) read_rows(out, r);
    if (!rows_end(r, true, e)) return false;
    if (!out->count && out->others.count) {
        plot_data_release(out);
        return plot_data(store, f, run, computed, NULL, out, e);
    }
    make_titles(out);
    make_short_titles(out);
    r = ask(store, figures_notes, run, computed, e);
    while (rows_next(r)) plot_name(&out->notes, rows_text(r, 0));
    if (!rows_end(r, true, e)) return false;
    put_notes(f, out);
    plot_data_check(out);
    return true;
}

// --- charts ---------------------------------------------------------------------------------------------

// A figure's data as JSON. Where an axis has no name, the page shows the column's.

static void set(json_t *object, const char *key, json_t *value) {
    if (value) json_object_set_new(object, key, value);
}

// Five digits are more than a screen shows; counts keep all of theirs.
static json_t *numbers(const double *values, size_t count) {
    json_t *all = json_array();
    for (const double *x = values; x < values + count; x++) {
        bool whole = fabs(*x) < 1e15 && *x == floor(*x);
        json_array_append_new(all, !isfinite(*x) ? json_null()
                                   : whole       ? json_integer((json_int_t)*x)
                                                 : json_real(*x));
    }
    return all;
}

void chart_put_look(Text *out) {
    json_t *look = json_object(), *hues = json_array(), *ramp = json_array();
    for (int i = 0; i < plot_ramp_count; i++) json_array_append_new(ramp, json_string(plot_ramp[i]));
    for (int i = 0; i < palette_count; i++) json_array_append_new(hues, json_string(palette[i].hue));
    set(look, "hues", hues);
    set(look, "ramp", ramp);
    set(look, "stops", numbers(plot_stops, (size_t)plot_stop_count));
    json_append(look, JSON_COMPACT, out);
}

// The rows of a block from `row` on, with an empty one before each further scan.
static json_t *rows_of(const PlotData *d, const PlotBlock *b, size_t row, size_t *scan) {
    json_t *rows = json_array();
    size_t columns = d->columns.count;
    for (size_t end = row + (size_t)b->rows; row < end; row++) {
        if (*scan < d->scan_count && d->scans[*scan] == row && ++*scan)
            json_array_append_new(rows, json_array());
        json_array_append_new(rows, numbers(d->values + row * columns, columns));
    }
    return rows;
}

static json_t *texts(const Names *n) {
    json_t *all = json_array();
    for (size_t i = 0; i < n->count; i++) json_array_append_new(all, json_from_text(n->items[i]));
    return all;
}

static json_t *panels(const PlotData *d) {
    json_t *all = json_array(), *series = NULL;
    size_t row = 0, scan = 0;
    for (size_t i = 0; i < d->count; i++) {
        const PlotBlock *b = &d->blocks[i];
        if (!i || b->panel != b[-1].panel) {
            json_t *panel = json_object();
            set(panel, "title", json_from_text(d->titles.items[b->panel - 1]));
            set(panel, "whole", json_from_text(d->panels.items[b->panel - 1])); // with its paths
            set(panel, "series", series = json_array());
            json_array_append_new(all, panel);
        }
        json_t *one = json_object();
        set(one, "name", json_from_text(d->series.items[b->series - 1]));
        set(one, "colour", json_integer(b->colour));
        set(one, "mark", json_integer(b->colour + plot_alike(d, i)));
        set(one, "rows", rows_of(d, b, row, &scan));
        json_array_append_new(series, one);
        row += (size_t)b->rows;
    }
    return all;
}

static json_t *name(const char *text) { return text ? json_string(text) : NULL; }
static json_t *bound(const double *value) { return value ? json_real(*value) : NULL; }

void chart_put(const Figure *f, const PlotData *d, Text *out) {
    const FigureAxes *a = &f->axes;
    int levels = figure_levels(a);
    json_t *chart = json_object();
    set(chart, "x", name(a->x));
    set(chart, "y", name(a->y));
    set(chart, "log", name(a->logarithmic ? "xy" : a->x_by_powers ? "x" : NULL));
    set(chart, "from", bound(a->from));
    set(chart, "to", bound(a->to));
    set(chart, "within", bound(a->within));
    set(chart, "levels", levels ? numbers(a->levels, (size_t)levels) : NULL);
    set(chart, "panels", panels(d));
    set(chart, "columns", texts(&d->columns));
    set(chart, "labels", texts(&d->labels));
    set(chart, "notes", texts(&d->notes));
    json_append(chart, JSON_COMPACT | JSON_REAL_PRECISION(5), out);
}
