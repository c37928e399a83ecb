// A run whose n-th allocation fails says so in one line, leaves nothing in memory, and goes on the next time
// as if nothing had been.
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

// Most allocations are the model's, which has tests of its own: the steps between those that fail grow.
static void allocations(void **state) {
    SmallRun *r = small_open("jacobi, {name: ouroboros, matrix: {warm: on}}", "passes: 1, reruns: 0", 2);
    small_run(r, "calm.db", NULL);
    int failures = 0, live = fault_live(), files = fault_open();
    bool seen = true;
    for (int n = 1; seen; n += 1 + n / 8) {
        char db[32];
        Error e = {0};
        RunnerResult result;
        snprintf(db, sizeof db, "fault%d.db", n);
        fault_after(n);
        bool ok = small_try(r, db, NULL, &result, &e);
        seen = fault_seen();
        fault_after(0);
        // Where a measurement can do without, it does: then the run is whole.
        if (!ok && e.kind != ERROR_SYSTEM) fail_msg("allocation %d: no system error: %s", n, e.text);
        if (fault_live() != live || fault_open() != files)
            fail_msg("allocation %d: %d allocations and %d files left", n, fault_live() - live,
                     fault_open() - files);
        failures += !ok;
        small_run(r, db, NULL);
        stores_same(*state, "calm.db", db);
    }
    printf("%d failures\n", failures);
    assert_true(failures > 30);
    small_close(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocations)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
