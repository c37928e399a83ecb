// Any failure while storing gives one line, and earlier rows stay whole. The store then opens as in the next
// process, has the sample wholly or not at all, and ends up equal to an undisturbed one.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "results/rows.h"
#include "tests/support/fault.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { POINTS = 2, PROMPTS = 2, STEPS = 3 };

typedef struct {
    const char *folder, *path;
    StoreOptions options; // of all stores: on the file system that can fail
    char *half;           // a store that holds one pass of two
    size_t half_size;
    Text undisturbed; // what a store says that nothing happened to
} World;

static void remove_store(const char *path) {
    static const char *const ENDS[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        char name[FOLDER_PATH_SIZE + 16];
        snprintf(name, sizeof name, "%s%s", path, ENDS[i]);
        unlink(name);
    }
}

static bool fill(const World *w, int passes, Error *e) {
    FilledStore f;
    if (!filled_open(&f, w->path, &w->options, POINTS, PROMPTS, e)) return false;
    f.steps = STEPS;
    bool ok = filled_add_all(&f, passes, e);
    filled_close(&f);
    return ok;
}

static Text dump(const World *w) {
    Text t = {0};
    Error e = {0};
    Store *s = store_open(w->path, STORE_WRITE, &w->options, &e);
    if (!s) fail_msg("%s", e.text);
    filled_dump(s, &t);
    store_close(s);
    return t;
}

static int64_t samples_in(const World *w) {
    Error e = {0};
    int64_t n = -1;
    Store *s = store_open(w->path, STORE_WRITE, &w->options, &e);
    if (!s || !store_check(s, &e) || !rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, &e))
        fail_msg("%s", e.text);
    store_close(s);
    return n;
}

static void expect_same(const World *w) {
    Text got = dump(w);
    const Text *want = &w->undisturbed;
    if (strcmp(text_get(&got), text_get(want)))
        fail_msg("resumed: '%s'\nundisturbed: '%s'", text_get(&got), text_get(want));
    text_release(&got);
}

static World undisturbed(void **state) {
    World w = {.folder = *state, .path = folder_path(*state, "a.db"), .options = {.vfs = fault_vfs()}};
    Error e = {0};
    if (!fill(&w, 1, &e)) fail_msg("%s", e.text);
    w.half = scratch_read(*state, "a.db", &w.half_size);
    if (!fill(&w, 2, &e)) fail_msg("%s", e.text);
    w.undisturbed = dump(&w);
    remove_store(w.path);
    return w;
}

static void release(World *w) {
    text_release(&w->undisturbed);
    mem_free(w->half);
}

// Fails the n-th change of a file while a store that holds one pass is opened and gets a second.
static bool survives(const World *w, int n, bool full, bool dead) {
    Error e = {0};
    remove_store(w->path);
    scratch_write(w->folder, "a.db", w->half, w->half_size);
    fault_vfs_after(n, full, dead);
    bool ok = fill(w, 2, &e), seen = fault_vfs_seen();
    fault_vfs_after(0, false, false);
    int64_t samples = samples_in(w);
    if (samples < POINTS * PROMPTS || (ok && samples != 2 * POINTS * PROMPTS))
        fail_msg("change %d: %lld samples", n, (long long)samples);
    if (!ok && !(e.kind == ERROR_SYSTEM && strstr(e.text, w->path) && !strchr(e.text, '\n')))
        fail_msg("change %d: %s", n, e.text);
    if (!ok && full && !strstr(e.text, "disk is full") && !strstr(e.text, "disk I/O"))
        fail_msg("change %d: %s", n, e.text);
    e = (Error){0};
    if (!fill(w, 2, &e)) fail_msg("change %d: then %s", n, e.text);
    expect_same(w);
    return !seen;
}

static void every_change(void **state) {
    World w = undisturbed(state);
    for (int dead = 0; dead < 2; dead++) {
        int n = 1;
        while (!survives(&w, n, n % 2, dead)) n += test_some(3, 1);
        if (n < 20) fail_msg("only %d changes of files", n); // it looks at the right place
    }
    release(&w);
}

// Making a store anew.
static void every_change_of_making(void **state) {
    World w = undisturbed(state);
    for (int n = 1;; n += test_some(3, 1)) {
        Error e = {0};
        remove_store(w.path);
        fault_vfs_after(n, false, true);
        Store *s = store_open(w.path, STORE_WRITE, &w.options, &e);
        store_close(s);
        bool seen = fault_vfs_seen();
        fault_vfs_after(0, false, false);
        if (!seen) break;
        if (!fill(&w, 2, &e)) fail_msg("change %d: then %s", n, e.text);
        expect_same(&w);
    }
    release(&w);
}

// --- memory ----------------------------------------------------------------------------------------------

static bool fill_one(void *state, Error *e) {
    World *w = state;
    return fill(w, 1, e);
}

static void start_again(void *state, bool ok) {
    World *w = state;
    if (ok) assert_int_equal(samples_in(w), POINTS * PROMPTS);
    remove_store(w->path);
}

static void every_allocation(void **state) {
    World w = {.folder = *state, .path = folder_path(*state, "a.db"), .options = {.vfs = fault_vfs()}};
    assert_true(fault_each(FAULT_ALLOCATION, fill_one, start_again, &w) > 10);
}

// SQLite's own allocations, in the way that it offers.
static sqlite3_mem_methods real_memory;
static int memory_left;
static bool memory_failed;

static bool memory_fails(void) {
    if (memory_left == 0 || --memory_left > 0) return false;
    return memory_failed = true;
}
static void *failing_malloc(int n) { return memory_fails() ? NULL : real_memory.xMalloc(n); }
static void *failing_realloc(void *p, int n) { return memory_fails() ? NULL : real_memory.xRealloc(p, n); }

static void sqlite_without_memory(void **state) {
    World w = undisturbed(state);
    for (int n = 1, step = 1;; n += step, step = 1 + n / test_some(2, 8)) { // thousands: ever wider apart
        Error e = {0};
        remove_store(w.path);
        memory_left = n;
        memory_failed = false;
        bool ok = fill(&w, 2, &e), failed = memory_failed;
        memory_left = 0;
        if (!ok && !(failed && e.kind == ERROR_SYSTEM)) fail_msg("allocation %d: %s", n, e.text);
        if (!fill(&w, 2, &e)) fail_msg("allocation %d: then %s", n, e.text);
        expect_same(&w);
        if (!failed) break;
    }
    release(&w);
}

int main(void) {
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
    sqlite3_mem_methods failing = real_memory;
    failing.xMalloc = failing_malloc;
    failing.xRealloc = failing_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &failing);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_change, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(every_change_of_making, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(every_allocation, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(sqlite_without_memory, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
