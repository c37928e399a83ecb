// Files of a command: they never replace its inputs or foreign files, and appear all or not at all.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/output.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const OutputKind LISTS = {.start = "list\n", .holds = "made by us", .beside = ".gp"};

static void content_is(const char *folder, const char *name, const char *wanted) {
    size_t size;
    char *got = scratch_read(folder, name, &size);
    assert_string_equal(got, wanted);
    mem_free(got);
}

static void refused(Output *o, const char *path, const char *wanted) {
    Error e = {0};
    assert_false(output_check(o, path, &LISTS, &e));
    if (!strstr(e.text, wanted)) fail_msg("wanted '%s' in: %s", wanted, e.text);
    assert_int_equal(e.kind, ERROR_INPUT);
}

// By its own name, another spelling of it, a link of either kind, as a file of a directory that is read, and
// by a pattern; --force or not.
static void what_is_read(void **state) {
    const char *f = *state;
    Output o = {0};
    Error e = {0};
    mkdir(folder_path(f, "dir"), 0777);
    scratch_write(f, "dir/in", "list\nmade by us", 15);
    assert_int_equal(symlink("dir/in", folder_path(f, "soft")), 0);
    assert_int_equal(link(folder_path(f, "dir/in"), folder_path(f, "hard")), 0);
    static const char *const NAMES[] = {"dir/in", "dir/../dir/./in", "soft", "hard"};
    static const char *const READ[] = {"dir/in", "dir", "d*/i?"};
    for (int i = 0; i < 6; i++) {
        Output first = {.force = i >= 3};
        output_reads(&first, folder_path(f, READ[i % 3]));
        output_reads(&first, "/no/such/file");
        output_reads(&first, NULL);
        Output reads = output_more(&first);
        output_release(&first);
        for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++)
            refused(&reads, folder_path(f, NAMES[k]), "is read by this command");
        assert_true(output_check(&reads, folder_path(f, "other"), &LISTS, &e));
        output_release(&reads);
    }
    assert_true(output_check(&o, folder_path(f, "dir/in"), &LISTS, &e)); // nobody reads it, and it is a list
    output_reads(&o, folder_path(f, "dir"));
    assert_false(output_check_directory(&o, folder_path(f, "dir/../dir"), &e));
    assert_true(output_check_directory(&o, f, &e));
    output_release(&o);
}

// A store's log holds data that the store itself doesn't have yet.
static void a_stores_log(void **state) {
    static const char *const BESIDE[] = {"a.db-wal", "a.db-shm", "a.db-journal"};
    Output o = {.force = true};
    output_reads(&o, folder_path(*state, "a.db"));
    for (int i = 0; i < 3; i++) {
        scratch_write(*state, BESIDE[i], "", 0);
        refused(&o, folder_path(*state, BESIDE[i]), "is read by this command");
    }
    output_release(&o);
}

// Directories that were made for files go with them, unless one got its name there.
static void made_directories(void **state) {
    const char *f = *state;
    Output o = {0};
    Error e = {0};
    mkdir(folder_path(f, "old"), 0777);
    for (int i = 0; i < 2; i++) {
        assert_true(output_check(&o, folder_path(f, "old/a/b/one"), &LISTS, &e));
        assert_true(output_add(&o, folder_path(f, "old/a/c/two"), &LISTS, "list\n", 5, &e));
        assert_int_equal(folder_count(folder_path(f, "old/a")), 2);
        if (i && !output_finish(&o, &e)) fail_msg("%s", e.text);
        output_release(&o);
        assert_int_equal(folder_count(folder_path(f, "old")), i);
    }
    assert_int_equal(folder_count(folder_path(f, "old/a")), 1);
    content_is(f, "old/a/c/two", "list\n");
}

static void what_is_ours(void **state) {
    const char *f = *state;
    Output o = {0}, forced = {.force = true};
    Error e = {0};
    char *large = mem_new(1, 30000);
    memset(large, 'x', 30000);
    memcpy(large, "list\n", 5);
    scratch_write(f, "middle", large, 30000); // holds it where nobody looks
    memcpy(large + 29000, "made by us", 10);
    scratch_write(f, "ours", large, 30000);
    memcpy(large + 10000, "made by us", 10);
    memset(large + 29000, 'x', 10);
    scratch_write(f, "middle", large, 30000);
    mem_free(large);
    scratch_write(f, "start", "LIST\nmade by us", 15);
    scratch_write(f, "empty", "", 0);
    scratch_write(f, "beside", "drawn again", 11);
    scratch_write(f, "beside.gp", "made by us", 10);
    mkdir(folder_path(f, "dir"), 0777);
    static const char *const OURS[] = {"ours", "empty", "beside", "none", "new/dir/none"};
    static const char *const OTHERS[] = {"middle", "start"};
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++)
        if (!output_check(&o, folder_path(f, OURS[i]), &LISTS, &e)) fail_msg("%s", e.text);
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        refused(&o, folder_path(f, OTHERS[i]), "--force");
        assert_true(output_check(&forced, folder_path(f, OTHERS[i]), &LISTS, &e));
    }
    refused(&forced, folder_path(f, "dir"), "it is a directory");
}

static void write_two(const char *f, Output *o) {
    Error e = {0};
    FILE *to;
    if (!output_add(o, folder_path(f, "new/a"), &LISTS, "list\nmade by us 1", 17, &e) ||
        !(to = output_open(o, folder_path(f, "b"), &LISTS, &e)))
        fail_msg("%s", e.text);
    fputs("list\nmade by us 2", to);
    if (!output_close(o, true, &e)) fail_msg("%s", e.text);
}

static void together(void **state) {
    const char *f = *state;
    Output o = {0};
    Error e = {0};
    scratch_write(f, "c", "mine", 4);
    write_two(f, &o);
    assert_string_equal(output_path(&o, 0), folder_path(f, "new/a"));
    assert_null(output_path(&o, 2));
    assert_false(output_add(&o, folder_path(f, "c"), &LISTS, "x", 1, &e)); // and with it the other two
    output_release(&o);
    assert_int_equal(folder_count(f), 1);
    content_is(f, "c", "mine");
    for (int i = 0; i < 2; i++) { // the second time over the first's
        write_two(f, &o);
        if (!output_finish(&o, &e)) fail_msg("%s", e.text);
        output_release(&o);
    }
    content_is(f, "new/a", "list\nmade by us 1");
    content_is(f, "b", "list\nmade by us 2");
    assert_int_equal(folder_count(f), 3);
}

// Whoever ends it before its files have names leaves none.
static void killed(void **state) {
    const char *f = *state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        Output o = {0};
        write_two(f, &o);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(folder_count(f), 1); // "new"
    assert_int_equal(folder_count(folder_path(f, "new")), 0);
}

// A pipe takes any output; a reader that left isn't a failure, a full device is.
static void streams(void **state) {
    const char *f = *state, *pipe_path = folder_path(f, "pipe");
    Error e = {0};
    Output o = {0};
    char got[8] = {0};
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    int reader = open(pipe_path, O_RDONLY | O_NONBLOCK);
    assert_true(output_add(&o, pipe_path, &LISTS, "12345", 5, &e));
    assert_int_equal(read(reader, got, sizeof got), 5);
    assert_string_equal(got, "12345");
    FILE *to = output_open(&o, pipe_path, &LISTS, &e);
    assert_non_null(to);
    close(reader);
    fputs("12345", to);
    assert_true(output_close(&o, true, &e));
    assert_false(output_add(&o, "/dev/full", &LISTS, "12345", 5, &e));
    assert_non_null(strstr(e.text, "cannot write '/dev/full': No space left"));
    assert_null(output_path(&o, 0));
    assert_false(o.streamed);
    assert_true(output_finish(&o, &e));
    output_release(&o);
    assert_int_equal(folder_count(f), 1);
}

static void full_disk(void **state) {
    const char *f = *state;
    static char bytes[20000];
    Error e = {0};
    Output o = {0};
    if (!folder_disk(f, "disk", 16)) skip();
    assert_true(output_add(&o, folder_path(f, "disk/a"), &LISTS, bytes, 10, &e));
    assert_false(output_add(&o, folder_path(f, "disk/b"), &LISTS, bytes, sizeof bytes, &e));
    assert_non_null(strstr(e.text, "disk/b': No space left on device"));
    output_release(&o);
    assert_int_equal(folder_count(folder_path(f, "disk")), 0);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(what_is_read), IN_FOLDER(a_stores_log), IN_FOLDER(made_directories),
        IN_FOLDER(what_is_ours), IN_FOLDER(together),     IN_FOLDER(killed),
        IN_FOLDER(streams),      IN_FOLDER(full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
