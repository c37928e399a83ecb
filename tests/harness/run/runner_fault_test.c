// A run whose n-th allocation fails ends with one line, and the next run continues in its store as if nothing
// had happened.
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

typedef struct {
    const SmallRun *run;
    char db[32];
} Attempt;

static bool try_run(void *state, Error *e) {
    const Attempt *a = state;
    RunnerResult result;
    return small_try(a->run, a->db, NULL, &result, e);
}

// Most allocations are the model's, which has tests of its own: the steps between those that fail grow.
static void allocations(void **state) {
    SmallRun *r = small_open("jacobi, {name: ouroboros, matrix: {warm: on}}", "passes: 1, reruns: 0", 2);
    small_run(r, "calm.db", NULL);
    int ended = 0;
    FaultEnd end = FAULT_ENDED;
    for (int n = 1; end != FAULT_NONE; n += 1 + n / 8) {
        Attempt a = {.run = r};
        snprintf(a.db, sizeof a.db, "fault%d.db", n);
        end = fault_apart(n, try_run, &a);
        ended += end == FAULT_ENDED;
        small_run(r, a.db, NULL);
        stores_same(*state, "calm.db", a.db);
    }
    assert_true(ended > 30);
    small_close(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocations)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
