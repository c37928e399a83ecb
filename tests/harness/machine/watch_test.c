// Flags, with a clock, a load and a core of the test's own; and that the real watch sees a busy neighbour.
#include "tests/support/check.h"

#include "harness/machine/watch.h"
#include "results/record.h"

typedef struct World {
    double now, busy, own, cycles;
    int64_t switches;
} World;

static double tell(void *state) { return ((World *)state)->now; }

static void look(void *state, WatchLook *out) {
    const World *w = state;
    *out = (WatchLook){.busy = w->busy, .own = w->own, .cycles = w->cycles};
}

static int after(Watch *watch, World *w, double seconds, double own, double others, double cycles) {
    w->now += seconds;
    w->own += own;
    w->busy += own + others;
    w->cycles = cycles;
    return watch_judge(watch);
}

static void flags(void **state) {
    (void)state;
    World w = {.cycles = 1};
    Watch watch = {.look = look, .state = &w};
    watch_begin(&watch, (Clock){tell, &w});
    assert_int_equal(after(&watch, &w, 1, 2, 0, 1), 0);
    assert_int_equal(after(&watch, &w, 1, 2, 0.2, 1.04), 0);
    assert_int_equal(after(&watch, &w, 1, 2, 0.3, 1), FLAG_LOAD);
    assert_int_equal(after(&watch, &w, 1, 2, 0, 1), 0); // of each window anew
    assert_int_equal(after(&watch, &w, 1, 2, 0, 1.06), FLAG_CLOCK);
    assert_int_equal(after(&watch, &w, 1, 2, 0, 0.94), FLAG_CLOCK);
    assert_int_equal(after(&watch, &w, 1, 0, 4, 2), FLAG_LOAD | FLAG_CLOCK);
}

// A window that is too short to be counted goes on into the next.
static void short_windows(void **state) {
    (void)state;
    World w = {.cycles = 1};
    Watch watch = {.look = look, .state = &w};
    watch_begin(&watch, (Clock){tell, &w});
    assert_int_equal(after(&watch, &w, 0.05, 0, 0.05, 1), 0);
    assert_int_equal(after(&watch, &w, 0.06, 0, 0, 1), FLAG_LOAD);
    assert_int_equal(after(&watch, &w, 0.2, 0, 0, 1), 0);
}

static int64_t count_switches(void *state) { return ((World *)state)->switches; }

// Windows are counted, and so is time that the system took away; a watch without that counts nothing.
static void counts(void **state) {
    (void)state;
    World w = {.cycles = 1, .switches = 7};
    Watch watch = {.look = look, .switches = count_switches, .state = &w},
          blind = {.look = look, .state = &w};
    watch_begin(&watch, (Clock){tell, &w});
    watch_begin(&blind, (Clock){tell, &w});
    assert_true(watch_switches(&watch) == 7 && watch_switches(&blind) == 0);
    after(&watch, &w, 0.05, 0, 0, 1);
    assert_int_equal(watch.windows, 0);
    after(&watch, &w, 0.06, 0, 0, 1);
    after(&watch, &w, 0.2, 0, 1, 1);
    assert_int_equal(watch.windows, 2);
}

// The real look tells something, and no less later.
static void real_look(void **state) {
    (void)state;
    Watch watch = {0};
    watch_begin(&watch, clock_monotonic());
    WatchLook later;
    watch.look(watch.state, &later);
    assert_true(watch.first.cycles > 0);
    assert_true(later.own > watch.first.own);
    assert_true(later.busy >= watch.first.busy);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(flags), cmocka_unit_test(short_windows),
                                       cmocka_unit_test(counts), cmocka_unit_test(real_look)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
