// A run whose n-th allocation fails ends with one line, and the next start continues it as if nothing had
// happened.
#include "tests/support/check.h"

#include "tests/support/child.h"
#include "tests/support/fault.h"
#include "tests/support/small_run.h"
#include "tests/support/stores.h"

#include <stdio.h>
#include <unistd.h>

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    return chdir(*state);
}

typedef struct World {
    SmallRun *small;
    const char *folder;
    int runs;
} World;

static void name_store(const World *w, char out[32]) { snprintf(out, 32, "fault%d.db", w->runs); }

static bool run(void *state, Error *e) {
    World *w = state;
    char db[32];
    RunResult result;
    name_store(w, db);
    return small_try(w->small, db, NULL, &result, e);
}

static void continued(void *state, bool ok) {
    World *w = state;
    char db[32];
    (void)ok;
    name_store(w, db);
    small_run(w->small, db, NULL);
    stores_same(w->folder, "calm.db", db);
    unlink(db);
    w->runs++;
}

static void allocations(void **state) {
    World w = {small_open("jacobi, {name: ouroboros, matrix: {warm: on}}", "passes: 1, reruns: 0", 2), *state,
               0};
    small_run(w.small, "calm.db", NULL);
    int failures = fault_each(FAULT_SPARSE_ALLOCATIONS, run, continued, &w);
    printf("%d failures\n", failures);
    assert_true(failures > 30);
    small_close(w.small);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocations)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
