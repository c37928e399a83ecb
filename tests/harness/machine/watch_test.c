// Flags, with a clock, a load and a core of the test's own; and that the real watch sees a busy neighbour.
#include "tests/support/check.h"

#include "harness/machine/watch.h"
#include "results/record.h"

#include <math.h>
#include <unistd.h>

typedef struct World {
    double now, busy, own, cycles, stolen, away;
    int64_t switches, faults, slowed;
} World;

static double tell(void *state) { return ((World *)state)->now; }

static void look(void *state, WatchLook *out) {
    const World *w = state;
    *out = (WatchLook){.busy = w->busy,
                       .own = w->own,
                       .cycles = w->cycles,
                       .stolen = w->stolen,
                       .away = w->away,
                       .faults = w->faults,
                       .slowed = w->slowed};
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

// Neighbours of a virtual machine, a process that is stopped, and memory that comes from a disk. What goes
// away again is of one window.
static void other_disturbances(void **state) {
    static const struct {
        double seconds, others, stolen, away;
        int64_t faults, slowed;
        int want;
    } CASES[] = {{.seconds = 1, .stolen = 0.04, .want = 0},
                 {.seconds = 1, .stolen = 0.06, .want = FLAG_LOAD},
                 {.seconds = 0.2, .stolen = 0.02, .want = FLAG_LOAD},
                 {.seconds = 1, .away = 0.24, .want = 0},
                 {.seconds = 1, .away = 0.26, .want = FLAG_PAUSED},
                 {.seconds = 100, .away = 20, .want = 0},
                 {.seconds = 0.3, .away = 0.19, .want = 0}, // a store waited for its disk
                 {.seconds = 0.3, .away = 0.21, .want = FLAG_PAUSED},
                 {.seconds = 1, .away = 0.5, .others = 0.5, .want = FLAG_LOAD}, // waits for its own threads
                 {.seconds = 1, .faults = 10, .want = 0},
                 {.seconds = 1, .faults = 11, .want = FLAG_PAGED},
                 {.seconds = 0.15, .faults = 2, .want = FLAG_PAGED},
                 {.seconds = 1, .slowed = 1, .want = FLAG_THROTTLED},
                 {.seconds = 2, .stolen = 1, .away = 1, .faults = 1000, .want = FLAG_LOAD | FLAG_PAGED}};
    (void)state;
    World w = {.cycles = 1, .stolen = 9, .away = 8, .faults = 7, .slowed = 6}; // from earlier
    Watch watch = {.look = look, .state = &w};
    watch_begin(&watch, (Clock){tell, &w});
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        w.stolen += CASES[i].stolen;
        w.away += CASES[i].away;
        w.faults += CASES[i].faults;
        w.slowed += CASES[i].slowed;
        int got = after(&watch, &w, CASES[i].seconds, CASES[i].seconds, CASES[i].others, 1);
        if (got != CASES[i].want) fail_msg("case %zu: wanted flags %d, got %d", i, CASES[i].want, got);
        assert_int_equal(after(&watch, &w, 1, 1, 0, 1), 0);
    }
}

static void counts_of_the_system(void **state) {
    static const struct {
        const char *text;
        double busy, stolen; // ticks
    } CASES[] = {{"cpu  100 20 3 4000 50 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n", 123, 8},
                 {"cpu  100 20 3 4000\n", 123, 0}, // an old kernel
                 {"", 0, 0},
                 {"intr 1 2 3", 0, 0}};
    (void)state;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        WatchLook got = {.busy = -1, .stolen = -1};
        watch_parse_stat(CASES[i].text, &got);
        if (fabs(got.busy * ticks - CASES[i].busy) > 1e-6 ||
            fabs(got.stolen * ticks - CASES[i].stolen) > 1e-6)
            fail_msg("'%s': wanted %g busy, %g stolen, got %g, %g", CASES[i].text, CASES[i].busy,
                     CASES[i].stolen, got.busy * ticks, got.stolen * ticks);
    }
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
    assert_true(later.busy >= watch.first.busy && later.stolen >= watch.first.stolen);
    assert_true(later.faults >= watch.first.faults);
}

// The real watch sees that its thread was stopped: it sleeps, which looks the same.
static void stopped(void **state) {
    (void)state;
    Watch watch = {0};
    WatchLook before, after;
    watch_begin(&watch, clock_monotonic());
    watch.look(watch.state, &before);
    usleep(30000);
    watch.look(watch.state, &after);
    double away = after.away - before.away;
    if (away < 0.02 && after.away != 0)
        fail_msg("slept 30 ms: wanted about as much away, got %g ms", 1e3 * away);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(flags),
                                       cmocka_unit_test(other_disturbances),
                                       cmocka_unit_test(counts_of_the_system),
                                       cmocka_unit_test(stopped),
                                       cmocka_unit_test(short_windows),
                                       cmocka_unit_test(counts),
                                       cmocka_unit_test(real_look)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
