// All figures for a paper, and their captions, by the program: the files, their page in LaTeX, and refusals.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "plots/plots.h"
#include "tests/support/child.h"
#include "tests/support/plot_store.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_up(void **state) {
    char *folder = mem_new(FOLDER_PATH_SIZE, 1);
    folder_make(folder);
    plot_store_make(folder_path(folder, "p.db"), 0);
    *state = folder;
    return 0;
}

static int tear_down(void **state) {
    folder_remove(*state);
    mem_free(*state);
    return 0;
}

static void expect(const char *got, const char *wanted) {
    if (!strstr(got, wanted)) fail_msg("wanted '%s' in\n%s", wanted, got);
}

// --- captions --------------------------------------------------------------------------------------------

static void captions(void **state) {
    const char *folder = *state;
    Child c;
    CHILD_OUTPACE(&c, folder, 0, "plot", "speedup", "--run", "1", "--db", "p.db", "--caption");
    const char *got = text_get(&c.out);
    expect(got, "beside it\n\nSpeedup of each method's fastest setting. Shown: small.");
    expect(got,
           " Intervals hold 95 of 100 resamples of prompts. n = 3 prompts of each dataset. Greedy decoding.");
    expect(got, " Settings: ouroboros gamma=12 beta=7 K=20; ");
    expect(got, "made-up processor, 2 cores. Stand-in: small, reference inflated to 500m.");
    expect(got, " *: a tenth of its samples");
    child_release(&c);
    // Of the part that is drawn, and as LaTeX.
    CHILD_OUTPACE(&c, folder, 0, "plot", "ctar", "--run", "1", "--db", "p.db", "--caption", "--dataset",
                  "chat", "--method", "kangaroo", "-o", "c.tex");
    expect(text_get(&c.out), "Shown: small, chat.");
    expect(text_get(&c.out), "n = 3 prompts of chat.");
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 0, "plot", "speedup", "--run", "1", "--db", "p.db", "--caption", "-o", "s.tex");
    expect(text_get(&c.out), "kangaroo exit\\_layer=2");
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 0, "plot", "slowdown", "--run", "2", "--db", "p.db", "--caption");
    expect(text_get(&c.out), " timed runs of each step, of which the median is drawn.");
    child_release(&c);
    // Without a run there is neither n nor a date.
    CHILD_OUTPACE(&c, folder, 0, "plot", "slowdown", "--on", "h100", "--shape", "llama2-7b", "--caption",
                  "-o", "h.svg");
    if (strstr(text_get(&c.out), "n = ") || strstr(text_get(&c.out), "Measured on"))
        fail_msg("%s", text_get(&c.out));
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 2, "plot", "speedup", "--run", "1", "--db", "p.db", "--caption", "-o", "-");
    child_release(&c);
}

// --- all of it -------------------------------------------------------------------------------------------

static bool latex_is_there(void) { return system("pdflatex --version >/dev/null 2>&1") == 0; }

// Every picture of the page is there, and where there is LaTeX, the page compiles without a mistake, and
// nothing is wider than its place.
static void check_page(const char *folder, const char *paper, int figures_wanted) {
    char path[64];
    size_t size;
    int count = 0;
    Child c;
    snprintf(path, sizeof path, "%s/figures.tex", paper);
    char *page = scratch_read(folder, path, &size);
    for (const char *at = page; (at = strstr(at, "\\begin{figure")); at++) count++;
    if (count != figures_wanted) fail_msg("%s: %d figures, wanted %d", paper, count, figures_wanted);
    expect(page, "\\usepackage{graphicx}\n");
    expect(page, "n = 3 prompts of each dataset.");
    expect(page, "\\label{fig:speedup}");
    mem_free(page);
    if (!latex_is_there()) return;
    child_run(&c, folder_path(folder, paper), NULL,
              (const char *const[]){"pdflatex", "-interaction=nonstopmode", "figures.tex", NULL});
    if (c.code || strstr(text_get(&c.out), "\n! ") || strstr(text_get(&c.out), "Overfull") ||
        strstr(text_get(&c.out), "too large"))
        fail_msg("%s", text_get(&c.out));
    child_release(&c);
}

static void pages_compile(void **state) {
    static const char *const FORMATS[] = {"pdf", "png", "tex"};
    const char *folder = *state;
    for (int i = 0; i < test_some(1, 3); i++) {
        char wanted[64];
        Child c;
        CHILD_OUTPACE(&c, folder, 0, "plot", "all", "--run", "1", "--db", "p.db", "--paper", FORMATS[i],
                      "--format", FORMATS[i]);
        int figures_drawn = 0;
        snprintf(wanted, sizeof wanted, "%s/figures.tex: %%d figures as %s", FORMATS[i], FORMATS[i]);
        if (sscanf(text_get(&c.out), wanted, &figures_drawn) != 1) fail_msg("%s", text_get(&c.out));
        assert_in_range(figures_drawn, 12, figure_count);
        child_release(&c);
        check_page(folder, FORMATS[i], figures_drawn);
    }
}

// A gnuplot without cairo draws them as png, and tells so once.
static void without_cairo(void **state) {
    static const char
        SCRIPT[] = "#!/bin/sh\nsed \"s/GPVAL_TERMINALS/'png svg'/g\" | PATH=\"$BEFORE\" gnuplot -d\n",
        RUN[] =
            "BEFORE=\"$PATH\" PATH=\"$PWD/bin:$PATH\" \"$PROGRAM\" plot all --run 2 --db p.db --paper poor";
    const char *folder = *state, *program = getenv("OUTPACE");
    char line[1024], path[512];
    Child c;
    mkdir(folder_path(folder, "bin"), 0777);
    scratch_write(folder, "bin/gnuplot", SCRIPT, sizeof SCRIPT - 1);
    chmod(folder_path(folder, "bin/gnuplot"), 0755);
    assert_non_null(realpath(program ? program : "./outpace", path));
    snprintf(line, sizeof line, "PROGRAM='%s'; %s", path, RUN);
    child_run(&c, folder, NULL, (const char *const[]){"sh", "-c", line, NULL});
    expect(text_get(&c.out), "poor/figures.tex: 4 figures as png");
    const char *note = strstr(text_get(&c.err), "no pngcairo");
    if (c.code || !note || strstr(note + 1, "no pngcairo")) fail_msg("%s", text_get(&c.err));
    child_release(&c);
}

// Of a run of each kind; a second time it replaces its own files.
static void newest_of_each_kind(void **state) {
    const char *folder = *state;
    Child c;
    for (int times = 0; times < 2; times++) {
        CHILD_OUTPACE(&c, folder, 0, "plot", "all", "--db", "p.db", "--paper", "both", "--width", "60");
        child_release(&c);
    }
    size_t size;
    char *page = scratch_read(folder, "both/figures.tex", &size);
    expect(page, "\\includegraphics[width=60mm]{slowdown}");
    expect(page, "\\includegraphics[width=60mm]{step-time}");
    assert_null(strstr(page, "figure*"));
    mem_free(page);
}

// A surface has no dataset: a dataset that is chosen leaves it out.
static void chosen_part(void **state) {
    const char *folder = *state;
    Child c;
    size_t size;
    CHILD_OUTPACE(&c, folder, 0, "plot", "all", "--run", "1", "--db", "p.db", "--paper", "part", "--dataset",
                  "chat");
    child_release(&c);
    char *page = scratch_read(folder, "part/figures.tex", &size);
    expect(page, "n = 3 prompts of chat.");
    assert_null(strstr(page, "{slowdown}"));
    mem_free(page);
}

// All pictures, as the screen shows them, and no page of LaTeX.
static void for_the_screen(void **state) {
    static const char *const FORMATS[] = {"svg", "png"};
    const char *folder = *state;
    for (int i = 0; i < 2; i++) {
        char wanted[64], name[64];
        size_t size;
        Child c;
        CHILD_OUTPACE(&c, folder, 0, "plot", "all", "--run", "2", "--db", "p.db", "-o", "all.d", "--format",
                      FORMATS[i]);
        snprintf(wanted, sizeof wanted, "all.d: 4 figures as %s", FORMATS[i]);
        expect(text_get(&c.out), wanted);
        child_release(&c);
        snprintf(name, sizeof name, "all.d/slowdown.%s", FORMATS[i]);
        mem_free(scratch_read(folder, name, &size));
        assert_in_range(size, 1000, 10000000);
    }
    assert_int_equal(access(folder_path(folder, "all.d/figures.tex"), F_OK), -1);
}

static void refused(void **state) {
    static const struct {
        const char *words[8], *wanted;
    } CASES[] = {
        {{"all"}, "'all' goes with --paper DIR"},
        {{"speedup", "--paper", "x"}, "'all' goes with --paper DIR"},
        {{"all", "--paper", "x", "--format", "svg"}, "LaTeX cannot include 'svg'"},
        {{"all", "--paper", "x", "-o", "y"}, "leave out --panel, --caption, and --output or --paper"},
        {{"all", "-o", "x", "--format", "term"}, "--output holds svg, png, pdf or tex"},
        {{"all", "--paper", "x", "--run", "7"}, "7"},
    };
    const char *folder = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *words[16] = {"plot"};
        size_t count = 1;
        for (; CASES[i].words[count - 1]; count++) words[count] = CASES[i].words[count - 1];
        words[count++] = "--db";
        words[count++] = "p.db";
        Child c;
        child_outpace(&c, folder, 2, words);
        expect(text_get(&c.err), CASES[i].wanted);
        child_release(&c);
    }
    assert_int_equal(access(folder_path(folder, "x/figures.tex"), F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captions),    cmocka_unit_test(pages_compile), cmocka_unit_test(newest_of_each_kind),
        cmocka_unit_test(chosen_part), cmocka_unit_test(without_cairo), cmocka_unit_test(for_the_screen),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
