// A config's section for a smaller scale: its merging, refusals with their places; that it's checked even if
// it isn't used; that its points are those of the same config written out.
#include "tests/support/check.h"

#include "engine/base/text.h"
#include "harness/config/experiment.h"
#include "harness/config/sweep.h"

#include <string.h>

static const char HEAD[] = "name: n\n"                                        // line 1
                           "models:\n"                                        // 2
                           "  - {name: big, target: a, draft: b}\n"           // 3
                           "  - other\n"                                      // 4
                           "datasets: [{name: d, limit: 80}, {name: e}]\n"    // 5
                           "generation: {max_tokens: 512, seed: 1..3}\n"      // 6
                           "methods:\n"                                       // 7
                           "  - name: lookahead\n"                            // 8
                           "    matrix: {W: [5, 10, 15], N: 3..5}\n"          // 9
                           "  - {name: jacobi, matrix: {m: 2..4}}\n"          // 10
                           "  - {name: jacobi, label: J, matrix: {m: [8]}}\n" // 11
                           "measurement: {passes: 3}\n";                      // 12

static bool read(Experiment *x, const char *section, const char *scale, Error *e) {
    Text all = {0};
    const ExperimentChanges changes = {.scale = scale};
    text_printf(&all, "%s%s", HEAD, section);
    bool ok = experiment_parse(x, text_get(&all), all.length, "x.yaml", &changes, e);
    text_release(&all);
    return ok;
}

static void must_read(Experiment *x, const char *section, const char *scale) {
    Error e = {0};
    if (!read(x, section, scale, &e)) fail_msg("'%s' at %s: %s", section, scale, e.text);
}

static void maps_go_over_maps_and_items(void **state) {
    (void)state;
    Experiment x;
    must_read(&x,
              "smoke:\n"
              "  models: [{reference: reference}]\n"
              "  datasets: {d: {limit: 2}, 1: {turns: 2}}\n"
              "  generation: {max_tokens: 16}\n"
              "  methods: {lookahead: {matrix: {W: 5}}, 2: {matrix: {m: 9}}}\n"
              "  measurement: {warmup: 0}\n",
              "smoke");
    assert_int_equal(x.model_count, 1);
    assert_string_equal(x.models[0].reference, "reference");
    assert_true(x.dataset_count == 2 && x.datasets[0].limit == 2 && x.datasets[1].turns == 2);
    assert_int_equal(yaml_find(x.settings[1], "seed")->count, 3);
    assert_string_equal(yaml_find(x.settings[1], "max_tokens")->first->text, "16");
    assert_int_equal(yaml_find(x.methods[0].matrix, "W")->count, 1);
    assert_int_equal(yaml_find(x.methods[0].matrix, "N")->count, 3);
    assert_int_equal(yaml_find(x.methods[1].matrix, "m")->count, 3);
    assert_string_equal(yaml_find(x.methods[2].matrix, "m")->first->text, "9");
    assert_true(x.measurement.passes == 3 && x.measurement.warmup == 0);
    experiment_release(&x);
}

static void lists_and_values_stand_instead(void **state) {
    (void)state;
    Experiment x;
    must_read(&x, "smoke: {methods: [autoregressive], about: small, hardware: {threads: 1}}\n", "smoke");
    assert_int_equal(x.method_count, 1);
    assert_string_equal(x.about, "small");
    assert_string_equal(yaml_find(x.settings[0], "threads")->first->text, "1");
    experiment_release(&x);
}

// A new key comes after the others, without any others.
static void new_keys(void **state) {
    (void)state;
    Experiment x;
    must_read(&x, "smoke: {about: small, generation: {seed: 7}, hardware: {threads: 1}, datasets: [d]}\n",
              "smoke");
    assert_string_equal(x.about, "small");
    assert_string_equal(yaml_find(x.settings[1], "seed")->first->text, "7");
    assert_non_null(yaml_find(x.settings[1], "max_tokens"));
    assert_non_null(yaml_find(x.settings[0], "threads"));
    assert_int_equal(x.dataset_count, 1);
    experiment_release(&x);
}

// Without the option the section changes nothing.
static void full_is_as_written(void **state) {
    (void)state;
    static const char SECTION[] = "smoke: {models: [{reference: r}], datasets: {d: {limit: 1}}}\n";
    static const char *const scales[] = {NULL, "full"};
    for (int i = 0; i < 2; i++) {
        Experiment x;
        must_read(&x, SECTION, scales[i]);
        assert_true(x.model_count == 2 && x.datasets[0].limit == 80);
        experiment_release(&x);
    }
}

static void points_are_those_written_out(void **state) {
    (void)state;
    Experiment a, b;
    Sweep small, written;
    Error e = {0};
    static const char OUT[] =
        "name: n\nmodels: [{reference: r}]\ndatasets: [{name: d, limit: 2}, {name: e}]\n"
        "generation: {max_tokens: 512, seed: 2}\n"
        "methods: [{name: lookahead, matrix: {W: [5, 10, 15], N: 3..5}}]\n"
        "measurement: {passes: 3}\n";
    must_read(&a,
              "smoke: {models: [{reference: r}], datasets: {d: {limit: 2}}, generation: {seed: 2}, "
              "methods: [{name: lookahead, matrix: {W: [5, 10, 15], N: 3..5}}]}\n",
              "smoke");
    assert_true(experiment_parse(&b, OUT, strlen(OUT), "y.yaml", NULL, &e));
    assert_true(sweep_expand(&a, &small, &e) && sweep_expand(&b, &written, &e));
    assert_true(small.count == written.count && small.count > 1);
    assert_string_equal(small.hash, written.hash);
    sweep_release(&small);
    sweep_release(&written);
    experiment_release(&a);
    experiment_release(&b);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *section, *scale, *want;
    } CASES[] = {
        {"smoke: 5\n", "smoke", "x.yaml:13:8: 'smoke' must be a map of sections: {generation: ...}"},
        {"smoke: {smoke: {}}\n", "smoke", "x.yaml:13:9: 'smoke' has no 'smoke': take it away"},
        {"smoke: {name: m}\n", "smoke", "x.yaml:13:9: 'smoke' has no 'name': take it away"},
        {"smoke: {generation: {max_tokens: 0}}\n", NULL,
         "x.yaml:13:34: 'max_tokens' is '0', must be a whole number from 1 to 16777216"},
        {"smoke: {generatoin: {seed: 0}}\n", NULL,
         "x.yaml:13:9: a config has no key 'generatoin'; did you mean 'generation'?"},
        {"smoke: {methods: {jacobi: {label: K}}}\n", "smoke",
         "x.yaml:13:19: x.yaml:11:5: two items of this list are 'jacobi': choose one by its number, from 0"},
        {"smoke: {methods: {jacob: {label: K}}}\n", "full",
         "x.yaml:13:19: x.yaml:8:3: this list has no 'jacob': name one of its 3 items, or its number from 0"},
        {"smoke: {models: {other: {draft: c}}}\n", NULL,
         "x.yaml:4:5: 'other' is a single value: write {name: other} to change something in it"},
        {"", "smoke", "x.yaml:1:1: this config has no section 'smoke': it doesn't have that scale"},
        {"smoke: {}\n", "tiny", "--scale is 'tiny', must be small, smoke or full"},
        {"small: {smoke: {}}\n", "small", "x.yaml:13:9: 'small' has no 'smoke': take it away"},
        {"small: {generation: {max_tokens: 0}}\n", NULL,
         "x.yaml:13:34: 'max_tokens' is '0', must be a whole number from 1 to 16777216"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Experiment x;
        Error e = {0};
        if (read(&x, CASES[i].section, CASES[i].scale, &e)) fail_msg("'%s' was taken", CASES[i].section);
        if (strcmp(e.text, CASES[i].want) != 0)
            fail_msg("'%s': wanted '%s', got '%s'", CASES[i].section, CASES[i].want, e.text);
        assert_null(x.tree.root);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_go_over_maps_and_items),  cmocka_unit_test(lists_and_values_stand_instead),
        cmocka_unit_test(full_is_as_written),           cmocka_unit_test(new_keys),
        cmocka_unit_test(points_are_those_written_out), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
