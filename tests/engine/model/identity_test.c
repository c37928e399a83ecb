// One model has one name, whatever is done to its files' place; another content has another.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include "engine/base/memory.h"
#include "engine/model/model.h"
#include "engine/model/make/synth.h"

#include <string.h>

static void synth(const char *dir, uint64_t seed) {
    Error e = {0};
    static const char *const larger[] = {"vocab_size=2048", "hidden_size=128"};
    SynthOptions o = {.shape = "tiny", .seed = seed, .sets = larger, .set_count = 2};
    if (!model_synth(dir, &o, &e)) fail_msg("%s", e.text);
}

static void identity_of(const char *dir, char out[SHA256_TEXT]) {
    Model m;
    ModelWeights weights;
    Error e = {0};
    if (!model_open(&m, &weights, dir, &e) || !model_identity(&weights, dir, out, &e)) fail_msg("%s", e.text);
    model_close(&weights);
}

static void copies_are_one(void **state) {
    char first[SHA256_TEXT], second[SHA256_TEXT], other[SHA256_TEXT];
    const char *a = folder_path(*state, "a"), *b = folder_path(*state, "b"), *c = folder_path(*state, "c");
    synth(a, 1);
    scratch_copy(a, b);
    synth(c, 2);
    identity_of(a, first);
    identity_of(b, second);
    identity_of(c, other);
    assert_string_equal(first, second);
    assert_string_not_equal(first, other);
}

// A byte of the file's content turned over, at the file's end and at the spots between.
static void every_spot_counts(void **state) {
    char first[SHA256_TEXT], changed[SHA256_TEXT];
    const char *dir = folder_path(*state, "m");
    size_t n;
    synth(dir, 1);
    identity_of(dir, first);
    char *bytes = scratch_read(dir, "model.safetensors", &n);
    assert_true(n > (size_t)IDENTITY_SAMPLES * IDENTITY_BYTES); // so that not all of it is read
    size_t last = n - IDENTITY_BYTES, step = last / (IDENTITY_SAMPLES - 1);
    size_t spots[] = {n - 1, last, step * (IDENTITY_SAMPLES - 2), step * 2000 + IDENTITY_BYTES - 1};
    for (int i = 0; i < 4; i++) {
        bytes[spots[i]] ^= 1;
        scratch_write(dir, "model.safetensors", bytes, n);
        identity_of(dir, changed);
        if (strcmp(first, changed) == 0) fail_msg("byte %zu of %zu may be another", spots[i], n);
        bytes[spots[i]] ^= 1;
    }
    scratch_write(dir, "model.safetensors", bytes, n);
    identity_of(dir, changed);
    assert_string_equal(first, changed);
    mem_free(bytes);
}

static void the_configuration_counts(void **state) {
    char first[SHA256_TEXT], changed[SHA256_TEXT];
    const char *dir = folder_path(*state, "m");
    synth(dir, 1);
    identity_of(dir, first);
    json_t *config = scratch_json(dir, "config.json");
    json_object_set_new(config, "rms_norm_eps", json_real(3e-5));
    scratch_write_json(dir, "config.json", config);
    json_decref(config);
    identity_of(dir, changed);
    assert_string_not_equal(first, changed);
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {IN_FOLDER(copies_are_one), IN_FOLDER(every_spot_counts),
                                       IN_FOLDER(the_configuration_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
