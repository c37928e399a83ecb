// A figure as JSON: as many rows, columns and series as its data file has, in the same order, and the axes
// that its script gives.
#include "tests/support/check.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "plots/plots.h"
#include "tests/support/folder.h"
#include "tests/support/plot_store.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static int set_up(void **state) {
    if (folder_setup(state)) return -1;
    plot_store_make(folder_path(*state, "plain.db"), 0);
    return 0;
}

static json_t *parsed(const Text *text) {
    Error e = {0};
    json_t *value = json_from_bytes(text_get(text), text->length, "chart", &e);
    if (!value) fail_msg("%s", e.text);
    return value;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

// The numbers of the data file in their order, of rows only.
static void numbers_are(const char *figure, const Text *file, const json_t *panels) {
    size_t p, s, r, c;
    json_t *panel, *series, *row, *value;
    const char *at = text_get(file);
    json_array_foreach(panels, p, panel) json_array_foreach(json_object_get(panel, "series"), s, series)
        json_array_foreach(json_object_get(series, "rows"), r, row) json_array_foreach(row, c, value) {
        while (*at == '#' || *at == '\n') at += *at == '#' ? strcspn(at, "\n") : 1;
        char *end;
        double wanted = strtod(at, &end), got = json_number_value(value);
        if (end == at) fail_msg("%s: more numbers than the data file", figure);
        if (isnan(wanted) ? !json_is_null(value) : fabs(got - wanted) > 1e-4 * fabs(wanted))
            fail_msg("%s: wanted %g, got %g", figure, wanted, got);
        at = end + (*end == ' ');
    }
    at += strspn(at, "\n");
    if (*at) fail_msg("%s: not in the chart: %.60s", figure, at);
}

static void every_figure(void **state) {
    Error e = {0};
    Store *s = store_open(folder_path(*state, "plain.db"), STORE_READ, NULL, &e);
    assert_non_null(s);
    for (int i = 0; i < figure_count; i++) {
        const Figure *f = &figures[i];
        PlotData d;
        Text text = {0};
        if (!plot_data(s, f, plot_store_run(f), plot_store_computed(f), NULL, &d, &e)) fail_msg("%s", e.text);
        if (d.count) {
            chart_put(f, &d, &text);
            json_t *chart = parsed(&text), *panels = json_object_get(chart, "panels");
            assert_int_equal(json_array_size(panels), d.panels.count - (size_t)d.left_out);
            assert_int_equal(json_array_size(json_object_get(chart, "labels")), d.labels.count);
            Text file = {0};
            plot_data_text(&d, &file);
            numbers_are(f->name, &file, panels);
            text_release(&file);
            json_decref(chart);
        }
        text_release(&text);
        plot_data_release(&d);
    }
    store_close(s);
}

// A dataset that an interrupted run has not come to has no panel.
static void begun_datasets_only(void **state) {
    static const char UNDO[] =
        "DELETE FROM sample WHERE point_id IN (SELECT point.id FROM point JOIN dataset ON dataset.id ="
        " dataset_id WHERE dataset.name = 'chat');"
        "DELETE FROM failure; UPDATE point SET skipped = NULL;";
    const char *path = folder_path(*state, "begun.db");
    sqlite3 *db;
    Error e = {0};
    PlotData d;
    const Figure *f = figures;
    while (strcmp(f->name, "speedup") != 0) f++;
    plot_store_make(path, 0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, UNDO, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    Store *s = store_open(path, STORE_READ, NULL, &e);
    assert_non_null(s);
    if (!plot_data(s, f, plot_store_run(f), plot_store_computed(f), NULL, &d, &e)) fail_msg("%s", e.text);
    for (size_t i = 0; i < d.panels.count; i++)
        if (strstr(d.panels.items[i], "chat"))
            fail_msg("wanted no panel of chat, got '%s'", d.panels.items[i]);
    assert_int_equal(d.panels.count, 1);
    plot_data_release(&d);
    store_close(s);
}

// One block of numbers under these axes.
static json_t *chart_of(FigureAxes axes) {
    const Figure f = {.name = "x", .axes = axes, .script = "", .drawing = ""};
    PlotData d = {0};
    Text text = {0};
    size_t scan = 1;
    plot_name(&d.columns, "W");
    plot_name(&d.columns, "value");
    plot_block(&d, (PlotBlock){.panel = 1, .series = 1, .colour = 4});
    plot_row(&d)[0] = 5;
    double *row = plot_row(&d);
    row[0] = 123456789;
    row[1] = 1.23456789;
    d.scans = &scan;
    d.scan_count = 1;
    plot_name(&d.panels, "</script><b>");
    plot_name(&d.titles, "</script>");
    plot_name(&d.series, "it's \xff");
    chart_put(&f, &d, &text);
    json_t *chart = parsed(&text);
    text_release(&text);
    d.scans = NULL;
    plot_data_release(&d);
    return chart;
}

static void axes(void **state) {
    (void)state;
    json_t *chart = chart_of((FigureAxes){
        .x = "the target's W", .bar = "S", .logarithmic = true, .from = &(double){0}, .levels = {1.1, 2}});
    assert_string_equal(text_of(chart, "x"), "the target's W");
    assert_string_equal(text_of(chart, "y"), "");
    assert_string_equal(text_of(chart, "log"), "xy");
    assert_true(json_number_value(json_object_get(chart, "from")) == 0);
    assert_null(json_object_get(chart, "to"));
    char *levels = json_text(json_object_get(chart, "levels"), JSON_COMPACT | JSON_REAL_PRECISION(5));
    assert_string_equal(levels, "[1.1,2]");
    mem_free(levels);
    json_t *panel = json_array_get(json_object_get(chart, "panels"), 0);
    json_t *series = json_array_get(json_object_get(panel, "series"), 0);
    char *rows = json_text(json_object_get(series, "rows"), JSON_COMPACT | JSON_REAL_PRECISION(5));
    assert_string_equal(rows, "[[5,null],[],[123456789,1.2346]]");
    assert_string_equal(text_of(panel, "title"), "</script>");
    assert_string_equal(text_of(series, "name"), "it's ?");
    assert_int_equal(json_integer_value(json_object_get(series, "colour")), 4);
    mem_free(rows);
    json_decref(chart);
    chart = chart_of((FigureAxes){.x_by_powers = 1});
    assert_string_equal(text_of(chart, "x"), "");
    assert_string_equal(text_of(chart, "log"), "x");
    json_decref(chart);
}

// Hues of the palette and the ramp, which pictures have, too.
static void look(void **state) {
    (void)state;
    Text text = {0};
    chart_put_look(&text);
    json_t *all = parsed(&text), *hues = json_object_get(all, "hues"), *ramp = json_object_get(all, "ramp");
    assert_true(json_array_size(hues) == (size_t)palette_count && json_array_size(ramp) >= 2);
    for (size_t i = 0; i < json_array_size(hues) + json_array_size(ramp); i++) {
        size_t n = json_array_size(hues);
        const char *colour = json_string_value(i < n ? json_array_get(hues, i) : json_array_get(ramp, i - n));
        if (strlen(colour) != 7 || strspn(colour + 1, "0123456789abcdef") != 6)
            fail_msg("no colour: %s", colour);
        if (strcmp(i < n ? palette[i].hue : plot_ramp[i - n], colour) != 0)
            fail_msg("pictures have no %s", colour);
    }
    json_decref(all);
    text_release(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure),
        cmocka_unit_test(begun_datasets_only),
        cmocka_unit_test(axes),
        cmocka_unit_test(look),
    };
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
