// An inflated model is made once and found again; a different or half-done one is made again.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/model/adapter.h"
#include "engine/model/model.h"
#include "engine/model/synth.h"
#include "harness/models/models.h"
#include "tests/support/folder.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool count_calls(void *state, const char *what, double share) {
    (void)what, (void)share;
    ++*(int *)state;
    return true;
}

// o.small is a name in the folder. *made: whether weights were written.
static char *get(const char *folder, InflateOptions o, bool *made) {
    Error e = {0};
    int calls = 0;
    o.small = folder_path(folder, o.small);
    o.shape = "tiny";
    o.progress = (Progress){count_calls, &calls};
    char *dir = inflated_open(folder_path(folder, "cache"), &o, &e);
    if (!dir) fail_msg("%s", e.text);
    *made = calls > 0;
    return dir;
}

static void make_small(const char *folder, const char *name, uint64_t seed) {
    static const char *const sets[] = {"num_hidden_layers=2", "vocab_size=300"};
    SynthOptions o = {.shape = "tiny", .sets = sets, .set_count = 2, .seed = seed};
    Error e = {0};
    if (!model_synth(folder_path(folder, name), &o, &e)) fail_msg("%s", e.text);
}

static void made_once(void **state) {
    const char *folder = *state;
    bool made;
    make_small(folder, "small", 1);
    make_small(folder, "other", 2);
    InflateOptions o = {.small = "small"};
    char *first = get(folder, o, &made);
    assert_true(made);
    char *again = get(folder, o, &made);
    assert_true(!made && strcmp(first, again) == 0);
    o.seed = 1;
    char *seeded = get(folder, o, &made);
    assert_true(made && strcmp(first, seeded) != 0);
    char *other = get(folder, (InflateOptions){.small = "other"}, &made);
    assert_true(made && strcmp(first, other) != 0);
    o.seed = 0;
    assert_int_equal(unlink(folder_path(first, "config.json")), 0); // as a kill leaves it, nearly
    assert_int_equal(unlink(folder_path(first, "model.safetensors")), 0);
    mem_free(again);
    again = get(folder, o, &made);
    assert_true(made && strcmp(first, again) == 0);
    mem_free(first);
    mem_free(again);
    mem_free(seeded);
    mem_free(other);
}

static void adapters_too(void **state) {
    const char *folder = *state;
    Model small, large;
    Adapter a;
    AdapterKind kind = {ADAPTER_KANGAROO, 1, 1, 0, {0}};
    Error e = {0};
    bool made;
    make_small(folder, "small", 1);
    assert_true(model_open(&small, folder_path(folder, "small"), &e));
    assert_true(adapter_synth(folder_path(folder, "a"), &small, &kind, 1, false, &e));
    InflateOptions o = {.small = "small"};
    char *model = get(folder, o, &made);
    o.adapter = folder_path(folder, "a");
    char *adapter = get(folder, o, &made);
    assert_true(made && strcmp(model, adapter) != 0);
    mem_free(get(folder, o, &made));
    assert_false(made);
    assert_true(model_open(&large, model, &e) && large.stand_in[0]);
    if (!adapter_open(&a, &large, adapter, &e)) fail_msg("%s", e.text);
    adapter_close(&a);
    model_close(&large);
    model_close(&small);
    mem_free(model);
    mem_free(adapter);
}

// Processes that ask at once: each finds it whole, whoever made it.
static void asked_for_at_once(void **state) {
    const char *folder = *state;
    enum { ASKERS = 4 };
    pid_t askers[ASKERS];
    make_small(folder, "small", 1);
    for (int i = 0; i < ASKERS; i++) {
        askers[i] = fork();
        if (askers[i] != 0) continue;
        Model m;
        InflateOptions o = {.small = folder_path(folder, "small"), .shape = "tiny"};
        char *dir = inflated_open(folder_path(folder, "cache"), &o, NULL);
        bool ok = dir && model_open(&m, dir, NULL);
        _exit(!ok);
    }
    for (int i = 0; i < ASKERS; i++) {
        int status;
        assert_int_equal(waitpid(askers[i], &status, 0), askers[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void refused(void **state) {
    Error e = {0};
    InflateOptions o = {.small = folder_path(*state, "nothing"), .shape = "tiny"};
    assert_null(inflated_open(folder_path(*state, "cache"), &o, &e));
    assert_non_null(strstr(e.text, "there is no directory"));
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(made_once, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(adapters_too, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(asked_for_at_once, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refused, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
