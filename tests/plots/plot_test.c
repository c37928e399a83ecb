// Every figure of the table, from a small store: its data as the files in tests/fixtures/plots say, its SVG
// the same bytes each time, other bytes for other measurements; awkward names; what can go wrong. The command
// is in plot_command_test.c.
//
// OUTPACE_GOLDEN=write writes the fixtures anew: then look at each figure before they are committed.
#include "tests/support/check.h"

#include "engine/decode/method.h"
#include "engine/base/memory.h"
#include "engine/base/file.h"
#include "plots/plots.h"
#include "results/sql.h"
#include "tests/support/child.h"
#include "tests/support/plot_store.h"
#include "tests/support/scratch.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const PlotOptions SVG = {.format = PLOT_SVG, .computed = plot_computed};

typedef struct Stores {
    char folder[FOLDER_PATH_SIZE];
    Store *plain, *changed;
} Stores;

static Store *make_store(const Stores *s, const char *name, int change) {
    Error e = {0};
    plot_store_make(folder_path(s->folder, name), change);
    Store *store = store_open(folder_path(s->folder, name), STORE_READ, NULL, &e);
    if (!store) fail_msg("%s", e.text);
    return store;
}

static int set_up(void **state) {
    Stores *s = mem_new(1, sizeof *s);
    folder_make(s->folder);
    s->plain = make_store(s, "plain.db", 0);
    s->changed = make_store(s, "changed.db", 1);
    *state = s;
    return 0;
}

static int tear_down(void **state) {
    Stores *s = *state;
    store_close(s->plain);
    store_close(s->changed);
    folder_remove(s->folder);
    mem_free(s);
    return 0;
}

static PlotOptions options_of(const Figure *f) {
    PlotOptions o = SVG;
    o.computed = plot_store_computed(f);
    return o;
}

// The files of a plot, with their names.
static bool write_plot(Store *store, const Figure *f, int64_t run, const PlotOptions *o, const char *path,
                       Error *e) {
    Output out = {0};
    bool ok = plot_write(store, f, run, o, path, &out, e) && output_finish(&out, e);
    output_release(&out);
    return ok;
}

// --- fixtures --------------------------------------------------------------------------------------------

static bool writes_fixtures(void) {
    const char *golden = getenv("OUTPACE_GOLDEN");
    return golden && strcmp(golden, "write") == 0;
}

static const char *fixtures(char folder[512]) {
    const char *root = getenv("OUTPACE_ROOT");
    snprintf(folder, 512, "%s/tests/fixtures/plots", root ? root : ".");
    return folder;
}

static char *read_fixture(const char *name) { // for mem_free
    char folder[512];
    size_t size;
    return scratch_read(fixtures(folder), name, &size);
}

static void check_fixture(const char *name, const char *got, size_t size) {
    char folder[512];
    if (writes_fixtures()) scratch_write(fixtures(folder), name, got, size);
    char *wanted = read_fixture(name);
    assert_string_equal(got, wanted);
    mem_free(wanted);
}

static void data_is_as_written_down(void **state) {
    const Stores *s = *state;
    for (int i = 0; i < figure_count; i++) {
        char name[64];
        Error e = {0};
        const PlotOptions o = options_of(&figures[i]);
        snprintf(name, sizeof name, "%s.svg", figures[i].name);
        if (!write_plot(s->plain, &figures[i], plot_store_run(&figures[i]), &o, folder_path(s->folder, name),
                        &e))
            fail_msg("%s: %s", figures[i].name, e.text);
        size_t size;
        snprintf(name, sizeof name, "%s.svg.dat", figures[i].name);
        char *data = scratch_read(s->folder, name, &size),
             *mark = strstr(data, "# drawn by 'outpace plot'\n");
        assert_true(mark && mark + strlen("# drawn by 'outpace plot'\n") == data + size);
        *mark = 0;
        size = (size_t)(mark - data);
        snprintf(name, sizeof name, "%s.dat", figures[i].name);
        check_fixture(name, data, size);
        mem_free(data);
    }
}

// What gnuplot says of itself; marks and ticks fall elsewhere with another one.
static const char KNOWN_GNUPLOT[] = "gnuplot 5.4 patchlevel 4\n";

static void gnuplot_version(Text *out) {
    Child c;
    child_run(&c, NULL, NULL, (const char *const[]){"gnuplot", "--version", NULL});
    text_puts(out, text_get(&c.out));
    child_release(&c);
}

static void draw(Store *store, const Figure *f, const PlotOptions *o, Text *out) {
    Error e = {0};
    if (!plot_text(store, f, plot_store_run(f), o, out, &e)) fail_msg("%s: %s", f->name, e.text);
}

// The hashes hold for one gnuplot, which the first line names; another draws other curves of the same data.
static void svgs_are_stable(void **state) {
    const Stores *s = *state;
    Text list = {0};
    gnuplot_version(&list);
    for (int i = 0; i < figure_count; i++) {
        char hash[SHA256_TEXT];
        Text one = {0}, other = {0};
        Error e = {0};
        const PlotOptions o = options_of(&figures[i]);
        draw(s->plain, &figures[i], &o, &one);
        draw(s->changed, &figures[i], &o, &other);
        // Laws and predictions are computed before, and the same for both.
        bool changes = !(figures[i].computed & (COMPUTED_FITS | COMPUTED_PREDICTION)) || !o.computed;
        if (changes && strcmp(text_get(&one), text_get(&other)) == 0)
            fail_msg("%s: other measurements, same figure", figures[i].name);
        assert_true(sha256_bytes(text_get(&one), one.length, hash, &e));
        text_printf(&list, "%s %s\n", figures[i].name, hash);
        text_release(&one);
        text_release(&other);
    }
    if (writes_fixtures() || strncmp(text_get(&list), KNOWN_GNUPLOT, strlen(KNOWN_GNUPLOT)) == 0)
        check_fixture("svg.sha256", text_get(&list), list.length);
    text_release(&list);
}

// Every method has a row of the palette, and no two rows look alike, in print without colours either.
static void methods_have_colours(void **state) {
    (void)state;
    size_t count;
    const MethodInfo *const *methods = method_table(&count);
    for (size_t m = 0; m < count; m++) {
        int rows = 0;
        for (int i = 0; i < palette_count; i++) rows += strcmp(palette[i].name, methods[m]->name) == 0;
        if (rows != 1) fail_msg("%s has %d rows of the palette", methods[m]->name, rows);
    }
    for (int i = 0; i < palette_count; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(palette[i].hue, palette[k].hue) == 0 ||
                (palette[i].mark == palette[k].mark && palette[i].dash == palette[k].dash))
                fail_msg("%s looks like %s", palette[i].name, palette[k].name);
}

// Every word of the picture by the known gnuplot, of another one's picture.
static void check_words(const char *name, const char *got) {
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char *wanted = read_fixture(name);
    for (char *word = strtok(wanted, " \n"); word; word = strtok(NULL, " \n"))
        if (strspn(word, LETTERS) == strlen(word) && strlen(word) > 3 && !strstr(got, word))
            fail_msg("%s: '%s' is missing in\n%s", name, word, got);
    mem_free(wanted);
}

static void terminals(void **state) {
    const Stores *s = *state;
    Text version = {0};
    gnuplot_version(&version);
    bool known = writes_fixtures() || strcmp(text_get(&version), KNOWN_GNUPLOT) == 0;
    text_release(&version);
    const PlotOptions o = {.format = PLOT_TERM, .columns = 80};
    static const char *const NAMES[] = {"slowdown", "lookahead", "speedup"};
    for (int i = 0; i < 3; i++) {
        char name[64];
        Text text = {0};
        snprintf(name, sizeof name, "%s.txt", NAMES[i]);
        draw(s->plain, figure_find(NAMES[i]), &o, &text);
        for (const char *line = text_get(&text); *line; line += strspn(line, "\n")) {
            assert_true(strcspn(line, "\n") <= 80);
            line += strcspn(line, "\n");
        }
        if (known) check_fixture(name, text_get(&text), text.length);
        check_words(name, text_get(&text));
        text_release(&text);
    }
}

// --- names -----------------------------------------------------------------------------------------------

// What looks like a command, a tag or markup is drawn as it is.
static void awkward_names(void **state) {
    const Stores *s = *state;
    Text text = {0};
    draw(s->plain, figure_find("speedup"), &SVG, &text);
    assert_non_null(strstr(text_get(&text), "`id` &lt;script>alert(1)&lt;/script> it's \"50%\" @x_{2} \\n"));
    assert_null(strstr(text_get(&text), "<script"));
    assert_non_null(strstr(text_get(&text), "failed: out of memory for a tree"));
    assert_non_null(strstr(text_get(&text), "stand-in: small, reference inflated to 500m"));
    text_release(&text);
    Error e = {0};
    size_t size;
    assert_true(write_plot(s->plain, figure_find("speedup"), PLOT_SWEEP, &(PlotOptions){.format = PLOT_TEX},
                           folder_path(s->folder, "awkward.tex"), &e));
    char *tex = scratch_read(s->folder, "awkward.tex", &size);
    assert_non_null(strstr(tex, "it's \"50\\%\" @x\\_\\{2\\} \\textbackslash{}n"));
    mem_free(tex);
}

// What the scripts themselves say is LaTeX, too: a bare '%' in a text hides the rest of its line.
static void tex_is_tex(void **state) {
    const Stores *s = *state;
    for (int i = 0; i < figure_count; i++) {
        Error e = {0};
        size_t size;
        const PlotOptions o = {.format = PLOT_TEX, .computed = plot_store_computed(&figures[i])};
        if (!write_plot(s->plain, &figures[i], plot_store_run(&figures[i]), &o,
                        folder_path(s->folder, "f.tex"), &e))
            fail_msg("%s: %s", figures[i].name, e.text);
        char *tex = scratch_read(s->folder, "f.tex", &size);
        for (const char *at = tex; (at = strstr(at, "\\strut{}")); at++)
            for (const char *c = at; *c && *c != '\n'; c++)
                if (strchr("%#&", *c) && c[-1] != '\\' && c[1] != '\n')
                    fail_msg("%s: %.*s", figures[i].name, (int)strcspn(at, "\n"), at);
        mem_free(tex);
    }
}

// In a page that loads no package but graphicx, and no wider than its text. Where there is no LaTeX, what
// needs colours is looked for.
static void tex_needs_graphicx_alone(void **state) {
    static const char PAGE[] = "\\documentclass{article}\n\\usepackage{graphicx}\n\\begin{document}\n"
                               "\\noindent\\input{one}\n\\end{document}\n";
    const Stores *s = *state;
    size_t size;
    Error e = {0};
    const PlotOptions o = {.format = PLOT_TEX, .computed = plot_computed};
    assert_true(
        write_plot(s->plain, figure_find("ngrammys"), PLOT_SWEEP, &o, folder_path(s->folder, "one.tex"), &e));
    char *tex = scratch_read(s->folder, "one.tex", &size);
    assert_non_null(strstr(tex, "\\providecommand\\definecolor[3]{}\\fontsize{9}{10.8}\\selectfont"));
    assert_non_null(strstr(tex, "\\begin{picture}(7920.00,")); // twentieths of a point: 5.5 in
    mem_free(tex);
    if (system("pdflatex --version >/dev/null 2>&1") != 0) return;
    Child c;
    scratch_write(s->folder, "page.tex", PAGE, sizeof PAGE - 1);
    child_run(&c, s->folder, NULL,
              (const char *const[]){"pdflatex", "-interaction=nonstopmode", "page.tex", NULL});
    if (c.code || strstr(text_get(&c.out), "\n! ")) fail_msg("%s", text_get(&c.out));
    child_release(&c);
}

// A gnuplot that has only these terminals.
static char *poor_gnuplot(const Stores *s, const char *terminals) {
    char script[256];
    int n = snprintf(script, sizeof script, "#!/bin/sh\nsed \"s/GPVAL_TERMINALS/'%s'/\" | gnuplot -d\n",
                     terminals);
    scratch_write(s->folder, "gnuplot", script, (size_t)n);
    assert_int_equal(chmod(folder_path(s->folder, "gnuplot"), 0755), 0);
    return file_path(s->folder, "gnuplot");
}

// The next best terminal draws, with a note; if there is none, the error names what is missing.
static void without_cairo(void **state) {
    const Stores *s = *state;
    const struct {
        PlotFormat format;
        const char *terminals, *begins, *note, *error;
    } CASES[] = {
        {PLOT_PNG, "dumb png svg", "\x89PNG", "no pngcairo, so png drew the png", NULL},
        {PLOT_TEX, "epslatex svg", "%!PS", "no cairolatex, so epslatex drew the tex", NULL},
        {PLOT_PDF, "png svg", NULL, "", "it cannot draw pdf, since it was built without pdfcairo"},
        {PLOT_TEX, "png svg", NULL, "",
         "it cannot draw tex, since it was built without cairolatex or epslatex"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        size_t size;
        Error e = {0};
        Text notes = {0};
        char *program = poor_gnuplot(s, CASES[i].terminals);
        const PlotOptions o = {.format = CASES[i].format, .gnuplot = program, .notes = &notes};
        bool ok = write_plot(s->plain, figure_find("slowdown"), PLOT_SURFACE, &o,
                             folder_path(s->folder, "poor.x"), &e);
        if (ok == (CASES[i].error != NULL) || (CASES[i].error && !strstr(e.text, CASES[i].error)) ||
            !strstr(text_get(&notes), CASES[i].note))
            fail_msg("%zu: got error '%s', notes '%s'", i, e.text, text_get(&notes));
        if (ok) {
            char *got =
                scratch_read(s->folder, CASES[i].format == PLOT_TEX ? "poor-inc.eps" : "poor.x", &size);
            if (strncmp(got, CASES[i].begins, strlen(CASES[i].begins)) != 0)
                fail_msg("%zu: got %.20s", i, got);
            mem_free(got);
        }
        text_release(&notes);
        mem_free(program);
    }
}

// A plot that is killed half way, or that fails, leaves no folder behind: there never is one.
static void leaves_nothing(void **state) {
    const Stores *s = *state;
    char before[512];
    Text text = {0};
    Error e = {0};
    const char *set = getenv("TMPDIR");
    snprintf(before, sizeof before, "%s", set ? set : "");
    setenv("TMPDIR", "/no/such/folder", 1);
    bool ok = plot_text(s->plain, figure_find("speedup"), PLOT_SWEEP, &SVG, &text, &e);
    if (set) setenv("TMPDIR", before, 1);
    else unsetenv("TMPDIR");
    if (!ok) fail_msg("%s", e.text);
    text_release(&text);
}

// The files beside a plot make it anew, but for the mark at its end; and the plot may then be made again.
static void redrawn(void **state) {
    const Stores *s = *state;
    Child c;
    Error e = {0};
    size_t size, again_size;
    assert_true(write_plot(s->plain, figure_find("rows"), PLOT_SURFACE, &SVG,
                           folder_path(s->folder, "a b's.svg"), &e));
    char *first = scratch_read(s->folder, "a b's.svg", &size);
    remove(folder_path(s->folder, "a b's.svg"));
    child_run(&c, s->folder, NULL, (const char *const[]){"gnuplot", "-d", "a b's.svg.gp", NULL});
    assert_int_equal(c.code, 0);
    child_release(&c);
    char *again = scratch_read(s->folder, "a b's.svg", &again_size);
    assert_string_equal(first + again_size, "<!-- drawn by 'outpace plot' -->\n");
    assert_memory_equal(first, again, again_size);
    mem_free(first);
    mem_free(again);
    if (!write_plot(s->plain, figure_find("rows"), PLOT_SURFACE, &SVG, folder_path(s->folder, "a b's.svg"),
                    &e))
        fail_msg("%s", e.text);
}

// Names that begin or end with a quote, or are nothing else: gnuplot reads two quotes at the start as an
// empty text.
static void apostrophes(void **state) {
    static const char *const NAMES[] = {"'x", "''x''", "'", "''", "x'", "'`id`'\"\\", "'@ARGC'"};
    const Stores *s = *state;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char sql[256];
        Error e = {0};
        const char *path = folder_path(s->folder, "quotes.db");
        remove(path);
        plot_store_make(path, 0);
        Store *store = store_open(path, STORE_WRITE, NULL, &e);
        sqlite3_snprintf(sizeof sql, sql,
                         "UPDATE model SET name = %Q; UPDATE dataset SET name = %Q WHERE name = 'chat';"
                         "UPDATE point SET label = %Q || number",
                         NAMES[i], NAMES[i], NAMES[i]);
        if (!store || !sql_script(store, sql, &e)) fail_msg("%s", e.text);
        static const char *const FIGURES[] = {"speedup", "slowdown", "ctar"};
        for (int k = 0; k < 3; k++)
            for (int format = PLOT_SVG; format < PLOT_FORMATS; format += PLOT_TERM) { // svg, term
                Text text = {0};
                draw(store, figure_find(FIGURES[k]), &(PlotOptions){.format = (PlotFormat)format}, &text);
                if (format == PLOT_SVG && !strstr(text_get(&text), NAMES[i]))
                    fail_msg("%s is not drawn", NAMES[i]);
                text_release(&text);
            }
        store_close(store);
    }
}

// The legend has no mark that no sample has.
static void throttled_ones(void **state) {
    const Stores *s = *state;
    const char *path = folder_path(s->folder, "throttled.db");
    plot_store_make(path, 0);
    for (int flags = 0; flags < 4; flags += 2) {
        char sql[64];
        Error e = {0};
        Text text = {0};
        Store *store = store_open(path, STORE_WRITE, NULL, &e);
        snprintf(sql, sizeof sql, "UPDATE sample SET flags = %d", flags);
        if (!store || !sql_script(store, sql, &e)) fail_msg("%s", e.text);
        draw(store, figure_find("samples"), &(PlotOptions){.format = PLOT_SVG}, &text);
        if (!strstr(text_get(&text), ">throttled<") != !flags) fail_msg("flags %d: wrong legend", flags);
        text_release(&text);
        store_close(store);
    }
}

// Files of any name at all; what gnuplot itself would take for a command is a name, too. The script finds
// them.
static void file_names(void **state) {
    static const char *const NAMES[] = {"a\nb.svg",
                                        "a\tb.svg",
                                        "a\x01"
                                        "b.svg",
                                        "\xff\xfe.svg",
                                        "'q'.svg",
                                        "'.svg",
                                        "a\\b.svg",
                                        "$numbers.svg",
                                        "|touch x;.svg",
                                        "<touch x;.svg",
                                        "`touch x`.svg"};
    const Stores *s = *state;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        Error e = {0};
        Child c;
        char script[64];
        if (!write_plot(s->plain, figure_find("rows"), PLOT_SURFACE, &SVG, folder_path(s->folder, NAMES[i]),
                        &e))
            fail_msg("%s: %s", NAMES[i], e.text);
        assert_int_equal(remove(folder_path(s->folder, NAMES[i])), 0);
        snprintf(script, sizeof script, "./%s.gp", NAMES[i]);
        child_run(&c, s->folder, NULL, (const char *const[]){"gnuplot", "-d", script, NULL});
        if (c.code) fail_msg("%s: %s", NAMES[i], text_get(&c.err));
        child_release(&c);
        assert_int_equal(remove(folder_path(s->folder, NAMES[i])), 0);
        assert_int_equal(remove(folder_path(s->folder, "x")), -1);
    }
}

// --- failures --------------------------------------------------------------------------------------------

static void refused(Store *store, const Figure *f, int64_t run, const PlotOptions *o, const char *path,
                    ErrorKind kind, const char *wanted) {
    Error e = {0};
    assert_false(write_plot(store, f, run, o, path, &e));
    if (!strstr(e.text, wanted)) fail_msg("wanted '%s' in: %s", wanted, e.text);
    assert_int_equal(e.kind, kind);
}

static void mistakes(void **state) {
    const Stores *s = *state;
    const Figure *f = figure_find("eta");
    const char *path = folder_path(s->folder, "m.svg");
    Figure broken = *f;
    broken.drawing = "\n#layout\nplot data nonsense\n";
    refused(s->plain, f, PLOT_SURFACE, &SVG, path, ERROR_INPUT,
            "nothing to draw for eta: run a config with kangaroo");
    refused(s->plain, f, PLOT_SWEEP, &(PlotOptions){.gnuplot = "/no/gnuplot"}, path, ERROR_SYSTEM,
            "cannot find '/no/gnuplot', which draws the plots: install it");
    refused(s->plain, &broken, PLOT_SWEEP, &SVG, path, ERROR_SYSTEM, "'gnuplot' failed on");
    assert_int_equal(remove(path), -1); // half a plot is none
    refused(s->plain, f, PLOT_SWEEP, &SVG, folder_path(s->folder, "plain.db/m.svg"), ERROR_SYSTEM,
            "plain.db");
    assert_null(figure_find("nothing"));
    assert_null(figure_find("lookahead-figure-4"));
    assert_string_equal(figure_find("lookahead-figure-4a")->name, "lookahead");
    assert_string_equal(figure_find("lookahead-figure-4b")->name, "law");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_is_as_written_down),
        cmocka_unit_test(svgs_are_stable),
        cmocka_unit_test(methods_have_colours),
        cmocka_unit_test(terminals),
        cmocka_unit_test(awkward_names),
        cmocka_unit_test(tex_is_tex),
        cmocka_unit_test(leaves_nothing),
        cmocka_unit_test(redrawn),
        cmocka_unit_test(apostrophes),
        cmocka_unit_test(throttled_ones),
        cmocka_unit_test(file_names),
        cmocka_unit_test(tex_needs_graphicx_alone),
        cmocka_unit_test(without_cairo),
        cmocka_unit_test(mistakes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
