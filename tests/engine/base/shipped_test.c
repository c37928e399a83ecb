// Files shipped with the program: by short names, by paths, from the folder that OUTPACE_CONFIGS names.
#include "tests/support/check.h"

#include "engine/base/shipped.h"
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "tests/support/folder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A folder of machines: b, a, and a file that is none.
static void make(void **state) {
    Error e = {0};
    if (!file_make_directory(folder_path(*state, "machines"), &e) ||
        !file_write(folder_path(*state, "machines/b.json"), "{}", 2, &e) ||
        !file_write(folder_path(*state, "machines/a.json"), "{}", 2, &e) ||
        !file_write(folder_path(*state, "machines/notes.txt"), "", 0, &e))
        fail_msg("%s", e.text);
    assert_int_equal(setenv("OUTPACE_CONFIGS", folder_path(*state, "."), 1), 0);
}

static void check_named(const char *name, const char *end) {
    Error e = {0};
    char *path = shipped_named("machines", "machine", name, &e);
    if (!path) fail_msg("%s: %s", name, e.text);
    size_t n = strlen(path), m = strlen(end);
    if (n < m || strcmp(path + n - m, end) != 0) fail_msg("%s: wanted ..%s, got %s", name, end, path);
    mem_free(path);
}

static void check_refused(const char *name, const char *why) {
    Error e = {0};
    assert_null(shipped_named("machines", "machine", name, &e));
    if (!strstr(e.text, why)) fail_msg("%s: wanted '%s' in: %s", name, why, e.text);
}

static void names_and_paths(void **state) {
    make(state);
    check_named("a", "machines/a.json");
    check_named("b", "machines/b.json");
    check_named(folder_path(*state, "machines/a.json"), "machines/a.json");
    check_refused("c", "there is no machine 'c'; known are a b; or give the path");
    check_refused("none/c.json", "cannot read the machine 'none/c.json'");
    char *whole = shipped_path("machines/notes.txt");
    assert_non_null(whole);
    mem_free(whole);
    assert_null(shipped_path("machines/other.txt"));
}

static void lists_them_in_order(void **state) {
    Error e = {0};
    Text names = {0};
    make(state);
    assert_true(shipped_names("machines", &names, &e));
    assert_string_equal(text_get(&names), "a\nb\n");
    text_release(&names);
    assert_false(shipped_names("planets", &names, &e));
    assert_non_null(strstr(e.text, "set OUTPACE_CONFIGS"));
    text_release(&names);
}

static void make_models(void **state) {
    static const char *const FILES[] = {"models/able/config.json",
                                        "models/baker.gguf",
                                        "models/notes/a.txt",
                                        "mine/config.json",
                                        "file",
                                        "mine/weights"};
    Error e = {0};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        const char *path = folder_path(*state, FILES[i]);
        char *folder = file_directory(path);
        if (!file_make_directory(folder, &e) || !file_write(path, "{}", 2, &e)) fail_msg("%s", e.text);
        mem_free(folder);
    }
    assert_int_equal(setenv("OUTPACE_MODELS", folder_path(*state, "models"), 1), 0);
}

static void models(void **state) {
    static const struct {
        const char *name, *want;
    } FOUND[] = {{"able", "models/able"},
                 {"models/able", "models/able"},
                 {"baker", "models/baker.gguf"},
                 {"baker.gguf", "models/baker.gguf"},
                 {"mine", "mine"},
                 {"models", "models"}}, // the command tells why it isn't one
        NONE[] = {
            {"abel", "there is no model 'abel'; did you mean 'able'?"},
            {"zebra", "there is no model 'zebra', and nothing is downloaded: give the folder of a Hugging "
                      "Face model, a GGUF file, or one of able, baker.gguf"},
            {"smollm2-135m",
             "the model 'smollm2-135m' isn't here yet: 'outpace model fetch smollm2-135m' downloads it"},
            {"models/zebra", "one of able, baker.gguf"},
            {"Able/baker-7b", "fetch it by 'hf download Able/baker-7b --local-dir baker-7b', then give "
                              "'baker-7b'"},
            {"notes", "there is no model 'notes'"},
        };
    make_models(state);
    for (size_t i = 0; i < sizeof FOUND / sizeof *FOUND; i++) {
        Error e = {0};
        bool whole = i > 3;
        char *got = shipped_model(whole ? folder_path(*state, FOUND[i].name) : FOUND[i].name, &e);
        const char *want = folder_path(*state, FOUND[i].want);
        if (!got || strcmp(got, want) != 0)
            fail_msg("%s: wanted %s, got %s", FOUND[i].name, want, got ? got : e.text);
        mem_free(got);
    }
    static const char *const FILES[][2] = {{"mine/weights", "' is a file; give its folder, '"},
                                           {"file", "' is a file, not a model: give the folder of a"}};
    for (size_t i = 0; i < 2; i++) {
        Error e = {0};
        assert_null(shipped_model(folder_path(*state, FILES[i][0]), &e));
        if (!strstr(e.text, FILES[i][1]))
            fail_msg("%s: wanted '%s', got '%s'", FILES[i][0], FILES[i][1], e.text);
    }
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
        Error e = {0};
        assert_null(shipped_model(NONE[i].name, &e));
        if (!strstr(e.text, NONE[i].want))
            fail_msg("%s: wanted '%s', got '%s'", NONE[i].name, NONE[i].want, e.text);
    }
    Text names = {0};
    shipped_models(&names);
    assert_true(strncmp(text_get(&names), "able\nbaker.gguf\n", 16) == 0);
    text_release(&names);
    unsetenv("OUTPACE_MODELS");
}

static void configs(void **state) {
    static const char *const FOUND[] = {"one", "one.yaml", "configs/one", "configs/one.yaml"};
    static const char *const NONE[][2] = {
        {"ome", "there is no config 'ome'; did you mean 'configs/one.yaml'?"},
        {"configs/one.yml", "there is no config 'configs/one.yml'; did you mean 'configs/one.yaml'?"},
        {"ome.yaml", ""}, // a file of the user's
        {"zebra", ""}};
    Error e = {0};
    if (!file_write(folder_path(*state, "one.yaml"), "{}", 2, &e)) fail_msg("%s", e.text);
    assert_int_equal(setenv("OUTPACE_CONFIGS", folder_path(*state, "."), 1), 0);
    for (size_t i = 0; i < sizeof FOUND / sizeof *FOUND; i++) {
        char *got = shipped_config(FOUND[i], &e);
        if (!got || strcmp(got, "configs/one.yaml") != 0)
            fail_msg("%s: wanted configs/one.yaml, got %s", FOUND[i], got ? got : e.text);
        mem_free(got);
    }
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
        e = (Error){0};
        assert_null(shipped_config(NONE[i][0], &e));
        if (strcmp(e.text, NONE[i][1]) != 0)
            fail_msg("%s: wanted '%s', got '%s'", NONE[i][0], NONE[i][1], e.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_and_paths),
                                       cmocka_unit_test(lists_them_in_order), cmocka_unit_test(models),
                                       cmocka_unit_test(configs)};
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
