// Two stores that each have a part of a run become one that equals an undisturbed store; merging again
// changes nothing.
#include "tests/support/check.h"

#include "results/fit.h"
#include "results/rows.h"
#include "results/transfer/transfer.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include "engine/base/memory.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static const char FIT[] =
    "SELECT count(*) FROM fitted JOIN fit_point USING (fit_id) JOIN point ON point.id = point_id"
    " WHERE alpha = 0.4 AND number = 2 AND NOT other_points AND point.run_id = fitted.run_id";

static void add_fit(FilledStore *f) {
    char ids[32];
    bool added;
    Error e = {0};
    StoreFit fit = {.hash = "1",
                    .points = "p",
                    .point_ids = ids,
                    .title = "t",
                    .law = "paper",
                    .bonus = "kept",
                    .estimator = "likelihood",
                    .version = "0",
                    .estimates = {{.estimator = "likelihood", .alpha = 0.4, .f = 2}},
                    .estimate_count = 1};
    snprintf(ids, sizeof ids, "[%lld]", (long long)f->points[1]);
    if (!store_fit(f->store, f->run, &fit, &added, &e)) fail_msg("%s", e.text);
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
    add_fit(&f);
    StoreMerged m = merged(f.store, right);
    int64_t n; // samples came to the points of a fit
    assert_true(rows_one_int(f.store, "SELECT other_points FROM fitted", 0, &n, NULL) && n == 1);
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
    add_fit(&f);
    Store *empty = store_open(folder_path(*state, "empty.db"), STORE_WRITE, NULL, &e);
    StoreMerged m = merged(empty, from);
    assert_int_equal(m.runs, 1);
    expect_equal(f.store, empty);
    int64_t n = 0;
    assert_true(rows_one_int(empty, "SELECT count(*) FROM estimate", 0, &n, NULL) && n == 1);
    m = merged(empty, from); // a fit comes once, with its points
    assert_true(rows_one_int(empty, FIT, 0, &n, NULL) && n == 1);
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

static void alter(const char *path, const char *sql) {
    sqlite3 *db;
    if (sqlite3_open(path, &db) || sqlite3_exec(db, sql, NULL, NULL, NULL))
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

// Samples of both with other numbers are counted, and stay; so are those that only one and the same attempt
// can have made alike. Flags come later, and don't count.
static void differing(void **state) {
    static const struct {
        const char *change;
        int differ, altered;
    } ROWS[] = {
        {"UPDATE sample SET flags = flags | 1", 0, 0},
        {"UPDATE sample SET decode_ns = decode_ns + 5 WHERE point_id = 2", 4, 4},
        {"UPDATE sample SET device_head_ns = 5 WHERE id = 3", 1, 1},
        {"UPDATE output SET hash = 'other' WHERE id = (SELECT output_id FROM sample WHERE id = 1);"
         " UPDATE attempt SET uid = hex(randomblob(16))",
         1, 0},
        {"UPDATE sample SET prompt_tokens = 77 WHERE id < 3; UPDATE attempt SET uid = hex(randomblob(16))", 2,
         0},
    };
    const char *path = folder_path(*state, "b.db");
    FilledStore f = opened(folder_path(*state, "a.db"));
    assert_true(filled_add_all(&f, 1, NULL));
    filled_close(&f);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        copy(*state, "a.db", "b.db");
        alter(path, ROWS[i].change);
        f = opened(folder_path(*state, "a.db"));
        StoreMerged m = merged(f.store, path);
        if (m.runs || m.samples || m.differ < ROWS[i].differ ||
            m.altered != (ROWS[i].altered ? m.differ : 0) || (!ROWS[i].differ && m.differ))
            fail_msg("%s: wanted %d differing, %d altered, got %d, %d", ROWS[i].change, ROWS[i].differ,
                     ROWS[i].altered, (int)m.differ, (int)m.altered);
        int64_t n;
        assert_true(rows_one_int(f.store, "SELECT count(*) FROM sample", 0, &n, NULL) && n == 12);
        filled_close(&f);
        unlink(path);
    }
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

// Also when it comes to light late: the one that is damaged is named, and the other stays as it was.
static void damaged(void **state) {
    FilledStore f = opened(folder_path(*state, "bad.db"));
    Random r = test_random(1);
    size_t size;
    int late = 0;
    assert_true(filled_add_all(&f, 2, NULL));
    filled_close(&f);
    char *bytes = scratch_read(*state, "bad.db", &size);
    Store *s = store_open(folder_path(*state, "all.db"), STORE_WRITE, NULL, NULL);
    for (int i = 0; i < 40; i++) {
        size_t at = 4096 + random_below(&r, (uint32_t)size / 4096 - 1) * 4096;
        char kept[64];
        memcpy(kept, bytes + at, sizeof kept);
        memset(bytes + at, 0xaa, sizeof kept);
        scratch_write(*state, "bad.db", bytes, size);
        memcpy(bytes + at, kept, sizeof kept);
        Error e = {0};
        StoreMerged m;
        if (store_merge(s, folder_path(*state, "bad.db"), &m, &e)) {
            store_gc(s, (const int64_t[]){1}, 1, &(StoreGarbage){0}, NULL);
            continue;
        }
        late += strncmp(e.text, "merging", 7) == 0;
        if (strstr(e.text, "all.db")) fail_msg("page at %zu: '%s'", at, e.text);
        int64_t n;
        assert_true(rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, NULL) && n == 0);
    }
    assert_true(late > 0);
    store_close(s);
    mem_free(bytes);
}

// As root every file may be written, so the child gives that up.
static void read_only(void **state) {
    FilledStore f = opened(folder_path(*state, "a b?.db"));
    assert_true(filled_add_all(&f, 2, NULL));
    filled_close(&f);
    chmod(folder_path(*state, "a b?.db"), 0444);
    assert_int_equal(mkdir(folder_path(*state, "own"), 0777), 0);
    chmod(folder_path(*state, "own"), 0777);
    chmod(*state, 0555);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534)) _exit(3);
        Error e = {0};
        StoreMerged m = {0};
        Store *s = store_open(folder_path(*state, "own/all.db"), STORE_WRITE, NULL, &e);
        bool ok = s && store_merge(s, folder_path(*state, "a b?.db"), &m, &e) && m.samples == 24;
        if (!ok) fprintf(stderr, "%s\n", e.text);
        store_close(s);
        _exit(ok ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    chmod(*state, 0755);
    assert_int_equal(status, 0);
    assert_int_equal(folder_count(*state), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(halves, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(into_another, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(differing, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refused, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(damaged, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(read_only, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
