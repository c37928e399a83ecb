// One process measures a run at a time, and a claim goes with its process.
#include "tests/support/check.h"

#include "results/store.h"
#include "tests/support/folder.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static Store *open_store(const char *path) {
    Error e = {0};
    Store *s = store_open(path, STORE_WRITE, NULL, &e);
    if (!s) fail_msg("%s", e.text);
    return s;
}

static void expect_refused(Store *s, const char *path, int64_t run) {
    Error e = {0};
    assert_false(store_claim(s, run, &e));
    if (e.kind != ERROR_INPUT || !strstr(e.text, path) || !strstr(e.text, "another process"))
        fail_msg("refused with '%s'", e.text);
    assert_true(store_claimed(s, run));
}

static void one_at_a_time(void **state) {
    const char *path = folder_path(*state, "a.db");
    Store *s = open_store(path), *other = open_store(path);
    assert_false(store_claimed(other, 1));
    assert_true(store_claim(s, 1, NULL));
    assert_true(store_claim(s, 1, NULL)); // it has it
    assert_false(store_claimed(s, 1));    // no other has
    expect_refused(other, path, 1);
    assert_true(store_claim(other, 2, NULL)); // another run
    store_close(s);
    assert_true(store_claim(other, 1, NULL));
    store_close(other);
}

static void goes_with_its_process(void **state) {
    const char *path = folder_path(*state, "a.db");
    int ready[2];
    char byte;
    store_close(open_store(path));
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        Store *s = store_open(path, STORE_WRITE, NULL, NULL);
        bool ok = s && store_claim(s, 1, NULL);
        if (write(ready[1], ok ? "y" : "n", 1) == 1) pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    Store *s = open_store(path);
    expect_refused(s, path, 1);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(store_claim(s, 1, NULL));
    store_close(s);
    close(ready[0]);
    close(ready[1]);
}

// Whoever may read a store may ask who measures.
static void asked_by_readers(void **state) {
    const char *path = folder_path(*state, "a.db");
    Store *s = open_store(path), *reader = store_open(path, STORE_READ, NULL, NULL);
    assert_non_null(reader);
    assert_false(store_claimed(reader, 3));
    assert_true(store_claim(s, 3, NULL));
    assert_true(store_claimed(reader, 3));
    store_close(reader);
    store_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_at_a_time, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(goes_with_its_process, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(asked_by_readers, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
