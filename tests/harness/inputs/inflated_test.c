// Models of the cache are made once and found again, by whichever process asks; a different or half-done one
// is made again. Processes that use a model share its weights.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/decode/decode.h"
#include "engine/engine.h"
#include "engine/model/adapter.h"
#include "engine/model/model.h"
#include "engine/model/make/synth.h"
#include "harness/inputs/models.h"
#include "tests/support/folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
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
    ModelWeights small_weights, large_weights;
    Adapter a;
    AdapterKind kind = {.variant = ADAPTER_KANGAROO, .exit_layer = 1, .heads = 1};
    Error e = {0};
    bool made;
    make_small(folder, "small", 1);
    assert_true(model_open(&small, &small_weights, folder_path(folder, "small"), &e));
    assert_true(adapter_synth(folder_path(folder, "a"), &small, &kind, 1, false, &e));
    InflateOptions o = {.small = "small"};
    char *model = get(folder, o, &made);
    o.adapter = folder_path(folder, "a");
    char *adapter = get(folder, o, &made);
    assert_true(made && strcmp(model, adapter) != 0);
    mem_free(get(folder, o, &made));
    assert_false(made);
    assert_true(model_open(&large, &large_weights, model, &e) && large.stand_in[0]);
    if (!adapter_open(&a, &large, adapter, &e)) fail_msg("%s", e.text);
    adapter_close(&a);
    model_close(&large_weights);
    model_close(&small_weights);
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
        ModelWeights weights;
        InflateOptions o = {.small = folder_path(folder, "small"), .shape = "tiny"};
        char *dir = inflated_open(folder_path(folder, "cache"), &o, NULL);
        bool ok = dir && model_open(&m, &weights, dir, NULL);
        _exit(!ok);
    }
    for (int i = 0; i < ASKERS; i++) {
        int status;
        assert_int_equal(waitpid(askers[i], &status, 0), askers[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

// --- made once, by processes that ask at once
// ----------------------------------------------------------------

// A model that a config makes: inflated, or random.
static bool make_model(const char *folder, bool random, Progress progress) {
    YamlNode at = {.file = "x.yaml"};
    ModelSpec spec = {.at = &at, .seed = 3};
    ModelFiles files;
    if (random) spec.synthesise = "tiny";
    else spec.target = folder_path(folder, "small"), spec.inflate = "tiny";
    const char *cache = folder_path(folder, "cache");
    Model m;
    ModelWeights weights;
    bool ok = model_files_find(&spec, cache, &files, NULL) &&
              model_files_make(&spec, cache, &files, &progress, NULL) &&
              model_open(&m, &weights, files.target, NULL);
    if (ok) model_close(&weights);
    model_files_release(&files);
    return ok;
}

static bool tell_and_pause(void *state, const char *what, double share) {
    (void)what, (void)share;
    if (write(*(int *)state, "m", 1) == 1) pause();
    return true;
}

static bool tell(void *state, const char *what, double share) {
    (void)what, (void)share;
    return write(*(int *)state, "m", 1) == 1;
}

static pid_t start_maker(const char *folder, bool random, Progress progress) {
    pid_t pid = fork();
    if (pid == 0) _exit(!make_model(folder, random, progress));
    return pid;
}

// The first maker is killed in the middle of its work, while others wait: one of these makes the model,
// whole, and the others find it.
static void a_killed_maker_blocks_nobody(void **state) {
    enum { WAITERS = 3 };
    for (int random = 0; random < 2; random++) {
        int said[2], made[2], status;
        char byte;
        pid_t waiters[WAITERS];
        if (!random) make_small(*state, "small", 1);
        assert_true(pipe(said) == 0 && pipe2(made, O_NONBLOCK) == 0);
        pid_t first = start_maker(*state, random, (Progress){tell_and_pause, &said[1]});
        assert_int_equal(read(said[0], &byte, 1), 1); // it is at work
        for (int i = 0; i < WAITERS; i++)
            waiters[i] = start_maker(*state, random, (Progress){tell, &made[1]});
        for (int i = 0; i < WAITERS; i++) assert_int_equal(waitpid(waiters[i], &status, WNOHANG), 0);
        assert_int_equal(read(made[0], &byte, 1), -1); // nobody else makes it
        kill(first, SIGKILL);
        assert_int_equal(waitpid(first, &status, 0), first);
        for (int i = 0; i < WAITERS; i++) {
            assert_int_equal(waitpid(waiters[i], &status, 0), waiters[i]);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        assert_int_equal(read(made[0], &byte, 1), 1);
        for (int i = 0; i < 2; i++) close(said[i]), close(made[i]);
    }
}

// --- mapped once
// ---------------------------------------------------------------------------------------------

// Opens the model on the processor, and runs a token through it, so that every weight is read.
static bool use_model(const char *dir, Engine *out, EngineMemory *memory) {
    static const int ids[] = {5, 6};
    EngineOptions o = {.threads = 1, .context = 64};
    DecodeResult r;
    Method method;
    MethodEnv env = {.target = &out->session};
    DecodeOptions d = {.max_tokens = 2, .ignore_eos = true, .clock = clock_monotonic()};
    if (!engine_open(out, dir, &o, memory, NULL) || !method_open(&method, "autoregressive", &env, NULL))
        return false;
    bool ok = decode(&out->session, &method, ids, 2, &d, &r, NULL);
    if (ok) decode_result_release(&r);
    method_close(&method);
    return ok;
}

// Kilobytes of this process's mapping of the weights that no other process shares, and those that are there.
static void read_mapping(const char *file, long *own, long *all) {
    char line[4096];
    FILE *f = fopen("/proc/self/smaps", "r");
    bool here = false;
    long kb;
    assert_non_null(f);
    *own = *all = 0;
    while (fgets(line, sizeof line, f)) {
        if (strchr(line, '-') && strchr(line, '/')) here = strstr(line, file) != NULL;
        if (here && sscanf(line, "Rss: %ld", &kb) == 1) *all += kb;
        if (here &&
            (sscanf(line, "Private_Clean: %ld", &kb) == 1 || sscanf(line, "Private_Dirty: %ld", &kb) == 1))
            *own += kb;
    }
    fclose(f);
}

static void tasks_share_the_weights(void **state) {
    static const char *const sets[] = {"num_hidden_layers=4", "hidden_size=256", "intermediate_size=1024"};
    SynthOptions o = {.shape = "tiny", .sets = sets, .set_count = 3};
    const char *dir = folder_path(*state, "model");
    int ready[2];
    char byte;
    long own, all;
    Engine engine;
    EngineMemory memory;
    Error e = {0};
    if (!model_synth(dir, &o, &e)) fail_msg("%s", e.text);
    assert_int_equal(pipe(ready), 0);
    pid_t other = fork();
    if (other == 0) {
        bool ok = use_model(dir, &engine, &memory);
        if (write(ready[1], ok ? "y" : "n", 1) != 1) _exit(1);
        while (ok) { // the system may take pages away from a process that doesn't use them
            usleep(100000);
            engine_close(&engine);
            ok = use_model(dir, &engine, &memory);
        }
        _exit(1);
    }
    assert_true(read(ready[0], &byte, 1) == 1 && byte == 'y');
    assert_true(use_model(dir, &engine, &memory));
    read_mapping("/model/model.safetensors", &own, &all);
    for (int i = 0; own != 0 && i < 1000;
         i++) { // while the other one, on a busy machine, opens the model again
        usleep(10000);
        read_mapping("/model/model.safetensors", &own, &all);
    }
    size_t bytes = model_bytes(&engine.model);
    if (own != 0 || (size_t)all * 1024 < bytes) fail_msg("%ld of %ld KB are this process's own", own, all);
    kill(other, SIGKILL);
    assert_int_equal(waitpid(other, NULL, 0), other);
    engine_close(&engine);
    close(ready[0]);
    close(ready[1]);
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
        cmocka_unit_test_setup_teardown(a_killed_maker_blocks_nobody, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(tasks_share_the_weights, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refused, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
