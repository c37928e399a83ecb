// `outpace fit` as people run it: a file in, text or JSON out, mistakes in one line.
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void run(const char *folder, const char *const *argv, int code, Child *child) {
    *child = (Child){0};
    child_run(child, folder, NULL, argv);
    if (child->code != code)
        fail_msg("%s %s: wanted exit code %d, got %d; it said '%s'", argv[1], argv[2] ? argv[2] : "", code,
                 child->code, text_get(&child->err));
}

static const char *program(char *out, size_t size) {
    const char *s = getenv("OUTPACE") ? getenv("OUTPACE") : "./outpace";
    char *whole = realpath(s, NULL);
    snprintf(out, size, "%s", whole ? whole : s);
    free(whole);
    return out;
}

static void write_points(const char *folder) {
    FILE *f = fopen(folder_path(folder, "points.tsv"), "w");
    fputs("# (0.425, 3.106), to nine digits\nN\tW\tG\tS\n"
          "3\t5\t5\t1.50477011\n5\t5\t5\t1.65997802\n5\t15\t15\t1.97861493\n6\t20\t20\t2.12927122\n"
          "5\t15\t4\t1.6\n",
          f);
    fclose(f);
}

static double field(const json_t *root, const char *name, const char *part) {
    const json_t *x = json_object_get(json_object_get(root, name), part);
    if (!json_is_number(x)) fail_msg("JSON has no %s.%s", name, part);
    return json_number_value(x);
}

static void fits(void **state) {
    char path[4096];
    Child c;
    const char *text[] = {program(path, sizeof path), "fit", "--points", "points.tsv", NULL};
    const char *json[] = {path, "fit", "--points=points.tsv", "--json", NULL};
    write_points(*state);
    run(*state, text, 0, &c);
    assert_non_null(strstr(text_get(&c.out), "alpha 0.425 "));
    assert_non_null(strstr(text_get(&c.out), "not fitted"));
    child_release(&c);
    run(*state, json, 0, &c);
    json_t *root = json_loads(text_get(&c.out), 0, NULL);
    static const char *const PARTS[] = {"se", "low", "high"};
    assert_true(fabs(field(root, "alpha", "value") - 0.425) < 1e-6);
    assert_true(fabs(field(root, "f", "value") - 3.106) < 1e-5);
    for (int i = 0; i < 3; i++)
        assert_true(field(root, "alpha", PARTS[i]) >= 0 && field(root, "f", PARTS[i]) >= 0);
    assert_int_equal(json_integer_value(json_object_get(root, "fitted")), 4);
    json_decref(root);
    child_release(&c);
}

// Times that grow with rows and context as a slow machine's would; the fit prices those it has not seen.
static void write_surface(const char *folder) {
    FILE *f = fopen(folder_path(folder, "surface.csv"), "w");
    fputs("tokens,context,k,w,layout,median_s\n", f);
    for (int context = 25; context <= 800; context *= 2)
        for (int n = 1; n <= 128; n *= 2)
            fprintf(f, "%d,%d,0,0,chain,%.9g\n", n, context, 1e-3 + 1e-4 * n + 1e-8 * n * context);
    fclose(f);
}

static void fits_a_machine(void **state) {
    char path[4096], machine[4200];
    Child c;
    const char *root = getenv("OUTPACE_ROOT");
    char *here = realpath(root ? root : ".", NULL);
    snprintf(machine, sizeof machine, "%s/configs/hardware/cpu-8core-avx2.json", here);
    free(here);
    const char *synth[] = {program(path, sizeof path), "model", "synth", "tiny", "tiny", NULL};
    const char *fit[] = {path,   "fit",  "--surface", "surface.csv", "--model",
                         "tiny", "--on", machine,     "--json",      NULL};
    const char *without[] = {path, "fit", "--surface", "surface.csv", NULL};
    write_surface(*state);
    run(*state, synth, 0, &c);
    child_release(&c);
    run(*state, fit, 0, &c);
    json_t *result = json_loads(text_get(&c.out), 0, NULL);
    assert_true(field(result, "held_out", "points") == 14 && field(result, "fitted", "points") == 34);
    assert_true(field(result, "held_out", "median") < 0.05);
    const json_t *few = json_array_get(json_object_get(result, "rows"), 0);
    assert_int_equal(json_array_size(json_object_get(result, "rows")), 2); // 1 to 16, and 17 to 128
    assert_true(field(few, "fitted", "points") == 30 && field(few, "given", "points") == 30);
    if (!(field(few, "given", "median") > 10 * field(few, "fitted", "median")))
        fail_msg("a sheet's median error: wanted far more than the fit's %g, got %g",
                 field(few, "fitted", "median"), field(few, "given", "median"));
    json_decref(result);
    child_release(&c);
    fit[4] = "--shape"; // the same widths, and no model
    run(*state, fit, 0, &c);
    child_release(&c);
    run(*state, without, 2, &c);
    assert_non_null(strstr(text_get(&c.err), "--surface needs --model MODEL"));
    child_release(&c);
}

// In a paper's ablation only one setting has W = G: the message gives the fix, and it works.
static void points_with_w_unlike_g(void **state) {
    char path[4096];
    Child c;
    const char *fit[] = {program(path, sizeof path), "fit", "--points", "p.tsv", NULL};
    const char *all[] = {path, "fit", "--points", "p.tsv", "--law", "corrected", NULL};
    FILE *f = fopen(folder_path(*state, "p.tsv"), "w");
    fputs("N\tW\tG\tS\n5\t15\t15\t1.96\n5\t30\t1\t1.79\n5\t15\t30\t2.05\n", f);
    fclose(f);
    run(*state, fit, 2, &c);
    assert_non_null(strstr(text_get(&c.err),
                           "1 of 3 points to fit by least squares, for the paper's law takes "
                           "those with W = G; alpha and f need two or more: --law corrected"));
    child_release(&c);
    run(*state, all, 0, &c);
    child_release(&c);
}

static void says_what_is_wrong(void **state) {
    static const struct {
        const char *option, *value, *said;
    } ROWS[] = {
        {"--points", "none.tsv", "none.tsv"},
        {"--law", "eq5", "--law is 'eq5', must be paper or corrected"},
        {"--bonus", "no", "--bonus is 'no', must be kept or dropped"},
        {"--filling", "some", "--filling is 'some', must be none or"},
        {"--filling", "nan", "--filling is 'nan'"},
        {"7", "8", "give one of RUN, --points FILE.tsv and"},
        {"--resamples", "1", "resamples"},
    };
    char path[4096];
    program(path, sizeof path);
    write_points(*state);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Child c;
        const char *argv[] = {path, "fit", "--points", "points.tsv", ROWS[i].option, ROWS[i].value, NULL};
        run(*state, argv, 2, &c);
        if (!strstr(text_get(&c.err), ROWS[i].said))
            fail_msg("%s %s: wanted '%s', got '%s'", ROWS[i].option, ROWS[i].value, ROWS[i].said,
                     text_get(&c.err));
        child_release(&c);
    }
}

static void expect(const char *folder, const char *want, const char *const *argv) {
    Child c;
    run(folder, argv, 0, &c);
    if (!strstr(text_get(&c.out), want)) fail_msg("wanted '%s', got '%s'", want, text_get(&c.out));
    child_release(&c);
}

// A fit of a run stands in its store once, however often it is made, and beside the paper's. Its points are
// the set's: the modes are two laws, and a part of a set is not kept.
static void a_run_keeps_its_fits(void **state) {
    static const char CONFIG[] =
        "name: f\nmodels: [tiny]\ndatasets: [{name: chat, limit: 2}]\nhardware: {device: cpu, threads: 1}\n"
        "generation: {max_tokens: 40}\nmethods:\n  - name: lookahead\n"
        "    matrix: {mode: [reference, paper], N: 3}\n    zip: {W: [2, 4, 8], G: [2, 4, 8]}\n"
        "measurement: {warmup: 0, passes: 1}\n";
    static const char COUNT[] = "SELECT 'rows ' || count(*) || ', ' || count(DISTINCT title) || ', ' ||"
                                " sum(settings) || ', ' || sum(other_points) AS x FROM fitted";
    char path[4096];
    const char *o = program(path, sizeof path);
    const char *synth[] = {o, "model", "synth", "tiny", "tiny", NULL};
    const char *make[] = {o, "run", "f.yaml", "--db", "s.db", NULL};
    const char *table[] = {o,     "table", "lookahead-figure-4b", "--run", "f", "--db", "s.db", "--format",
                           "csv", NULL};
    const char *part[] = {o, "fit", "f", "--db", "s.db", "--resamples=100", "--label", "*N=3 W=[24]*", NULL};
    const char *fit[] = {o, "fit", "f", "--db", "s.db", "--resamples=100", NULL};
    const char *count[] = {o, "sql", COUNT, "--db", "s.db", NULL};
    const char *show[] = {o, "show", "f", "--db", "s.db", NULL};
    const char *csv[] = {o, "store", "export", "f", "--what", "fits", "--db", "s.db", NULL};
    FILE *f = fopen(folder_path(*state, "f.yaml"), "w");
    fputs(CONFIG, f);
    fclose(f);
    expect(*state, "", synth);
    expect(*state, "", make);
    expect(*state, "these points are not fitted", table);
    expect(*state, "rms", part);
    expect(*state, "rms", fit);
    expect(*state, "rms", fit);
    expect(*state, "rows 2, 2, 6, 0", count);
    expect(*state, "fit of tiny, chat; bonus dropped: alpha 0.", show);
    const char *other[] = {o, "fit", "f", "--db", "s.db", "--resamples=110", NULL};
    expect(*state, "rms", other);
    expect(*state, "rows 4, 2, 12, 0", count);
    Child c;
    run(*state, show, 0, &c);
    const char *first = strstr(text_get(&c.out), "fit of tiny, chat; bonus dropped:");
    if (!first || strstr(first + 1, "fit of tiny, chat; bonus dropped:"))
        fail_msg("wanted the newest of two fits, got '%s'", text_get(&c.out));
    child_release(&c);
    expect(*state,
           ",alpha,alpha,0.425,,tiny,\"random weights, shape tiny\",chat,\"3 settings of lookahead, least "
           "squares: "
           "law paper, bonus dropped",
           table);
    expect(*state, ",\"tiny, chat; bonus kept\",paper,kept,", csv);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fits, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(fits_a_machine, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(points_with_w_unlike_g, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(says_what_is_wrong, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_run_keeps_its_fits, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
