// Whatever allocation or system call fails while a model is opened or made: an error, nothing left behind,
// and no directory that looks like a model without being one.
#include "tests/support/check.h"

#include "engine/model/model.h"
#include "engine/model/make/synth.h"
#include "tests/support/fault.h"
#include "tests/support/folder.h"

#include <stdio.h>
#include <unistd.h>

static const char *dir(void *folder) { return folder_path(folder, "model"); }

// As small as one can be, in two shards: each failure costs a run.
static bool synth(void *state, Error *e) {
    static const char *const sets[] = {"num_hidden_layers=1", "vocab_size=40", "hidden_size=8",
                                       "intermediate_size=8"};
    return model_synth(
        dir(state), &(SynthOptions){.shape = "tiny", .sets = sets, .set_count = 4, .shard_bytes = 1500}, e);
}

static bool open_and_close(void *state, Error *e) {
    Model m;
    ModelWeights weights;
    if (!model_open(&m, &weights, dir(state), e)) return false;
    model_close(&weights);
    return true;
}

// config.json comes last: where it stands, the model is whole.
static void whole_or_no_model(void *state, bool ok) {
    Error e = {0};
    char config[128];
    snprintf(config, sizeof config, "%s/config.json", dir(state));
    bool there = access(config, F_OK) == 0;
    if (ok && !there) fail_msg("made, but there is no config.json");
    if (there && !open_and_close(state, &e)) fail_msg("%s", e.text);
}

static void making(void **state) {
    assert_true(fault_each(FAULT_ALLOCATION, synth, whole_or_no_model, *state) > 50);
    assert_true(fault_each_model_call(synth, whole_or_no_model, *state) > 20);
}

static void opening(void **state) {
    Error e = {0};
    if (!synth(*state, &e)) fail_msg("%s", e.text);
    assert_true(fault_each(FAULT_ALLOCATION, open_and_close, NULL, *state) > 100);
    assert_true(fault_each_model_call(open_and_close, NULL, *state) > 5);
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(making, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(opening, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
