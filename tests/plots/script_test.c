// Pictures as a paper wants them: their sizes, no text that nobody asked for, one colour per method, one
// scale per heat map, lines that spare the numbers, axes without negative tics.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "plots/plots.h"
#include "tests/support/child.h"
#include "tests/support/plot_store.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const PlotOptions COLUMN = {
    .format = PLOT_SVG, .width_mm = PLOT_COLUMN_MM, .no_title = true, .no_footer = true};

typedef struct Made {
    char folder[FOLDER_PATH_SIZE];
    Store *store;
} Made;

static int set_up(void **state) {
    Made *m = mem_new(1, sizeof *m);
    Error e = {0};
    folder_make(m->folder);
    plot_store_make(folder_path(m->folder, "p.db"), 0);
    m->store = store_open(folder_path(m->folder, "p.db"), STORE_READ, NULL, &e);
    if (!m->store) fail_msg("%s", e.text);
    *state = m;
    return 0;
}

static int tear_down(void **state) {
    Made *m = *state;
    store_close(m->store);
    folder_remove(m->folder);
    mem_free(m);
    return 0;
}

static void draw(const Made *m, const Figure *f, const PlotOptions *o, Text *out) {
    Error e = {0};
    PlotOptions own = *o;
    own.computed = plot_store_computed(f);
    if (!plot_text(m->store, f, plot_store_run(f), &own, out, &e)) fail_msg("%s: %s", f->name, e.text);
}

static int count_of(const char *text, const char *what) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) count++;
    return count;
}

// --- sizes -----------------------------------------------------------------------------------------------

static void expect(const char *got, const char *wanted) {
    if (!strstr(got, wanted)) fail_msg("wanted '%s' in\n%.1200s", wanted, got);
}

// 85 mm are 240.9 points, and 321 pixels at 96 to the inch; letters of 8 points are 10.67 of those.
static void sizes_are_as_asked(void **state) {
    const Made *m = *state;
    Child c;
    size_t size;
    CHILD_OUTPACE(&c, m->folder, 0, "plot", "lookahead", "--run", "1", "--db", "p.db", "--width", "column",
                  "-o", "a.svg");
    child_release(&c);
    char *svg = scratch_read(m->folder, "a.svg", &size);
    expect(svg, "width=\"321\"");
    expect(svg, "font-size=\"10.67\"");
    mem_free(svg);
    CHILD_OUTPACE(&c, m->folder, 0, "plot", "lookahead", "--run", "1", "--db", "p.db", "--width", "60",
                  "--height", "100", "--size", "6", "--font", "Serif", "-o", "b.svg");
    child_release(&c);
    svg = scratch_read(m->folder, "b.svg", &size);
    expect(svg, "width=\"226\" height=\"377\"");
    expect(svg, "font-family=\"Serif\" font-size=\"8.00\"");
    mem_free(svg);
    CHILD_OUTPACE(&c, m->folder, 0, "plot", "lookahead", "--run", "1", "--db", "p.db", "--width", "text",
                  "-o", "a.tex");
    child_release(&c);
    char *tex = scratch_read(m->folder, "a.tex", &size);
    expect(tex, "\\begin{picture}(9920.00,"); // twentieths of a point, whole points
    expect(tex, "\\fontsize{8}{9.6}");
    mem_free(tex);
}

static void refuses(const Made *m, const char *wanted, const char *const *words) {
    Child c;
    child_outpace(&c, m->folder, strstr(wanted, "its panels") ? 1 : 2, words);
    if (!strstr(text_get(&c.err), wanted)) fail_msg("wanted '%s' in: %s", wanted, text_get(&c.err));
    child_release(&c);
}

#define REFUSED(m, wanted, ...) \
    refuses(m, wanted, (const char *const[]){"plot", "lookahead", "--db", "p.db", __VA_ARGS__, NULL})

static void sizes_that_cannot_be(void **state) {
    const Made *m = *state;
    REFUSED(m, "--width 'page' must be column, text or from 30 to 1000 mm", "--width", "page");
    REFUSED(m, "--width '85mm' must be", "--width", "85mm");
    REFUSED(m, "--width '' must be", "--width", "");
    REFUSED(m, "--width 'nan' must be", "--width", "nan");
    REFUSED(m, "it is too low for its panels: give --height", "--run", "1", "--width", "85", "--height", "20",
            "--size", "20");
    REFUSED(m, "no panel of lookahead has 'nothing' in its title", "--run", "1", "--panel", "nothing");
}

// --- texts -----------------------------------------------------------------------------------------------

// Nothing but panels, axes and legends, unless it is asked for.
static void bare_unless_asked(void **state) {
    const Made *m = *state;
    PlotOptions full = COLUMN;
    full.no_title = full.no_footer = false;
    for (int i = 0; i < figure_count; i++) {
        Text bare = {0}, all = {0};
        draw(m, &figures[i], &COLUMN, &bare);
        draw(m, &figures[i], &full, &all);
        static const char *const EXTRA[] = {"stand-in: small", "outpace 0.1.0"};
        for (int k = 0; k < 2; k++) {
            if (strstr(text_get(&bare), EXTRA[k])) fail_msg("%s has '%s'", figures[i].name, EXTRA[k]);
            if (!strstr(text_get(&all), EXTRA[k])) fail_msg("%s lacks '%s'", figures[i].name, EXTRA[k]);
        }
        if (strstr(text_get(&bare), figures[i].summary)) fail_msg("%s has its title", figures[i].name);
        text_release(&bare);
        text_release(&all);
    }
}

// Each series is named once, not in every panel.
static void one_legend(void **state) {
    const Made *m = *state;
    Text svg = {0};
    draw(m, figure_find("ctar"), &COLUMN, &svg);
    assert_int_equal(count_of(text_get(&svg), "ngrammys k=5 w=4"), 1);
    assert_int_equal(count_of(text_get(&svg), "share of steps"), 1);
    text_release(&svg);
}

static void one_panel(void **state) {
    const Made *m = *state;
    PlotOptions o = COLUMN;
    Text svg = {0};
    o.panel = "chat";
    draw(m, figure_find("speedup"), &o, &svg);
    assert_int_equal(count_of(text_get(&svg), "lookahead"), 1);
    text_release(&svg);
}

// Panels of settings that differ in their last word: side by side, their titles would be cut to the same one.
static void titles_stay_apart(void **state) {
    const Made *m = *state;
    PlotOptions o = COLUMN;
    Text svg = {0};
    o.width_mm = PLOT_TEXT_MM;
    draw(m, figure_find("ridge"), &o, &svg);
    assert_int_equal(count_of(text_get(&svg), "gamma=6 eta=0.2</text>"), 3);
    assert_int_equal(count_of(text_get(&svg), "gamma=6 eta=0.6</text>"), 3);
    text_release(&svg);
}

// --- colours ---------------------------------------------------------------------------------------------

// A series of a method has the method's colour in every figure.
static void one_colour_per_method(void **state) {
    static const char *const FIGURES[] = {"speedup", "ctar",    "acceptance",  "flops",
                                          "match-k", "samples", "temperature", "batch"};
    const Made *m = *state;
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++) {
        PlotData d;
        Error e = {0};
        const Figure *f = figure_find(FIGURES[i]);
        if (!plot_data(m->store, f, plot_store_run(f), plot_store_computed(f), NULL, &d, &e))
            fail_msg("%s", e.text);
        assert_true(d.count);
        for (size_t b = 0; b < d.count; b++) {
            const char *series = d.series.items[d.blocks[b].series - 1];
            const char *method = palette[d.blocks[b].colour - 1].name;
            if (strncmp(series, method, strlen(method)) != 0)
                fail_msg("%s: %s has the colour of %s", FIGURES[i], series, method);
        }
        plot_data_release(&d);
    }
}

// --- heat maps -------------------------------------------------------------------------------------------

// Both panels share a scale, whose bar is drawn once.
static void one_bar(void **state) {
    const Made *m = *state;
    Text svg = {0};
    draw(m, figure_find("slowdown"), &COLUMN, &svg);
    assert_int_equal(count_of(text_get(&svg), "<text>slowdown</text>"), 1);
    text_release(&svg);
}

// Whether a line from (x, y) to (u, v) meets the box of a number whose middle is (a, b).
static bool meets(double x, double y, double u, double v, double a, double b) {
    static const double WIDE = 9, HIGH = 3.5; // half of it
    return fmin(x, u) < a + WIDE && fmax(x, u) > a - WIDE && fmin(y, v) < b + HIGH && fmax(y, v) > b - HIGH;
}

static int check_line(const char *svg, double x, double y, double u, double v) {
    int numbers = 0;
    for (const char *at = svg; (at = strstr(at, "<g transform=\"translate(")); at++) {
        double a, b, value;
        const char *text = strstr(at, "<text>");
        if (!text || sscanf(at, "<g transform=\"translate(%lf,%lf)", &a, &b) != 2) continue;
        if (sscanf(text, "<text>%lf", &value) != 1 || text[7] != '.' || text[9] == '<' || // a level's own
            !strstr(at, "text-anchor=\"middle\""))
            continue;
        numbers++;
        if (meets(x, y, u, v, a, b - 3.5))
            fail_msg("the line from %g,%g to %g,%g crosses %g at %g,%g", x, y, u, v, value, a, b);
    }
    return numbers;
}

static void lines_spare_numbers(void **state) {
    static const char *const HUES[] = {"<path stroke='rgb(229, 138,  60)'",
                                       "<path stroke='rgb(213,  94,   0)'",
                                       "<path stroke='rgb(140,  45,   4)'"};
    const Made *m = *state;
    int lines = 0;
    Text svg = {0};
    draw(m, figure_find("slowdown"), &COLUMN, &svg);
    for (int level = 0; level < 3; level++)
        for (const char *path = text_get(&svg); (path = strstr(path, HUES[level])); path++) {
            const char *end = strstr(path, "/>"), *d = strstr(path, " d='");
            double x, y, u, v;
            for (const char *at = d; at && at < end; at = strchr(at + 1, 'M'))
                if (sscanf(strchr(at, 'M'), "M%lf,%lf L%lf,%lf", &x, &y, &u, &v) == 4) {
                    lines++;
                    assert_true(check_line(text_get(&svg), x, y, u, v) > 10);
                }
        }
    assert_in_range(lines, 12, 200);
    text_release(&svg);
}

// --- axes ------------------------------------------------------------------------------------------------

static void no_negative_tics(void **state) {
    const Made *m = *state;
    for (int i = 0; i < figure_count; i++) {
        Text svg = {0};
        draw(m, &figures[i], &COLUMN, &svg);
        for (const char *at = text_get(&svg); (at = strstr(at, "<text>-")); at++)
            if (at[7] >= '0' && at[7] <= '9') fail_msg("%s: %.20s", figures[i].name, at);
        text_release(&svg);
    }
}

// Where W doubles, so do the tics; of other numbers they are 1, 2 and 5, or powers of ten.
static void logarithmic_tics(void **state) {
    const Made *m = *state;
    Text svg = {0};
    draw(m, figure_find("rows"), &COLUMN, &svg);
    static const char *const TICS[] = {"<text>1</text>", "<text>2</text>", "<text>4</text>", "<text>8</text>",
                                       "<text>16</text>"};
    for (size_t i = 0; i < sizeof TICS / sizeof *TICS; i++)
        if (!strstr(text_get(&svg), TICS[i])) fail_msg("rows: no %s", TICS[i]);
    text_clear(&svg);
    draw(m, figure_find("roofline"), &COLUMN, &svg);
    if (!strstr(text_get(&svg), "<text>10</text>") || strstr(text_get(&svg), "<text>16</text>"))
        fail_msg("roofline: tics are not decimal");
    text_release(&svg);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_as_asked),
        cmocka_unit_test(sizes_that_cannot_be),
        cmocka_unit_test(bare_unless_asked),
        cmocka_unit_test(one_legend),
        cmocka_unit_test(one_panel),
        cmocka_unit_test(titles_stay_apart),
        cmocka_unit_test(one_colour_per_method),
        cmocka_unit_test(one_bar),
        cmocka_unit_test(lines_spare_numbers),
        cmocka_unit_test(no_negative_tics),
        cmocka_unit_test(logarithmic_tics),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
