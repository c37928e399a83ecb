// Whatever allocation or system call fails while a model is inflated: one error, nothing alive, and nothing
// half-done in its place: the directory is not there, or empty.
#include "tests/support/check.h"

#include "engine/model/make/inflate.h"
#include "engine/model/model.h"
#include "engine/model/make/synth.h"
#include "tests/support/fault.h"
#include "tests/support/folder.h"

#include <unistd.h>

static const char *small(void *folder) { return folder_path(folder, "small"); }
static const char *large(void *folder) { return folder_path(folder, "large"); }

static bool inflate(void *folder, Error *e) {
    InflateOptions o = {
        .small = small(folder), .shape = folder_path(small(folder), "config.json"), .shard_bytes = 1500};
    return model_inflate(large(folder), &o, e);
}

static void whole_or_nothing(void *folder, bool ok) {
    Model m;
    ModelWeights weights;
    Error e = {0};
    bool there = access(folder_path(large(folder), "config.json"), F_OK) == 0;
    if (ok != there) fail_msg("%s, but config.json is %s", ok ? "made" : "failed", there ? "there" : "not");
    if (there && !model_open(&m, &weights, large(folder), &e)) fail_msg("%s", e.text);
    if (there) model_close(&weights);
    else if (access(large(folder), F_OK) == 0)
        fail_msg("%d files are left behind", folder_count(large(folder)));
    folder_remove(large(folder));
}

// A program that ended may leave files, but no config.json: that comes last.
static void whole_or_no_model(void *folder, bool ok) {
    if (!ok && access(folder_path(large(folder), "config.json"), F_OK) == 0)
        fail_msg("failed, but there is a model");
    if (ok) whole_or_nothing(folder, ok);
    else folder_remove(large(folder));
}

static void every_failure(void **state) {
    static const char *const sets[] = {"num_hidden_layers=1", "vocab_size=40", "hidden_size=8",
                                       "intermediate_size=8"};
    SynthOptions o = {.shape = "tiny", .sets = sets, .set_count = 4};
    Error e = {0};
    if (!model_synth(small(*state), &o, &e)) fail_msg("%s", e.text);
    assert_true(fault_each(FAULT_ALLOCATION, inflate, whole_or_no_model, *state) > 100);
    assert_true(fault_each_model_call(inflate, whole_or_nothing, *state) > 30);
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_failure, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
