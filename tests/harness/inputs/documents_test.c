// Files as documents: patterns, separators, and documents that are left out.
#include "tests/support/check.h"

#include "engine/base/text.h"
#include "harness/inputs/prompts.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <string.h>

// Each document between brackets.
static bool take(void *state, const char *text, size_t n, Error *e) {
    (void)e;
    text_puts(state, "[");
    text_add(state, text, n);
    text_puts(state, "]");
    return true;
}

static void expect(const char *folder, const char *pattern, const char *separator, const char *want) {
    const char *path = folder_path(folder, pattern);
    Text got = {0};
    Error e = {0};
    if (!documents_read(&path, 1, separator, take, &got, &e)) fail_msg("%s", e.text);
    if (strcmp(text_get(&got), want))
        fail_msg("%s, '%s': wanted %s, got %s", pattern, separator, want, text_get(&got));
    text_release(&got);
}

static void write(const char *folder, const char *name, const char *text) {
    scratch_write(folder, name, text, strlen(text));
}

static void documents(void **state) {
    write(*state, "b.txt", "one\ntwo\n--\nthree\n");
    write(*state, "a.txt", "--\n--\n-- not\nalone --\n--");
    write(*state, "c.txt", "");
    expect(*state, "b.txt", NULL, "[one\ntwo\n--\nthree\n]");
    expect(*state, "b.txt", "--", "[one\ntwo][three]");
    expect(*state, "a.txt", "--", "[-- not\nalone --]");
    expect(*state, "*.txt", "--", "[-- not\nalone --][one\ntwo][three]");
    expect(*state, "[bc].txt", "===", "[one\ntwo\n--\nthree]");
    expect(*state, "c.txt", NULL, "");
}

static bool refuse(void *state, const char *text, size_t n, Error *e) {
    (void)text;
    (void)n;
    ++*(int *)state;
    return error_input(e, "enough");
}

static void failures(void **state) {
    const char *nothing = folder_path(*state, "*.none"), *some = folder_path(*state, "a*");
    int calls = 0;
    Error e = {0};
    assert_false(documents_read(&nothing, 1, NULL, refuse, &calls, &e));
    assert_non_null(strstr(e.text, "there is no file '"));
    write(*state, "a1", "x\n-\ny");
    write(*state, "a2", "z");
    assert_false(documents_read(&some, 1, "-", refuse, &calls, &e));
    assert_string_equal(e.text, "enough");
    assert_int_equal(calls, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(documents, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(failures, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
