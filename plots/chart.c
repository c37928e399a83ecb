// A figure's data as JSON. Axes are written once, in the gnuplot scripts: an axis's name is the quoted text
// after "x_name = " at the start of a line. A script without it has none here, and the page shows the
// column's name. Colours are those of the palette (data.h) and of style.gp.
#include "plots/chart.h"

#include "engine/base/json.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- from the scripts ------------------------------------------------------------------------------------

// The place after `key` at the start of a line; NULL if no line begins with it.
static const char *line_after(const char *script, const char *key) {
    size_t n = strlen(key);
    for (const char *at = script; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, key, n) == 0) return at + n;
    }
    return NULL;
}

// The quoted text after `key`, in which two quotes are one.
static json_t *quoted_after(const char *script, const char *key) {
    const char *at = line_after(script, key);
    Text text = {0};
    if (!at || *at != '\'') return NULL;
    for (at++; *at && (*at != '\'' || at[1] == '\''); at++) {
        text_add(&text, at, 1);
        at += *at == '\'';
    }
    json_t *value = json_from_text(text_get(&text));
    text_release(&text);
    return value;
}

static json_t *word_after(const char *script, const char *key) {
    const char *at = line_after(script, key);
    return at ? json_stringn(at, strcspn(at, " \n")) : NULL;
}

static json_t *number_after(const char *script, const char *key) {
    const char *at = line_after(script, key);
    return at ? json_real(strtod(at, NULL)) : NULL;
}

// The numbers of an array: "array level[2] = [1.0, 2.0]".
static json_t *numbers_after(const char *script, const char *key) {
    const char *at = line_after(script, key), *open = at ? strstr(at, "= [") : NULL;
    if (!open) return NULL;
    json_t *all = json_array();
    char *end;
    at = open + 3;
    do {
        json_array_append_new(all, json_real(strtod(at, &end)));
        at = end + 1;
    } while (*end == ',');
    return all;
}

// The axes that are logarithmic: "x", "xy"; NULL: none. curve.gp makes x so by a setting.
static json_t *logarithmic(const char *script) {
    return line_after(script, "x_by_powers = ") ? json_string("x") : word_after(script, "set logscale ");
}

static void set(json_t *object, const char *key, json_t *value) {
    if (value) json_object_set_new(object, key, value);
}

void chart_put_look(Text *out) {
    enum { COLOUR = sizeof "#rrggbb" - 1 };
    json_t *look = json_object(), *hues = json_array(), *ramp = json_array();
    // The second palette of style.gp is that of pictures; the first is TeX's.
    const char *at = strstr(figures_style, "} else {\n    set palette defined");
    for (; at && *at && *at != ')'; at++)
        if (*at == '#') json_array_append_new(ramp, json_stringn(at, COLOUR));
    for (int i = 0; i < palette_count; i++) json_array_append_new(hues, json_string(palette[i].hue));
    set(look, "hues", hues);
    set(look, "ramp", ramp);
    json_append(look, JSON_COMPACT, out);
}

// --- numbers ---------------------------------------------------------------------------------------------

// Five digits are more than a screen shows; counts keep all of theirs.
static json_t *number(const char *text) {
    double x = strtod(text, NULL);
    if (!isfinite(x)) return json_null();
    return fabs(x) < 1e15 && x == floor(x) ? json_integer((json_int_t)x) : json_real(x);
}

// The words of a line, by `of`.
static json_t *words(const char *line, size_t n, json_t *(*of)(const char *word)) {
    json_t *all = json_array();
    char word[64];
    for (const char *at = line, *end = line + n; at < end;) {
        size_t length = strcspn(at, " \n"), most = sizeof word - 1;
        if (length) {
            snprintf(word, sizeof word, "%.*s", (int)(length < most ? length : most), at);
            json_array_append_new(all, of(word));
        }
        at += length + 1;
    }
    return all;
}

// Reads the next block of the data file: two comments, the second with the names of its columns, and rows,
// whose scans have an empty line between them. Returns the place after it.
static const char *read_block(const char *at, json_t **columns, json_t *rows) {
    at = strchr(at, '\n') + 1;
    size_t n = strcspn(at, "\n");
    assert(*at == '#');
    if (!*columns) *columns = words(at + 1, n - 1, json_string);
    for (at += n + 1; *at && strncmp(at, "\n\n", 2) != 0; at += n + (at[n] != 0)) {
        n = strcspn(at, "\n");
        json_array_append_new(rows, words(at, n, number));
    }
    return at + strspn(at, "\n");
}

static json_t *texts(const Names *n) {
    json_t *all = json_array();
    for (size_t i = 0; i < n->count; i++) json_array_append_new(all, json_from_text(n->items[i]));
    return all;
}

static json_t *panels(const PlotData *d, json_t **columns) {
    json_t *all = json_array(), *series = NULL;
    const char *at = text_get(&d->numbers);
    for (size_t i = 0; i < d->count; i++) {
        const PlotBlock *b = &d->blocks[i];
        if (!i || b->panel != b[-1].panel) {
            json_t *panel = json_object();
            set(panel, "title", json_from_text(d->titles.items[b->panel - 1]));
            set(panel, "whole", json_from_text(d->panels.items[b->panel - 1])); // with its paths
            set(panel, "series", series = json_array());
            json_array_append_new(all, panel);
        }
        json_t *rows = json_array(), *one = json_object();
        at = read_block(at, columns, rows);
        set(one, "name", json_from_text(d->series.items[b->series - 1]));
        set(one, "colour", json_integer(b->colour));
        set(one, "mark", json_integer(b->colour + plot_alike(d, i)));
        set(one, "rows", rows);
        json_array_append_new(series, one);
    }
    return all;
}

void chart_put(const Figure *f, const PlotData *d, Text *out) {
    json_t *chart = json_object(), *columns = NULL;
    set(chart, "x", quoted_after(f->script, "x_name = "));
    set(chart, "y", quoted_after(f->script, "y_name = "));
    set(chart, "log", logarithmic(f->script));
    set(chart, "from", number_after(f->script, "y_from = "));
    set(chart, "to", number_after(f->script, "y_to = "));
    set(chart, "within", number_after(f->script, "y_within = "));
    set(chart, "levels", numbers_after(f->script, "array level["));
    set(chart, "panels", panels(d, &columns));
    set(chart, "columns", columns);
    set(chart, "labels", texts(&d->labels));
    set(chart, "notes", texts(&d->notes));
    json_append(chart, JSON_COMPACT | JSON_REAL_PRECISION(5), out);
}
