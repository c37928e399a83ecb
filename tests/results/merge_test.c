// Two stores that each hold a part of a run become one that holds what an undisturbed one does; again changes
// nothing.
#include "tests/support/check.h"

#include "results/rows.h"
#include "results/transfer.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include "engine/base/memory.h"

#include <string.h>
#include <unistd.h>

static FilledStore opened(const char *path) {
    FilledStore f;
    Error e = {0};
    if (!filled_open(&f, path, NULL, 3, 4, &e)) fail_msg("%s", e.text);
    return f;
}

static void copy(const char *folder, const char *from, const char *to) {
    size_t n;
    char *bytes = scratch_read(folder, from, &n);
    scratch_write(folder, to, bytes, n);
    mem_free(bytes);
}

static void expect_equal(Store *a, Store *b) {
    Text of_a = {0}, of_b = {0};
    filled_dump(a, &of_a);
    filled_dump(b, &of_b);
    assert_string_equal(text_get(&of_a), text_get(&of_b));
    text_release(&of_a);
    text_release(&of_b);
}

static StoreMerged merged(Store *into, const char *path) {
    StoreMerged m;
    Error e = {0};
    if (!store_merge(into, path, &m, &e)) fail_msg("%s", e.text);
    assert_true(store_check(into, &e));
    return m;
}

// One run, gone on with in two copies of its store: the first pass here, the second there, one prompt in
// both.
static void halves(void **state) {
    const char *left = folder_path(*state, "left.db"), *right = folder_path(*state, "right.db");
    FilledStore f = opened(left), g, whole;
    filled_close(&f);
    copy(*state, "left.db", "right.db");
    copy(*state, "left.db", "whole.db");
    f = opened(left);
    g = opened(right);
    whole = opened(folder_path(*state, "whole.db"));
    assert_true(filled_add_all(&f, 1, NULL) && filled_add_all(&whole, 2, NULL));
    for (int q = 0; q < 4; q++)
        for (int p = 0; p < 3; p++) assert_true(filled_add(&g, p, 1, q, NULL));
    assert_true(filled_add(&g, 1, 0, 1, NULL));
    filled_close(&g);
    StoreMerged m = merged(f.store, right);
    assert_int_equal(m.runs, 0);
    assert_int_equal(m.samples, 12);
    expect_equal(f.store, whole.store);
    m = merged(f.store, right);
    assert_int_equal(m.samples, 0);
    expect_equal(f.store, whole.store);
    filled_close(&f);
    filled_close(&whole);
}

// Into an empty store: everything, with its baselines; another run of the same content stands beside the
// first.
static void into_another(void **state) {
    const char *from = folder_path(*state, "from.db");
    FilledStore f = opened(from);
    Error e = {0};
    StoreEstimate x = {.metric = "S", .value = 2};
    assert_true(filled_add_all(&f, 2, NULL));
    assert_true(store_estimate(f.store, f.points[1], &x, NULL));
    Store *empty = store_open(folder_path(*state, "empty.db"), STORE_WRITE, NULL, &e);
    StoreMerged m = merged(empty, from);
    assert_int_equal(m.runs, 1);
    expect_equal(f.store, empty);
    int64_t n = 0;
    assert_true(rows_one_int(empty, "SELECT count(*) FROM estimate", 0, &n, NULL) && n == 1);
    filled_close(&f);
    FilledStore other = opened(folder_path(*state, "other.db"));
    assert_true(filled_add_all(&other, 1, NULL));
    filled_close(&other);
    m = merged(empty, folder_path(*state, "other.db"));
    assert_int_equal(m.runs, 1);
    assert_int_equal(m.samples, 12);
    assert_true(
        rows_one_int(empty, "SELECT count(DISTINCT hash) = 1 AND count(*) = 2 FROM run", 0, &n, NULL) &&
        n == 1);
    store_close(empty);
}

static void refused(void **state) {
    FilledStore f = opened(folder_path(*state, "a.db"));
    Error e = {0};
    StoreMerged m;
    assert_false(store_merge(f.store, folder_path(*state, "none.db"), &m, &e));
    assert_non_null(strstr(e.text, "there is none"));
    assert_int_equal(folder_count(*state), 3); // with -wal and -shm
    assert_int_equal(symlink("a.db", folder_path(*state, "link.db")), 0);
    assert_false(store_merge(f.store, folder_path(*state, "link.db"), &m, &e));
    assert_non_null(strstr(e.text, "into itself"));
    filled_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(halves, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(into_another, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refused, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
