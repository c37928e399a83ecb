// Whatever system call fails: an error, the old file or all of the new, and nothing else left behind.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/output.h"
#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>

static bool write_new(void *state, Error *e) {
    return file_write(folder_path(state, "file"), "the new one", 11, e);
}

static void old_or_new(void *state, bool ok) {
    size_t n;
    char *text = scratch_read(state, "file", &n);
    bool is_old = n == 3 && memcmp(text, "old", 3) == 0,
         is_new = n == 11 && memcmp(text, "the new one", 11) == 0;
    if (!(is_new || (is_old && !ok)))
        fail_msg("%s, but the file is '%.*s'", ok ? "written" : "failed", (int)n, text);
    mem_free(text);
    assert_int_equal(folder_count(state), 1);
    scratch_write(state, "file", "old", 3);
}

static void writing(void **state) {
    scratch_write(*state, "file", "old", 3);
    // open, write, fsync, close, rename; open, fsync, close of the directory
    assert_int_equal(fault_each(FAULT_CALL, write_new, old_or_new, *state), 8);
}

static bool write_two(void *state, Error *e) {
    const OutputKind any = {.start = NULL};
    Output out = {.force = false};
    bool ok = output_add(&out, folder_path(state, "a"), &any, "aaa", 3, e) &&
              output_add(&out, folder_path(state, "file"), &any, "the new one", 11, e) &&
              output_finish(&out, e);
    output_release(&out);
    return ok;
}

// The first one is there, whole, or not at all; and next to both is nothing.
static void two_or_old(void *state, bool ok) {
    size_t n;
    bool first = file_exists(folder_path(state, "a"));
    if (ok && !first) fail_msg("written, but there is no file");
    if (first) {
        char *text = scratch_read(state, "a", &n);
        assert_string_equal(text, "aaa");
        mem_free(text);
        remove(folder_path(state, "a"));
    }
    old_or_new(state, ok);
}

static void writing_two(void **state) {
    scratch_write(*state, "file", "old", 3);
    // for each open and write; for each fsync, close, rename, and those of the directory
    assert_int_equal(fault_each(FAULT_CALL, write_two, two_or_old, *state), 2 * 2 + 2 * 6);
    assert_true(fault_each(FAULT_ALLOCATION, write_two, two_or_old, *state) > 4);
}

static bool read_old(void *state, Error *e) {
    char *data;
    size_t size;
    bool ok = file_read(folder_path(state, "file"), 100, &data, &size, e);
    if (ok) assert_true(size == 3 && memcmp(data, "old", 4) == 0);
    mem_free(data);
    return ok;
}

// A file that cannot be opened is the user's affair, one that cannot be read the system's.
static void reading(void **state) {
    static const ErrorKind kinds[] = {ERROR_INPUT, ERROR_SYSTEM};
    scratch_write(*state, "file", "old", 3);
    for (int i = 0; i < 2; i++) {
        Error e = {0};
        int live = fault_live(), open_files = fault_open();
        fault_call_after(i + 1);
        assert_false(read_old(*state, &e));
        assert_true(fault_seen());
        assert_int_equal(e.kind, kinds[i]);
        assert_non_null(strstr(e.text, folder_path(*state, "file")));
        assert_int_equal(fault_live(), live);
        assert_int_equal(fault_open(), open_files);
    }
    assert_true(read_old(*state, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writing, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(writing_two, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(reading, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
