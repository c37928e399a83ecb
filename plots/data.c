#include "plots/data.h"

#include "engine/base/memory.h"
#include "plots/letters.h"
#include "results/rows.h"

#include <stdio.h>
#include <string.h>

// --- texts -----------------------------------------------------------------------------------------------

// The number of a text, from 1; 0: out of memory.
static int name_number(Names *n, const char *text) {
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->items[i], text) == 0) return (int)i + 1;
    if (!mem_grow((void **)&n->items, &n->capacity, n->count + 1, sizeof *n->items)) return 0;
    if (!(n->items[n->count] = mem_text(text, strlen(text)))) return 0;
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

// --- titles ----------------------------------------------------------------------------------------------

static bool is_path(const char *word, size_t n) {
    return word[0] == '/' || word[0] == '.' || !memchr(word, ' ', n);
}

// Of every path in a text, a word up to ',', ':' or ';', the last name and `above` of those that lead to it.
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

// A path is as short as it can be with no two titles alike.
static bool make_titles(PlotData *d, Error *e) {
    enum { MOST_ABOVE = 64 };
    for (int above = 0; above <= MOST_ABOVE && d->titles.count < d->panels.count; above++) {
        names_release(&d->titles);
        for (size_t i = 0; i < d->panels.count; i++) {
            Text title = {0};
            put_path_ends(&title, d->panels.items[i], above);
            bool ok = !title.failed && name_number(&d->titles, text_get(&title));
            text_release(&title);
            if (!ok) return error_system(e, "out of memory for a figure");
        }
    }
    return true;
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

// One row's place, and whether it is another than the last's.
typedef struct Place {
    int panel, series, colour; // colour 0: no column says it
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
        case COLUMN_PANEL: at.panel = name_number(&d->panels, rows_text(r, i)); break;
        case COLUMN_SERIES: at.series = name_number(&d->series, rows_text(r, i)); break;
        case COLUMN_COLOUR: at.colour = name_number(&d->colours, rows_text(r, i)); break;
        case COLUMN_SCAN: at.scan = rows_real(r, i); break;
        default: break;
        }
    return at;
}

// A text in a comment of the data file: on one line, whatever is in it.
static void put_comment(Text *out, const char *text) {
    char letter[LETTER_SIZE];
    while (letters_next(&text, letter)) text_puts(out, letter);
}

static bool open_block(PlotData *d, Place at, const Rows *r) {
    if (!mem_grow((void **)&d->blocks, &d->capacity, d->count + 1, sizeof *d->blocks)) return false;
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
    return true;
}

static bool put_row(PlotData *d, const Rows *r) {
    const char *between = "";
    for (int i = 0, column = 0; i < rows_columns(r); i++) {
        ColumnKind kind = column_kind(rows_name(r, i));
        bool null = rows_type(r, i) == VALUE_NULL;
        if (kind != COLUMN_NUMBER && kind != COLUMN_LABEL) continue;
        column++;
        if (strcmp(rows_name(r, i), "doubtful") == 0 && rows_int(r, i)) d->doubtful = column;
        text_puts(&d->numbers, between);
        between = " ";
        if (kind == COLUMN_LABEL) {
            int number = null ? 0 : name_number(&d->labels, rows_text(r, i));
            if (!null && !number) return false;
            text_printf(&d->numbers, "%d", number);
        } else if (null) text_puts(&d->numbers, "nan");
        else text_printf(&d->numbers, "%.9g", rows_real(r, i));
    }
    text_puts(&d->numbers, "\n");
    d->blocks[d->count - 1].rows++;
    return true;
}

static bool read_rows(PlotData *d, Rows *r, Error *e) {
    Place last = {0};
    while (rows_next(r)) {
        if (d->of && !strstr(panel_of(r), d->of)) {
            if (!name_number(&d->others, panel_of(r))) return error_system(e, "out of memory for a figure");
            continue;
        }
        Place at = place_of(d, r);
        if (!at.panel || !at.series) return error_system(e, "out of memory for a figure");
        if (at.panel > PLOT_MOST_PANELS) continue;
        bool another = at.panel != last.panel || at.series != last.series;
        if (another && !open_block(d, at, r)) return error_system(e, "out of memory for a figure");
        if (!another && (at.scan < last.scan || at.scan > last.scan)) text_puts(&d->numbers, "\n");
        if (!put_row(d, r)) return error_system(e, "out of memory for a figure");
        last = at;
    }
    return true;
}

// The colours of methods, the same in every figure: in this order, those of style.gp.
static bool name_methods(PlotData *d, Error *e) {
    static const char *const METHODS[] = {
        "lookahead", "speculative", "ngrammys", "kangaroo", "prompt-lookup", "ouroboros", "autoregressive",
        "medusa",    "rest",        "jacobi",   "mix"};
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        if (!name_number(&d->colours, METHODS[i])) return error_system(e, "out of memory for a figure");
    return true;
}

// --- all of it -------------------------------------------------------------------------------------------

static bool each(Store *store, const char *sql, int64_t run, const char *computed, PlotData *d,
                 bool (*take)(PlotData *d, Rows *r, Error *e), Error *e) {
    Rows *r = rows_open(store, sql, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    if (rows_parameters(r) > 1) rows_bind_text(r, 2, computed);
    return rows_end(r, take(d, r, e), e);
}

static bool read_notes(PlotData *d, Rows *r, Error *e) {
    while (rows_next(r))
        if (!name_number(&d->notes, rows_text(r, 0))) return error_system(e, "out of memory for a figure");
    return true;
}

static bool note_doubtful(const Figure *f, PlotData *d, Error *e) {
    static const char *const LINES[] = {
        [RUN_SWEEP] = "*: a tenth of its samples or its baseline's disturbed, or speedup above S",
        [RUN_SURFACE] = "*: too few of its samples are undisturbed"};
    return !d->doubtful || name_number(&d->notes, LINES[f->kind]) ||
           error_system(e, "out of memory for a figure");
}

static bool note_left_out(PlotData *d, Error *e) {
    char line[64];
    if (d->panels.count <= PLOT_MOST_PANELS) return true;
    d->left_out = (int)d->panels.count - PLOT_MOST_PANELS;
    snprintf(line, sizeof line, "%d more panels are left out: choose which to draw", d->left_out);
    return name_number(&d->notes, line) || error_system(e, "out of memory for a figure");
}

static bool note_others(PlotData *d, Error *e) {
    Text line = {0};
    if (!d->others.count) return true;
    text_printf(&line, "%zu panels are not of %s, and left out", d->others.count, d->of);
    bool ok = !line.failed && name_number(&d->notes, text_get(&line));
    text_release(&line);
    return ok || error_system(e, "out of memory for a figure");
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
    if (!name_methods(out, e) || !each(store, f->query, run, computed, out, read_rows, e)) return false;
    if (!out->count && out->others.count) {
        plot_data_release(out);
        return plot_data(store, f, run, computed, NULL, out, e);
    }
    if (!make_titles(out, e) || !each(store, figures_notes, run, computed, out, read_notes, e) ||
        !note_doubtful(f, out, e) || !note_left_out(out, e) || !note_others(out, e))
        return false;
    return !out->numbers.failed || error_system(e, "out of memory for a figure");
}
