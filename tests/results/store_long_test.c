// Five million steps: how large the store is, and how long tables and figures take, by processor time. A view
// that began to scan the steps, or lost its index, would fail here.
#include "tests/support/check.h"

#include "results/rows.h"
#include "tests/support/child.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { POINTS = 35, PROMPTS = 240, PASSES = 10, STEPS = 60 }; // 5,040,000 steps in 84,000 samples

static double cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// A pass of a prompt is one transaction here, so that the disk's syncs are not what takes long.
static void fill(FilledStore *f) {
    Error e = {0};
    for (int i = 0; i < PASSES * PROMPTS; i++) {
        bool ok = store_begin(f->store, &e);
        for (int p = 0; p < POINTS && ok; p++) ok = filled_add(f, p, i / PROMPTS, i % PROMPTS, &e);
        if (!ok || !store_commit(f->store, &e)) fail_msg("%s", e.text);
    }
}

// Every table within 2 s, every figure's query within 3 s.
static const struct {
    const char *sql;
    double limit_s;
} QUERIES[] = {
    {"SELECT * FROM result", 2},
    {"SELECT * FROM run_state", 2},
    {"SELECT * FROM task_speedup", 2},
    {"SELECT * FROM ctar", 2},
    {"SELECT * FROM pass_sums", 2},
    {"SELECT * FROM point_source", 2},
    {"SELECT * FROM point_rank", 2},
    {"SELECT * FROM point_text", 2},
    {"SELECT * FROM prompt_speedup WHERE point_id = 7", 2},
    {"SELECT a.value, S, speedup FROM result JOIN point_param AS a USING (point_id) WHERE a.name = 'k'", 2},
    {"SELECT rows, context / 64, count(*), avg(forward_ns) FROM step_time WHERE point_id = 7 GROUP BY 1, 2",
     3},
    {"SELECT kind, model, a, b, rows, sum(count) FROM pass WHERE point_id = 7 GROUP BY 1, 2, 3, 4, 5", 3},
    {"SELECT count(*), sum(emitted), avg(forward_ns) FROM step", 3}, // all five million
};

static void ask(Store *s, const char *sql, double limit_s) {
    Error e = {0};
    double start = cpu_s();
    int n = 0;
    Rows *r = rows_open(s, sql, &e);
    while (r && rows_next(r)) n++;
    rows_end(r, true, &e);
    double took = cpu_s() - start;
    print_message("%6.2f s %6d rows  %s\n", took, n, sql);
    if (e.kind != ERROR_NONE || n == 0 || took > limit_s)
        fail_msg("%s: %.2f s, %d rows, '%s'", sql, took, n, e.text);
}

// The one that chooses the fastest of a grid, one by subtask, one that looks at every step.
static const char *const TABLES[] = {"ngrammys-table-1", "kangaroo-table-1", "ouroboros-table-1"};

static void five_million(void **state) {
    FilledStore f;
    Error e = {0};
    Child c = {0};
    struct stat st;
    if (!filled_open(&f, folder_path(*state, "a.db"), NULL, POINTS, PROMPTS, &e)) fail_msg("%s", e.text);
    f.steps = STEPS;
    double start = cpu_s();
    fill(&f);
    double steps = (double)POINTS * PROMPTS * PASSES * STEPS, took = cpu_s() - start;
    filled_close(&f);
    assert_int_equal(stat(folder_path(*state, "a.db"), &st), 0);
    print_message("%.0f steps: %.1f us and %.0f bytes a step\n", steps, 1e6 * took / steps,
                  (double)st.st_size / steps);
    assert_true((double)st.st_size / steps < 200);
    Store *s = store_open(folder_path(*state, "a.db"), STORE_READ, NULL, &e);
    if (!s) fail_msg("%s", e.text);
    for (size_t i = 0; i < sizeof QUERIES / sizeof *QUERIES; i++) ask(s, QUERIES[i].sql, QUERIES[i].limit_s);
    store_close(s);
    for (int i = 0; i < 2; i++) { // the first one resamples all points, once, and keeps what that gave
        CHILD_OUTPACE(&c, *state, 0, "show", "last", "--db", "a.db");
        print_message("%6.2f s outpace show\n", c.seconds);
        assert_true(c.seconds < 2);
        child_release(&c);
    }
    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES; i++) {
        CHILD_OUTPACE(&c, *state, 0, "table", TABLES[i], "--run", "1", "--db", "a.db");
        print_message("%6.2f s outpace table %s\n", c.seconds, TABLES[i]);
        assert_true(c.seconds < 2);
        child_release(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(five_million, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
