// Which weights a setup's device rounds as it loads them; files that change before a setup opens them.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "harness/run/plan.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void rounding(void **state) {
    static const struct {
        const char *device;
        Dtype weights;
        ComputeChoice compute;
        const char *want;
    } rows[] = {
        {"cuda", DTYPE_F16, CHOOSE_BF16, "f16 to bf16"}, {"cuda:1", DTYPE_BF16, CHOOSE_F16, "bf16 to f16"},
        {"cuda", DTYPE_F16, CHOOSE_WEIGHTS, NULL},       {"cuda", DTYPE_F16, CHOOSE_F32, NULL},
        {"cuda", DTYPE_F32, CHOOSE_BF16, NULL},          {"cpu", DTYPE_F16, CHOOSE_BF16, NULL},
        {"null", DTYPE_F16, CHOOSE_BF16, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Inputs in = {.experiment = NULL};
        Settings s = {.engine.compute = rows[i].compute};
        in.models[0].model.dtype = rows[i].weights;
        snprintf(s.engine.device, sizeof s.engine.device, "%s", rows[i].device);
        const char *got = inputs_rounding(&in, 0, &s), *want = rows[i].want;
        if (!got != !want || (got && strcmp(got, want)))
            fail_msg("row %zu: got %s, wanted %s", i, got ? got : "nothing", want ? want : "nothing");
    }
}

// The hash of a run whose method reads the folder's file `paths`.
static void hash_of_run(const char *folder, char out[SHA256_TEXT]) {
    Experiment x;
    Sweep sweep;
    Schedule schedule;
    Inputs in;
    Error e = {0};
    LOCAL_TEXT config = {0};
    text_printf(&config,
                "name: x\nmodels: [{target: %s/tiny}]\ndatasets: [{name: own, path: %s/own.txt}]\n"
                "hardware: {device: \"null\"}\nmethods: [{name: recycling, matrix: {tree: %s/paths}}]\n",
                folder, folder, folder);
    bool ok = experiment_parse(&x, text_get(&config), config.length, "x.yaml", NULL, &e) &&
              sweep_expand(&x, &sweep, &e) && schedule_make(&x, &sweep, &schedule, &e) &&
              inputs_open(&in, &x, &schedule, "here", NULL, &e);
    if (!ok) fail_msg("%s", e.text);
    memcpy(out, in.hash, SHA256_TEXT);
    inputs_release(&in);
    schedule_release(&schedule);
    sweep_release(&sweep);
    experiment_release(&x);
}

// A run whose tree's file has changed is another run.
static void files_of_methods(void **state) {
    char first[SHA256_TEXT], same[SHA256_TEXT], other[SHA256_TEXT];
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    folder_write(*state, "own.txt", "a text\n");
    folder_write(*state, "paths", "0;1\n");
    hash_of_run(*state, first);
    hash_of_run(*state, same);
    assert_string_equal(first, same);
    folder_write(*state, "paths", "0;1;2\n");
    hash_of_run(*state, other);
    assert_string_not_equal(first, other);
}

static void changes_before_opening(void **state) {
    static const char CONFIG[] = "name: x\nmodels: [{target: tiny, draft: draft, adapter: kangaroo}]\n"
                                 "datasets: [{name: own, path: own.txt}]\nhardware: {device: cpu}\n"
                                 "methods: [jacobi]\n";
    static const char *const FILES[] = {"tiny/model.safetensors", "draft/model.safetensors",
                                        "kangaroo/model.safetensors"};
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "draft");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "model", "adapter", "tiny", "kangaroo");
    child_release(&c);
    folder_write(*state, "own.txt", "a text\n");
    assert_int_equal(chdir(*state), 0);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        Experiment x;
        Sweep sweep;
        Schedule schedule;
        Inputs in;
        Error e = {0};
        bool ok = experiment_parse(&x, CONFIG, strlen(CONFIG), "x.yaml", NULL, &e) &&
                  sweep_expand(&x, &sweep, &e) && schedule_make(&x, &sweep, &schedule, &e) &&
                  inputs_open(&in, &x, &schedule, "here", NULL, &e) && inputs_are_unchanged(&in, 0, &e);
        if (!ok) fail_msg("%s", e.text);
        char *bytes;
        size_t n;
        assert_true(file_read(FILES[i], 1 << 24, &bytes, &n, &e) && file_write(FILES[i], bytes, n, &e));
        mem_free(bytes);
        if (inputs_are_unchanged(&in, 0, &e) || !strstr(e.text, FILES[i]))
            fail_msg("wanted '%s' to have changed, got '%s'", FILES[i], e.text);
        inputs_release(&in);
        schedule_release(&schedule);
        sweep_release(&sweep);
        experiment_release(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding),
        cmocka_unit_test_setup_teardown(files_of_methods, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(changes_before_opening, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
