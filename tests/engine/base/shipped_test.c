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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_and_paths),
                                       cmocka_unit_test(lists_them_in_order)};
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
