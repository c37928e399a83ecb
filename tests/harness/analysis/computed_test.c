// Numbers of figures that aren't in the store: the law fitted to a run's points, and its prices on a machine,
// as plots join them; runs that have neither.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "harness/papers/computed.h"
#include "plots/plots.h"
#include "tests/support/child.h"
#include "tests/support/plot_store.h"
#include "tests/support/scratch.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static int set_up(void **state) {
    if (folder_setup(state)) return -1;
    plot_store_make(folder_path(*state, "plain.db"), 0);
    return 0;
}

static json_t *compute(const char *folder, int64_t run, const ComputedWanted *wanted) {
    Error e = {0};
    Text text = {0};
    Store *store = store_open(folder_path(folder, "plain.db"), STORE_READ, NULL, &e);
    if (!store || !computed_json(store, run, wanted, &text, &e)) fail_msg("%s", e.text);
    json_t *root = json_loads(text_get(&text), 0, NULL);
    if (!root) fail_msg("no JSON: %s", text_get(&text));
    text_release(&text);
    store_close(store);
    return root;
}

static double number(const json_t *o, const char *name) {
    return json_number_value(json_object_get(o, name));
}

static void fits(void **state) {
    json_t *root = compute(*state, PLOT_SWEEP, &(ComputedWanted){.fits = true, .alone = true});
    const json_t *sets = json_object_get(root, "fits"), *set = json_array_get(sets, 0);
    assert_int_equal(json_array_size(sets), 2); // a dataset each
    assert_int_equal(json_array_size(json_object_get(set, "points_of")), 6);
    const json_t *fit = json_object_get(set, "fit"), *all = json_object_get(fit, "predictions");
    assert_int_equal(json_array_size(all), 6);
    bool wide = false;
    for (size_t i = 0; i < 6; i++) {
        const json_t *p = json_array_get(all, i);
        double low = number(p, "low"), middle = number(p, "predicted"), high = number(p, "high");
        assert_true(1 <= low && low <= middle && middle <= high && high <= number(p, "N"));
        wide = wide || high > low;
    }
    assert_true(wide);
    json_decref(root);
    root = compute(*state, PLOT_SURFACE, &(ComputedWanted){.fits = true});
    assert_int_equal(json_array_size(json_object_get(root, "fits")), 0);
    json_decref(root);
}

// The config names one of the papers' items, which has the points of lookahead beside its rows.
static void tables(void **state) {
    json_t *root = compute(*state, PLOT_SWEEP, &(ComputedWanted){.tables = true});
    const json_t *all = json_object_get(root, "tables"), *table = json_array_get(all, 0);
    assert_int_equal(json_array_size(all), 1);
    assert_string_equal(json_string_value(json_object_get(table, "name")), "lookahead-table-3");
    assert_true(json_array_size(json_object_get(table, "rows")) >= 18);
    assert_true(number(root, "run") == PLOT_SWEEP);
    json_decref(root);
    root = compute(*state, PLOT_SURFACE, &(ComputedWanted){.tables = true, .fits = true});
    assert_int_equal(json_array_size(json_object_get(root, "tables")), 1); // its config is the same
    json_decref(root);
}

static void prediction(void **state) {
    PredictionArguments a = {
        .on = "a100-40gb", .shape = "llama2-7b", .against = "1", .devices = "1,2", .link = "300,5"};
    json_t *root = compute(*state, PLOT_SWEEP, &(ComputedWanted){.prediction = &a});
    const json_t *p = json_object_get(root, "prediction");
    assert_null(json_object_get(root, "fits"));
    assert_true(json_array_size(json_object_get(p, "points")) > 20);
    assert_true(number(json_array_get(json_object_get(p, "points"), 0), "measured_step_s") > 0);
    assert_true(number(json_object_get(p, "link"), "bytes_per_s") == 300e9);
    assert_null(json_object_get(root, "beside"));
    json_decref(root);
    a.beside = "llama2-13b";
    root = compute(*state, PLOT_SWEEP, &(ComputedWanted){.prediction = &a});
    const json_t *other = json_object_get(root, "beside");
    assert_string_equal(json_string_value(json_object_get(other, "shape")), "llama2-13b");
    assert_int_equal(json_array_size(json_object_get(other, "points")),
                     json_array_size(json_object_get(json_object_get(root, "prediction"), "points")));
    json_decref(root);
    a.link = NULL;
    Error e = {0};
    Text text = {0};
    Store *store = store_open(folder_path(*state, "plain.db"), STORE_READ, NULL, &e);
    assert_false(computed_json(store, PLOT_SWEEP, &(ComputedWanted){.prediction = &a}, &text, &e));
    assert_non_null(strstr(e.text, "--devices and --link go together"));
    text_release(&text);
    store_close(store);
}

// Through the program: the law stands in the figure, and a figure of a prediction says what it needs.
static void drawn(void **state) {
    Child c;
    size_t size;
    CHILD_OUTPACE(&c, *state, 0, "plot", "law", "--run", "1", "--db", "plain.db", "-o", "l.svg");
    child_release(&c);
    char *svg = scratch_read(*state, "l.svg", &size);
    assert_non_null(strstr(svg, "alpha 0."));
    assert_null(strstr(svg, "95 of 100 resamples")); // of one W there are bars and no band
    mem_free(svg);
    CHILD_OUTPACE(&c, *state, 2, "plot", "scaling", "--run", "1", "--db", "plain.db");
    assert_non_null(strstr(text_get(&c.err), "--on a100-40gb"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "plot", "predicted", "--run", "1", "--db", "plain.db", "--on", "a100-40gb");
    assert_non_null(strstr(text_get(&c.err), "--on goes with --shape"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "plot", "predicted", "--run", "1", "--db", "plain.db", "--on", "a100-40gb",
                  "--shape", "llama2-7b", "--footer", "-o", "p.svg");
    child_release(&c);
    svg = scratch_read(*state, "p.svg", &size);
    assert_non_null(strstr(svg, "priced for NVIDIA A100"));
    mem_free(svg);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits),
        cmocka_unit_test(tables),
        cmocka_unit_test(prediction),
        cmocka_unit_test(drawn),
    };
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
