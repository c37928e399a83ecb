// Experiments from YAML: the effect of every key; one line with place and fix for every error; changes from
// the command line.
#include "tests/support/check.h"

#include "engine/base/text.h"
#include "harness/config/experiment.h"

#include <stdio.h>
#include <string.h>

static const char GOOD[] = "name: small\n"                      // line 1
                           "models:\n"                          // 2
                           "  - target: a\n"                    // 3
                           "    draft: b\n"                     // 4
                           "datasets:\n"                        // 5
                           "  - name: d\n"                      // 6
                           "    limit: 20\n"                    // 7
                           "hardware:\n"                        // 8
                           "  threads: [1, 2]\n"                // 9
                           "generation:\n"                      // 10
                           "  seed: 1..3\n"                     // 11
                           "methods:\n"                         // 12
                           "  - name: lookahead\n"              // 13
                           "    matrix:\n"                      // 14
                           "      W: [5, 10]\n"                 // 15
                           "    zip: {N: [5, 7], G: [5, 10]}\n" // 16
                           "    exclude where: W > G\n"         // 17
                           "measurement:\n"                     // 18
                           "  passes: 3\n";                     // 19

static void parse(Experiment *x, const char *text, const ExperimentChanges *changes) {
    Error e = {0};
    if (!experiment_parse(x, text, strlen(text), "x.yaml", changes, &e)) fail_msg("%s", e.text);
}

static void all_keys(void **state) {
    (void)state;
    Experiment x;
    parse(
        &x,
        "name: n\nabout: words\ntables: [t, u]\nplots: p\nchosen: [one thing]\n"
        "models:\n"
        "  - {name: m, target: a, draft: b, adapter: c, heads: d, inflate: 1b, inflate_first: 2, "
        "inflate_draft: 68m, "
        "seed: 9223372036854775807}\n"
        "  - {reference: reference}\n  - {synthesise: tiny, seed: 5}\n  - dir\n"
        "datasets:\n"
        "  - {name: d, path: p, format: jsonl, split: test, template: none, limit: 3, turns: 2, "
        "order: shuffled, seed: 4}\n"
        "  - {name: mix, parts: [d, e], order: by-task, consecutive: 20}\n  - e\n"
        "hardware: {device: [cpu, null], math: fast, compute: bf16, threads: 3, layout: batch, merge: off, "
        "sliding_window: off}\n"
        "generation: {max_tokens: 9, temperature: [0, 0.5], top_k: 3, top_p: 0.5, seed: 8, ignore_eos: on}\n"
        "methods:\n  - {name: jacobi, label: J, matrix: {m: 2..4}, zip: [{start: [pad]}, {seed: [1]}], "
        "exclude where: [m == 2, m == 3]}\n  - autoregressive\n"
        "measurement: {warmup: 0, passes: 4, most_passes: 9, stop: timing, timing_error: 0.5, "
        "time_limit: 60}\n",
        NULL);
    const ModelSpec *m = x.models;
    assert_string_equal(x.about, "words");
    assert_true(x.tables.count == 2 && x.plots.count == 1 && x.chosen.count == 1);
    assert_string_equal(x.tables.items[1], "u");
    assert_int_equal(x.model_count, 4);
    assert_true(!strcmp(m->name, "m") && !strcmp(m->target, "a") && !strcmp(m->draft, "b"));
    assert_true(!strcmp(m->adapters[ADAPTER_ANY], "c") && !strcmp(m->adapters[ADAPTER_FOR_MEDUSA], "d") &&
                !strcmp(m->inflate, "1b"));
    assert_string_equal(m->inflate_draft, "68m");
    assert_int_equal(m->inflate_first, 2);
    assert_true(m->seed == INT64_MAX && m[2].seed == 5 && m[1].seed == 0);
    assert_true(!strcmp(m[1].name, "reference") && !m[1].target && !strcmp(m[2].synthesise, "tiny"));
    assert_true(!strcmp(m[3].target, "dir") && !strcmp(m[3].name, "dir"));
    const DatasetSpec *d = x.datasets;
    assert_int_equal(x.dataset_count, 3);
    assert_true(!strcmp(d->path, "p") && !strcmp(d->format, "jsonl") && !strcmp(d->split, "test"));
    assert_true(!strcmp(d->template, "none") && d->limit == 3 && d->turns == 2 && d->seed == 4);
    assert_true(d->order == ORDER_SHUFFLED && d[1].order == ORDER_BY_TASK && d[1].consecutive == 20);
    assert_true(d[1].parts.count == 2 && d[2].turns == 1 && d[2].limit == 0 && !d[2].path);
    assert_int_equal(yaml_find(x.settings[0], "device")->count, 2);
    assert_int_equal(yaml_find(x.settings[1], "temperature")->count, 2);
    assert_int_equal(x.method_count, 2);
    assert_string_equal(x.methods[0].info->name, "jacobi");
    assert_string_equal(x.methods[0].label, "J");
    assert_int_equal(yaml_find(x.methods[0].matrix, "m")->count, 3);
    assert_true(x.methods[0].zip->count == 2 && x.methods[0].exclude->count == 2 && !x.methods[1].matrix);
    const Measurement *t = &x.measurement;
    assert_true(t->warmup == 0 && t->passes == 4 && t->most_passes == 9 && t->stop == STOP_TIMING);
    assert_true(t->timing_error == 0.5 && t->time_limit == 60);
    experiment_release(&x);
    experiment_release(&x); // takes an empty one
}

// GOOD with one piece replaced, and the message for it.
static void expect_error(const char *was, const char *is, const char *want) {
    const char *at = strstr(GOOD, was);
    Text text = {0};
    Experiment x;
    Error e = {0};
    assert_non_null(at);
    text_printf(&text, "%.*s%s%s", (int)(at - GOOD), GOOD, is, at + strlen(was));
    if (experiment_parse(&x, text_get(&text), text.length, "x.yaml", NULL, &e))
        fail_msg("'%s' was taken", is);
    if (strcmp(e.text, want) != 0) fail_msg("'%s': wanted '%s', got '%s'", is, want, e.text);
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_null(x.tree.root);
    text_release(&text);
}

static void wrong_keys(void **state) {
    (void)state;
    expect_error("models:", "modles:", "x.yaml:2:1: a config has no key 'modles'; did you mean 'models'?");
    expect_error(
        "measurement:", "elephants:",
        "x.yaml:18:1: a config has no key 'elephants'; there are name, about, tables, plots, chosen, "
        "models, datasets, hardware, generation, methods, measurement, small, smoke");
    expect_error("draft:", "darft:", "x.yaml:4:5: a model has no key 'darft'; did you mean 'draft'?");
    expect_error("limit:", "limits:", "x.yaml:7:5: a dataset has no key 'limits'; did you mean 'limit'?");
    expect_error("matrix:", "matrx:", "x.yaml:14:5: a method has no key 'matrx'; did you mean 'matrix'?");
    expect_error("passes:", "pases:", "x.yaml:19:3: measurement has no key 'pases'; did you mean 'passes'?");
    expect_error(
        "threads:", "thread:", "x.yaml:9:3: hardware has no parameter 'thread'; did you mean 'threads'?");
    expect_error("seed:", "sede:", "x.yaml:11:3: generation has no parameter 'sede'; did you mean 'seed'?");
    expect_error(
        "threads:", "seed:",
        "x.yaml:9:3: hardware has no parameter 'seed'; configs/README.md and 'outpace methods' list them");
    expect_error("W:", "Ww:", "x.yaml:15:7: method 'lookahead' has no parameter 'Ww'; did you mean 'W'?");
    expect_error(
        "W:", "elephants:",
        "x.yaml:15:7: method 'lookahead' has no parameter 'elephants'; configs/README.md and 'outpace "
        "methods' list them");
    expect_error("lookahead", "lookahed",
                 "x.yaml:13:11: there is no method 'lookahed'; did you mean 'lookahead'?");
    expect_error(
        "lookahead", "lookahead:W=1",
        "x.yaml:13:11: 'lookahead:W=1' has parameters in its name and axes: move the former to 'matrix'");
    expect_error("name: lookahead\n    matrix:\n      W: [5, 10]\n    zip: {N: [5, 7], G: [5, 10]}",
                 "name: lookahead:Ww=1", "x.yaml:13:11: there is no parameter 'Ww'; did you mean 'W'?");
    expect_error("name: small\n", "", "x.yaml:1:1: a config needs 'name': add a line 'name: ...'");
    expect_error("name: d\n    ", "", "x.yaml:6:5: a dataset needs 'name': add a line 'name: ...'");
    expect_error(GOOD, "- 1", "x.yaml:1:1: a config must be a map, not a list: lines such as 'name: ...'");
    expect_error(GOOD, "word", "x.yaml:1:1: a config must be a map: lines such as 'name: ...'");
}

static void wrong_values(void **state) {
    (void)state;
    expect_error("small", "", "x.yaml:1:6: 'name' is empty: give it a value or take the line away");
    expect_error("small", "[a]", "x.yaml:1:7: 'name' must be one value");
    expect_error("20", "-1", "x.yaml:7:12: 'limit' is '-1', must be a whole number from 0 to 16777216");
    expect_error("20", "2.5", "x.yaml:7:12: 'limit' is '2.5', must be a whole number from 0 to 16777216");
    expect_error("20", "2x", "x.yaml:7:12: 'limit' is '2x', must be a whole number from 0 to 16777216");
    expect_error("20", "20\n    order: wild",
                 "x.yaml:8:12: 'order' is 'wild', must be one of written, shuffled, by-task, first-shuffled");
    expect_error("20", "20\n    template: vicunia",
                 "x.yaml:8:15: there is no template 'vicunia'; did you mean 'vicuna'?");
    expect_error("20", "20\n    seed: -5",
                 "x.yaml:8:11: 'seed' is '-5', must be a whole number from 0 to 2^63 - 1");
    expect_error("20", "20\n    parts: {a: 1}", "x.yaml:8:12: 'parts' must be a list: [one, two]");
    expect_error("20", "20\n    parts: [a]\n    path: b",
                 "x.yaml:6:5: a dataset has a path or parts, not both: take one away");
    expect_error("20", "20\n  - d",
                 "x.yaml:8:5: two datasets are called 'd': give one another name and its path, or parts");
    expect_error(
        "draft: b\ndatasets:\n  - name: d\n",
        "template: vicuna\n  - e\ndatasets:\n  - name: d\n    template: model\n",
        "x.yaml:7:5: dataset 'd' takes the model's template, and model 'e' has none: give it a 'template'");
    expect_error("draft: b", "template: vicunia",
                 "x.yaml:4:15: there is no template 'vicunia'; did you mean 'vicuna'?");
    expect_error("draft: b", "reference: b",
                 "x.yaml:3:5: a model is one of target: DIR, reference: NAME and synthesise: SHAPE; take the "
                 "others away");
    expect_error(
        "target: a\n    ", "",
        "x.yaml:3:5: a model is one of target: DIR, reference: NAME and synthesise: SHAPE; give one");
    expect_error("draft: b", "draft_device: cuda:1",
                 "x.yaml:3:5: draft_device is 'cuda:1', but the model has no draft");
    expect_error("draft: b", "draft: b\n  - a",
                 "x.yaml:5:5: two models are called 'a': give one another name");
    expect_error("\n  - target: a\n    draft: b", " []",
                 "x.yaml:2:9: 'models' is empty: it needs at least a model");
    expect_error("target: a\n    draft: b", "synthesise: tiny\n    inflate: 1b",
                 "x.yaml:3:5: a model to synthesise is not inflated: give its shape in synthesise");
    expect_error("target: a\n    draft: b", "target: a\n    draft: b\n    inflate: 500m",
                 "x.yaml:3:5: a draft beside 'inflate: 500m' costs next to nothing as it is: give "
                 "inflate_draft, a shape of about a tenth of it (50m for 500m), or none");
    expect_error("target: a\n    draft: b", "target: a\n    draft: b\n    inflate_draft: 50m",
                 "x.yaml:3:5: inflate_draft is for the draft of an inflated model: give inflate");
    expect_error("target: a\n    draft: b", "target: a\n    inflate_first: 2",
                 "x.yaml:3:5: inflate_first is for the layers of an inflated model: give inflate");
    expect_error("passes: 3", "most_passes: 3\n  passes: 4",
                 "x.yaml:19:3: most_passes is 3, must be at least passes, 4");
    expect_error("passes: 3", "timing_error: .nan",
                 "x.yaml:19:17: 'timing_error' is '.nan', must be a number from 1e-06 to 1");
}

static void wrong_axes(void **state) {
    (void)state;
    expect_error("[5, 10]", "[5, 1000]", "x.yaml:15:14: 'W' is '1000', must be a whole number from 1 to 256");
    expect_error("[5, 10]", "250..260", "x.yaml:15:10: 'W' is '257', must be a whole number from 1 to 256");
    expect_error("[5, 10]", "[5, x]", "x.yaml:15:14: 'W' is 'x', must be a whole number from 1 to 256");
    expect_error(
        "[5, 10]", "5..2",
        "x.yaml:15:10: '5..2' is not a range: write 2..14, 2..14+2 or 1..64*2, the smaller number first");
    expect_error("[1, 2]", "[1, 2000]",
                 "x.yaml:9:16: 'threads' is '2000', must be a whole number from 0 to 1024");
    expect_error("\n  threads: [1, 2]", " 3",
                 "x.yaml:8:11: 'hardware' must be a map: lines such as 'device: ...'");
    expect_error("\n      W: [5, 10]", " 5",
                 "x.yaml:14:13: 'matrix' must be a map of axes: {k: [1, 5], w: 2..14+2}");
    expect_error("{N: [5, 7], G: [5, 10]}", "[5]",
                 "x.yaml:16:11: 'zip' must be a map of axes: {k: [1, 5], w: 2..14+2}");
    expect_error("G: [5, 10]", "G: [5, 10, 15]",
                 "x.yaml:16:25: 'G' has 3 values, 'N' 2: zipped axes have as many");
    expect_error("G: [5, 10]", "W: [5, 10]",
                 "x.yaml:15:10: 'W' is an axis of this method twice: take one away");
    expect_error("{N: [5, 7], G: [5, 10]}", "[{N: 5}, {N: 7}]",
                 "x.yaml:16:15: 'N' is an axis of this method twice: take one away");
    expect_error("W > G", "{W: 5}",
                 "x.yaml:17:20: 'exclude where' must be a condition, such as W > 15, or a list of them");
    expect_error("W > G", "[[W > G]]",
                 "x.yaml:17:20: 'exclude where' must be a condition, such as W > 15, or a list of them");
}

static void too_many(void **state) {
    (void)state;
    Text text = {0}, want = {0};
    for (int i = 0; i <= EXPERIMENT_MODELS; i++) text_printf(&text, "%sm%d", i ? ", " : "[", i);
    text_puts(&text, "]");
    expect_error("\n  - target: a\n    draft: b",
                 (text_printf(&want, " %s", text_get(&text)), text_get(&want)),
                 "x.yaml:2:160: 'models' has more than 32 items");
    text_clear(&text);
    for (int i = 0; i <= WORDS_MAX; i++) text_printf(&text, "%s%d", i ? ", " : "tables: [", i);
    text_puts(&text, "]\nmodels:");
    expect_error("models:", text_get(&text), "x.yaml:2:256: 'tables' has more than 64 items");
    text_release(&text);
    text_release(&want);
}

// --- the command line ------------------------------------------------------------------------------------

static void sets(void **state) {
    (void)state;
    Words list = {{"datasets.d.limit=7", "methods.lookahead.matrix.W=[1, 2, 3]", "generation.max_tokens=64",
                   "measurement={passes: 9}", "models.0.draft=other", "datasets.0.limit=8"},
                  6};
    Experiment x;
    parse(&x, GOOD, &(ExperimentChanges){.sets = &list});
    assert_int_equal(x.datasets[0].limit, 8); // the later one holds
    assert_int_equal(yaml_find(x.methods[0].matrix, "W")->count, 3);
    assert_string_equal(yaml_find(x.settings[1], "max_tokens")->first->text, "64");
    assert_int_equal(yaml_find(x.settings[1], "seed")->count, 3);
    assert_int_equal(x.measurement.passes, 9);
    assert_string_equal(x.models[0].draft, "other");
    assert_string_equal(x.models[0].target, "a");
    experiment_release(&x);
}

static void own_model(void **state) {
    (void)state;
    static const struct {
        const char *model, *target, *draft, *adapter;
    } cases[] = {
        {"target=dir", "dir", NULL, NULL},
        {"target=dir,draft=small,adapter=x", "dir", "small", "x"},
        {"target=it's: [odd] #1,draft=a=b", "it's: [odd] #1", "a=b", NULL},
        {"adapter=x,target=1..3", "1..3", NULL, "x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Experiment x;
        parse(&x, GOOD, &(ExperimentChanges){.model = cases[i].model});
        const ModelSpec *m = x.models;
        assert_int_equal(x.model_count, 1);
        assert_string_equal(m->target, cases[i].target);
        assert_true(cases[i].draft ? !strcmp(m->draft, cases[i].draft) : !m->draft);
        assert_true(cases[i].adapter ? !strcmp(m->adapters[ADAPTER_ANY], cases[i].adapter)
                                     : !m->adapters[ADAPTER_ANY]);
        experiment_release(&x);
    }
}

static void wrong_changes(void **state) {
    (void)state;
    static const struct {
        const char *set, *model, *want;
    } cases[] = {
        {"generation", NULL, "--set is 'generation', must be written path=value: generation.max_tokens=64"},
        {"generation.sede=1", NULL,
         "--set generation.sede:1:1: generation has no parameter 'sede'; did you mean 'seed'?"},
        {"generation.seed=[1, x]", NULL,
         "--set generation.seed:1:5: 'seed' is 'x', must be a whole number from 0 to 1073741824"},
        {"methods.jacobi.label=x", NULL,
         "x.yaml:13:3: this list has no 'jacobi': name one of its 1 items, or its number from 0"},
        {NULL, "dir", "--model has 'dir', must be target=DIR[,draft=DIR,...]"},
        {NULL, "target=a,", "--model has '', must be target=DIR[,draft=DIR,...]"},
        {NULL, "traget=a", "--model: models.traget:1:1: a model has no key 'traget'; did you mean 'target'?"},
        {NULL, "draft=a",
         "--model: models:1:1: a model is one of target: DIR, reference: NAME and synthesise: SHAPE; give "
         "one"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Words list = {{cases[i].set}, cases[i].set != NULL};
        Experiment x;
        Error e = {0};
        const ExperimentChanges changes = {&list, cases[i].model, NULL};
        if (experiment_parse(&x, GOOD, strlen(GOOD), "x.yaml", &changes, &e)) fail_msg("%zu was taken", i);
        if (strcmp(e.text, cases[i].want) != 0) fail_msg("wanted '%s', got '%s'", cases[i].want, e.text);
    }
}

// --- anything at all -------------------------------------------------------------------------------------

// A good file with some bytes spoiled: taken, or one line that names the file.
static void spoiled(void **state) {
    (void)state;
    static const char marks[] = "[]{}:,-&*!'\"# \n01ax.+";
    Random r = test_random(1);
    int taken = 0;
    for (int round = 0; round < 5000; round++) {
        char text[sizeof GOOD];
        memcpy(text, GOOD, sizeof GOOD);
        for (int n = test_between(&r, 1, 4); n > 0; n--)
            text[test_between(&r, 0, (int)sizeof GOOD - 2)] =
                test_between(&r, 0, 9) ? marks[test_between(&r, 0, (int)sizeof marks - 2)]
                                       : (char)test_between(&r, 1, 255);
        Experiment x;
        Error e = {0};
        bool ok = experiment_parse(&x, text, sizeof GOOD - 1, "x.yaml", NULL, &e);
        if (!ok && (e.kind != ERROR_INPUT || strncmp(e.text, "x.yaml:", 7) != 0)) fail_msg("'%s'", e.text);
        taken += ok;
        experiment_release(&x);
    }
    if (taken < 50 || taken > 4000) fail_msg("%d of 5000 were taken", taken);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_keys),   cmocka_unit_test(wrong_keys),    cmocka_unit_test(wrong_values),
        cmocka_unit_test(wrong_axes), cmocka_unit_test(too_many),      cmocka_unit_test(sets),
        cmocka_unit_test(own_model),  cmocka_unit_test(wrong_changes), cmocka_unit_test(spoiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
