// A figure's data as JSON. Where an axis has no name, the page shows the column's.
#include "plots/chart.h"

#include "engine/base/json.h"

#include <math.h>

static void set(json_t *object, const char *key, json_t *value) {
    if (value) json_object_set_new(object, key, value);
}

void chart_put_look(Text *out) {
    json_t *look = json_object(), *hues = json_array(), *ramp = json_array();
    for (int i = 0; i < plot_ramp_count; i++) json_array_append_new(ramp, json_string(plot_ramp[i]));
    for (int i = 0; i < palette_count; i++) json_array_append_new(hues, json_string(palette[i].hue));
    set(look, "hues", hues);
    set(look, "ramp", ramp);
    json_append(look, JSON_COMPACT, out);
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
