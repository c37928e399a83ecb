// outpace plot by the real program: which models and titles a figure shows; its files, which replace only
// those that it wrote; standard output, a full disk; its options and hints.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "results/sql.h"
#include "tests/support/child.h"
#include "tests/support/plot_store.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int set_up(void **state) {
    if (folder_setup(state)) return -1;
    plot_store_make(folder_path(*state, "plain.db"), 0);
    return 0;
}

// --- panels ----------------------------------------------------------------------------------------------

static int panels_with(const char *folder, const char *file, const char *text) {
    size_t size;
    int count = 0;
    char *data = scratch_read(folder, file, &size);
    for (const char *at = data; (at = strstr(at, "# S: ")); at++) {
        const char *found = strstr(at, text);
        count += found && found < at + strcspn(at, "\n");
    }
    mem_free(data);
    return count;
}

// A paper's figure shows the model that it is of, where a run has it among others; else all that there is.
static void of_its_model(void **state) {
    const char *folder = *state;
    const char *path = folder_path(folder, "models.db");
    Error e = {0};
    Child c;
    plot_store_make(path, 0);
    Store *store = store_open(path, STORE_WRITE, NULL, &e);
    // A panel's title has it in another place than a model's name would stand: what counts is that it is
    // there.
    if (!store || !sql_script(store, "UPDATE dataset SET name = 'for Phi-3-mini' WHERE name = 'chat'", &e))
        fail_msg("%s", e.text);
    store_close(store);
    CHILD_OUTPACE(&c, folder, 0, "plot", "ngrammys-figure-7", "--run", "1", "--db", "models.db");
    child_release(&c);
    assert_int_equal(panels_with(folder, "ngrammys-figure-7.svg.dat", "Phi-3-mini"), 1);
    assert_int_equal(panels_with(folder, "ngrammys-figure-7.svg.dat", "script"), 0);
    CHILD_OUTPACE(&c, folder, 0, "plot", "ngrammys-figure-9", "--run", "1", "--db", "models.db");
    child_release(&c);
    assert_int_equal(panels_with(folder, "ngrammys-figure-9.svg.dat", "Phi-3-mini"), 1);
    assert_int_equal(panels_with(folder, "ngrammys-figure-9.svg.dat", "script"), 1);
}

static void expect_in_script(const char *folder, const char *figure, const char *want) {
    char name[64];
    size_t size;
    snprintf(name, sizeof name, "%s.svg.gp", figure);
    char *script = scratch_read(folder, name, &size);
    if (!strstr(script, want)) fail_msg("%s: wanted %s in\n%s", figure, want, strstr(script, "array panel"));
    mem_free(script);
}

// What tells panels apart is what is read of a title: no path to a model hides it, and a panel of several
// models has all their names. Without --title nothing else is in it.
static void titles_tell_panels_apart(void **state) {
    static const char CHANGES[] =
        "UPDATE model SET name = '/far/away/models/' || name;"
        "INSERT INTO model (name, hash, path, shape, layers) SELECT '/far/away/other', hash, path, shape, "
        "layers FROM"
        " model WHERE id = (SELECT model_id FROM point LIMIT 1);"
        "UPDATE point SET model_id = (SELECT max(id) FROM model) WHERE id IN"
        " (SELECT point_id FROM point_param WHERE name = 'exit_layer' AND value = 2);";
    const char *folder = *state;
    const char *path = folder_path(folder, "titles.db");
    Error e = {0};
    Child c;
    plot_store_make(path, 0);
    Store *store = store_open(path, STORE_WRITE, NULL, &e);
    if (!store || !sql_script(store, CHANGES, &e)) fail_msg("%s", e.text);
    store_close(store);
    CHILD_OUTPACE(&c, folder, 0, "plot", "exit-layer", "--run", "1", "--db", "titles.db", "--title");
    child_release(&c);
    expect_in_script(folder, "exit-layer", "'compression rate: mean of 2 sub-benchmarks; small, other'");
    CHILD_OUTPACE(&c, folder, 0, "plot", "exit-layer", "--run", "1", "--db", "titles.db");
    child_release(&c);
    expect_in_script(folder, "exit-layer", "array panel[2] = ['compression rate', 'speedup']");
    CHILD_OUTPACE(&c, folder, 0, "plot", "slowdown", "--run", "2", "--db", "titles.db");
    child_release(&c);
    expect_in_script(
        folder, "slowdown",
        "array panel[6] = ['measured, context 25', 'priced, context 25', 'priced / measured, context 25', 'measured");
}

// --- files -----------------------------------------------------------------------------------------------

static void holds(const char *folder, const char *name, const char *start) {
    size_t size;
    char *bytes = scratch_read(folder, name, &size);
    if (strncmp(bytes, start, strlen(start)) != 0) fail_msg("'%s' begins with %.20s", name, bytes);
    mem_free(bytes);
}

// A file that 'plot' did not write stays, whichever of a plot's files would take its place, and then none of
// the others is written; one that it wrote is replaced.
static void replaces_its_own(void **state) {
    const char *folder = *state;
    static const char *const FORMATS[] = {"svg", "png", "pdf", "tex", "txt"};
    static const char *const FILES[] = {"own/a.svg", "own/a.svg.dat", "own/a.svg.gp"};
    Child c;
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        char path[32];
        snprintf(path, sizeof path, "again/a.%s", FORMATS[i]);
        for (int times = 0; times < 2; times++) {
            CHILD_OUTPACE(&c, folder, 0, "plot", "speedup", "--db", "plain.db", "-o", path, "--format",
                          strcmp(FORMATS[i], "txt") == 0 ? "term" : FORMATS[i]);
            child_release(&c);
        }
    }
    assert_int_equal(folder_count(folder_path(folder, "again")), 5 * 3 + 1);
    mkdir(folder_path(folder, "own"), 0777);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        scratch_write(folder, FILES[i], "mine", 4);
        CHILD_OUTPACE(&c, folder, 2, "plot", "speedup", "--db", "plain.db", "-o", "own/a.svg");
        if (!strstr(text_get(&c.err), FILES[i]) || !strstr(text_get(&c.err), "--force"))
            fail_msg("%s", text_get(&c.err));
        child_release(&c);
        holds(folder, FILES[i], "mine");
        assert_int_equal(folder_count(folder_path(folder, "own")), 1);
        remove(folder_path(folder, FILES[i]));
    }
    scratch_write(folder, "own/a.svg", "mine", 4);
    CHILD_OUTPACE(&c, folder, 0, "plot", "speedup", "--db", "plain.db", "-o", "own/a.svg", "--force");
    child_release(&c);
    holds(folder, "own/a.svg", "<?xml");
}

// What TeX includes is a file of its own, not the PDF of the same name; and it is found by its name.
static void tex_beside_pdf(void **state) {
    const char *folder = *state;
    size_t size;
    Child c;
    scratch_write(folder, "both.pdf", "mine", 4);
    CHILD_OUTPACE(&c, folder, 0, "plot", "speedup", "--db", "plain.db", "-o", "both.tex");
    assert_string_equal(text_get(&c.out),
                        "both.tex, with both-inc.pdf, both.tex.dat, both.tex.gp beside it\n");
    child_release(&c);
    holds(folder, "both.pdf", "mine");
    holds(folder, "both-inc.pdf", "%PDF");
    char *tex = scratch_read(folder, "both.tex", &size);
    assert_non_null(strstr(tex, "{both-inc}"));
    mem_free(tex);
}

static void to_standard_output(void **state) {
    const char *folder = *state;
    static const char *const PATHS[] = {"-", "/dev/stdout", "/dev/fd/1"};
    Child c;
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        CHILD_OUTPACE(&c, folder, 0, "plot", "speedup", "--db", "plain.db", "--format", "svg", "-o",
                      PATHS[i]);
        const char *end = "<!-- drawn by 'outpace plot' -->\n";
        assert_int_equal(strncmp(text_get(&c.out), "<?xml", 5), 0);
        assert_string_equal(text_get(&c.out) + c.out.length - strlen(end), end);
        child_release(&c);
    }
    CHILD_OUTPACE(&c, folder, 2, "plot", "speedup", "--db", "plain.db", "--format", "tex", "-o", "-");
    child_release(&c);
}

// Whatever the format, a disk without room is an error, and nothing is left on it.
static void full_disk(void **state) {
    const char *folder = *state;
    static const char *const PATHS[] = {"disk/a.svg", "disk/a.png", "disk/a.pdf", "disk/a.tex"};
    Child c;
    if (!folder_disk(folder, "disk", 4)) skip();
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        CHILD_OUTPACE(&c, folder, 1, "plot", "speedup", "--db", "plain.db", "-o", PATHS[i]);
        if (!strstr(text_get(&c.err), "No space left on device")) fail_msg("%s", text_get(&c.err));
        child_release(&c);
        assert_int_equal(folder_count(folder_path(folder, "disk")), 0);
    }
}

// --- options and hints -----------------------------------------------------------------------------------

static void by_command(void **state) {
    const char *folder = *state;
    Child c;
    CHILD_TERMINAL(&c, folder, 64, 0, "plot", "lookahead", "--format", "term", "--db", "plain.db");
    assert_non_null(strstr(text_get(&c.out), "\x1b[")); // in colour, as wide as the terminal
    for (const char *line = text_get(&c.out); *line; line += strcspn(line, "\n") + 1) {
        int letters = 0;
        for (const char *at = line; *at && *at != '\n'; at++)
            if (*at == '\x1b') at += strcspn(at, "m");
            else letters++;
        if (letters > 64) fail_msg("%d letters: %.*s", letters, (int)strcspn(line, "\n"), line);
    }
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 0, "plot");
    assert_non_null(strstr(text_get(&c.out), "slowdown "));
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 0, "plot", "slowdown", "--format", "term", "--db", "plain.db");
    assert_non_null(strstr(text_get(&c.out), "///")); // the hole
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 0, "plot", "speedup", "--db", "plain.db", "-o", "new/x.pdf");
    assert_string_equal(text_get(&c.out), "new/x.pdf, with x.pdf.dat, x.pdf.gp beside it\n");
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 2, "plot", "spedup", "--db", "plain.db");
    assert_non_null(strstr(text_get(&c.err), "did you mean 'speedup'?"));
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 2, "plot", "speedup", "--db", "plain.db", "-o", "x.bmp");
    assert_non_null(strstr(text_get(&c.err), "a plot cannot be 'bmp'"));
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 0, "plot", "kangaroo-figure-3b", "--run", "1", "--db", "plain.db");
    assert_string_equal(
        text_get(&c.out),
        "kangaroo-figure-3b.svg, with kangaroo-figure-3b.svg.dat, kangaroo-figure-3b.svg.gp beside it\n");
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 2, "plot", "ouroboros-figure-5", "--db", "plain.db");
    assert_non_null(strstr(text_get(&c.err), "outpace run configs/ouroboros-figure-5.yaml --scale smoke"));
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 2, "plot", "kangaroo-figure-1a", "--db", "plain.db");
    assert_non_null(strstr(text_get(&c.err), "outpace run configs/kangaroo-table-1.yaml --scale smoke"));
    child_release(&c);
    CHILD_OUTPACE(&c, folder, 2, "plot", "slowdown", "--run", "demo", "--db", "plain.db");
    assert_non_null(strstr(text_get(&c.err), "outpace bench --store MODEL"));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_its_model),       cmocka_unit_test(titles_tell_panels_apart),
        cmocka_unit_test(replaces_its_own),   cmocka_unit_test(tex_beside_pdf),
        cmocka_unit_test(to_standard_output), cmocka_unit_test(full_disk),
        cmocka_unit_test(by_command),
    };
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
