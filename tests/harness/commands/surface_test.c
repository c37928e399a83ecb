// outpace bench --store on the null backend: every point of the grid, and every part, stands in the store.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tests/support/stores.h"

#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    return 0;
}

static void grid_and_parts(void **state) {
    Child c;
    const char *f = *state;
    CHILD_OUTPACE(&c, f, 0, "bench", "--store", "tiny", "--device", "null", "--k", "1,2", "--w", "0,3",
                  "--context", "25,40", "--rows", "1,8", "--samples", "3", "--db", "s.db");
    child_release(&c);
    assert_int_equal(stores_ask(f, "s.db", "SELECT count(*) FROM surface WHERE kind = 'step'"), 2 * 4);
    assert_int_equal(
        stores_ask(f, "s.db", "SELECT count(*) FROM surface WHERE kind = 'step' AND rows = k * (w + 1)"), 8);
    assert_int_equal(
        stores_ask(f, "s.db", "SELECT count(*) FROM surface WHERE k = 1 AND w = 0 AND slowdown = 1"), 2);
    assert_int_equal(stores_ask(f, "s.db", "SELECT count(*) FROM surface WHERE kind = 'layers' AND a = 0"),
                     2 * 2 * 2);
    assert_int_equal(stores_ask(f, "s.db", "SELECT count(*) FROM surface WHERE kind = 'layers' AND a = 1"),
                     2 * 2);
    assert_int_equal(
        stores_ask(f, "s.db",
                   "SELECT count(*) FROM surface WHERE kind IN ('head', 'prefill', 'commit', 'host')"),
        2 * 2 * 4);
    assert_int_equal(stores_ask(f, "s.db", "SELECT count(*) FROM surface WHERE samples < 3 OR mean_ns <= 0"),
                     0);
    assert_int_equal(stores_ask(f, "s.db", "SELECT count(*) FROM run WHERE kind = 'surface'"), 1);
    assert_int_equal(
        stores_ask(f, "s.db", "SELECT count(*) FROM environment WHERE libraries LIKE '%sqlite%'"), 1);
    assert_int_equal(stores_ask(f, "s.db", "SELECT count(*) FROM run WHERE name = 'tiny'"), 1);
    CHILD_OUTPACE(&c, f, 0, "show", "1", "--db", "s.db");
    assert_non_null(strstr(text_get(&c.out), "2x3"));
    assert_non_null(strstr(text_get(&c.out), "prefill"));
    child_release(&c);
    CHILD_OUTPACE(&c, f, 0, "show", "--db", "s.db"); // shapes, and how often they were timed
    char counts[64];
    int shapes = (int)stores_ask(f, "s.db", "SELECT count(*) FROM surface"),
        timings = (int)stores_ask(f, "s.db", "SELECT sum(samples) FROM surface");
    snprintf(counts, sizeof counts, " %d/%d  %7d", shapes, shapes, timings);
    if (!strstr(text_get(&c.out), counts)) fail_msg("wanted '%s', got '%s'", counts, text_get(&c.out));
    child_release(&c);
    // Prices of the same steps stand beside them, by a machine that is named.
    CHILD_OUTPACE(&c, f, 0, "plot", "slowdown", "--run", "1", "--on", "h100-measured", "--db", "s.db",
                  "--footer", "-o", "-");
    for (const char *const *word = (const char *const[]){">measured, ", ">priced, ", ">priced / measured, ",
                                                         "priced for ", " at most 512 rows", NULL};
         *word; word++)
        if (!strstr(text_get(&c.out), *word)) fail_msg("the figure lacks '%s'", *word);
    child_release(&c);
}

// A tree of k chains has one root.
static void trees(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "bench", "--store", "tiny", "--device", "null", "--k", "4", "--w", "5",
                  "--context", "25", "--rows", "0", "--layout", "tree", "--db", "t.db");
    child_release(&c);
    assert_int_equal(
        stores_ask(*state, "t.db", "SELECT count(*) FROM surface WHERE rows = 21 AND layout = 'tree'"), 1);
    assert_int_equal(stores_ask(*state, "t.db", "SELECT count(*) FROM surface"), 2); // and (1, 0)
}

// Slowdowns are ratios of stored times, though the grid does not want (1, 0).
static void reference(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "bench", "--store", "tiny", "--device", "null", "--k", "2,4", "--w", "1",
                  "--context", "0,9", "--rows", "0", "--db", "r.db");
    child_release(&c);
    assert_int_equal(stores_ask(*state, "r.db", "SELECT count(*) FROM surface"), 2 * 3);
    assert_int_equal(
        stores_ask(*state, "r.db",
                   "SELECT count(*) FROM surface AS s JOIN surface AS one ON one.context = s.context AND"
                   " one.k = 1 AND one.w = 0 WHERE abs(s.slowdown - s.median_ns / one.median_ns) < 1e-6"),
        2 * 3);
}

// A calm step over a disturbed one of one token has a doubtful slowdown, and a calm time.
static void doubtful_reference(void **state) {
    static const char DOUBT[] =
        "SELECT count(*) FROM heat WHERE NOT disturbed AND doubtful = 2 AND context = 9";
    const char *f = *state;
    sqlite3 *db;
    Child c;
    CHILD_OUTPACE(&c, f, 0, "bench", "--store", "tiny", "--device", "null", "--k", "2,4", "--w", "1",
                  "--context", "0,9", "--rows", "0", "--db", "d.db");
    child_release(&c);
    assert_int_equal(sqlite3_open(folder_path(f, "d.db"), &db), SQLITE_OK);
    sqlite3_exec(db, "UPDATE surface SET flags = 0, disturbed = 0", NULL, NULL, NULL);
    sqlite3_exec(db, "UPDATE surface SET flags = 8, disturbed = samples WHERE k = 1 AND context = 9", NULL,
                 NULL, NULL);
    sqlite3_close(db);
    assert_int_equal(stores_ask(f, "d.db", DOUBT), 2);
    assert_int_equal(stores_ask(f, "d.db", "SELECT sum(doubtful > 0) FROM heat"), 3);
    assert_int_equal(stores_ask(f, "d.db", "SELECT sum(doubtful > 0) FROM surface_doubt"), 1);
    CHILD_OUTPACE(&c, f, 0, "show", "1", "--db", "d.db");
    int marked = 0;
    for (const char *at = text_get(&c.out); (at = strstr(at, "slowdown: one token was")); at++) marked++;
    assert_int_equal(marked, 2);
    child_release(&c);
}

// A grid for each batch, all over one token of one sequence; figures and show keep them apart.
static void batches(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "bench", "--store", "tiny", "--k", "1,2", "--w", "0,3", "--context", "25",
                  "--rows", "0", "--layout", "tree", "--batch", "1,3", "--samples", "2", "--db", "b.db");
    child_release(&c);
    assert_int_equal(stores_ask(*state, "b.db",
                                "SELECT count(*) FROM heat WHERE rows = sequences * (1 + k * w) AND"
                                " sequences IN (1, 3)"),
                     8);
    assert_int_equal(
        stores_ask(*state, "b.db",
                   "SELECT count(*) FROM surface AS s JOIN surface AS one ON one.k = 1 AND one.w = 0"
                   " AND one.sequences = 1 WHERE abs(s.slowdown - s.median_ns / one.median_ns) < 1e-6"),
        8);
    CHILD_OUTPACE(&c, *state, 0, "show", "1", "--db", "b.db");
    assert_non_null(strstr(text_get(&c.out), "batch"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "plot", "slowdown", "-o", "b.svg", "--db", "b.db");
    child_release(&c);
    size_t size;
    char *numbers = scratch_read(*state, "b.svg.dat", &size);
    assert_non_null(strstr(numbers, "context 25, tree: tiny"));
    assert_non_null(strstr(numbers, "context 25, tree, batch 3: tiny"));
    mem_free(numbers);
}

// The same command goes on with the units that are not there.
static void interrupted(void **state) {
    Child c;
    const char *const command[] = {"bench", "--store", "tiny", "--device",  "null", "--k",
                                   "1,2",   "--w",     "1",    "--context", "5,9",  "--rows",
                                   "1,3",   "--db",    "i.db", NULL,        NULL};
    const char *again[sizeof command / sizeof *command];
    child_outpace(&c, *state, 0, command);
    child_release(&c);
    int64_t all = stores_ask(*state, "i.db", "SELECT count(*) FROM surface");
    sqlite3 *db;
    assert_int_equal(sqlite3_open(folder_path(*state, "i.db"), &db), SQLITE_OK);
    sqlite3_exec(db, "DELETE FROM surface WHERE context = 9 AND (kind = 'step' OR rows = 3)", NULL, NULL,
                 NULL);
    assert_int_equal(sqlite3_changes(db), 2 + 1 + 7);
    sqlite3_close(db);
    child_outpace(&c, *state, 0, command);
    assert_non_null(strstr(text_get(&c.out), "of them from before"));
    child_release(&c);
    assert_int_equal(stores_ask(*state, "i.db", "SELECT count(*) FROM surface"), all);
    assert_int_equal(stores_ask(*state, "i.db", "SELECT count(*) FROM run"), 1);
    assert_int_equal(stores_ask(*state, "i.db",
                                "SELECT count(DISTINCT kind || context || k || w || a || b || rows)"
                                " FROM (SELECT kind, context, coalesce(k, 0) AS k, coalesce(w, 0) AS w,"
                                " coalesce(a, 0) AS a, coalesce(b, 0) AS b, rows FROM surface)"),
                     all);
    memcpy(again, command, sizeof command);
    again[sizeof command / sizeof *command - 2] = "--again";
    child_outpace(&c, *state, 0, again);
    child_release(&c);
    assert_int_equal(stores_ask(*state, "i.db", "SELECT count(*) FROM run"), 2);
}

// Rows that copy the cache are marked.
static void copied(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "bench", "--store", "tiny", "--k", "1,3", "--w", "2", "--context", "40",
                  "--rows", "0", "--samples", "1", "--threads", "1", "--cache", "copied", "--db", "c.db");
    child_release(&c);
    assert_int_equal(stores_ask(*state, "c.db",
                                "SELECT count(*) FROM surface WHERE cache = 'copied' AND layout = 'batch'"),
                     3);
}

// Where weights lie, and how one token's time changed over a context's grid, stand with the points, and are
// said of a run where they matter.
static void held_and_drifted(void **state) {
    Child c;
    const char *f = *state;
    CHILD_OUTPACE(&c, f, 0, "bench", "--store", "tiny", "--k", "1,2", "--w", "1", "--context", "5,9",
                  "--rows", "1", "--samples", "1", "--threads", "1", "--weights", "held", "--db", "h.db");
    child_release(&c);
    assert_int_equal(stores_ask(f, "h.db", "SELECT count(*) FROM surface WHERE weights IS NOT 'held'"), 0);
    assert_int_equal(stores_ask(f, "h.db", "SELECT count(*) FROM surface WHERE kind = 'step' AND drift > 0"),
                     2 * 3);
    assert_int_equal(
        stores_ask(f, "h.db",
                   "SELECT max(n) FROM (SELECT count(DISTINCT drift) AS n FROM surface GROUP BY context)"),
        1);
    assert_int_equal(stores_ask(f, "h.db", "SELECT count(drift) FROM surface WHERE kind <> 'step'"), 0);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(folder_path(f, "h.db"), &db), SQLITE_OK);
    sqlite3_exec(db, "UPDATE surface SET drift = iif(context = 9, 1.5, 1) WHERE kind = 'step'", NULL, NULL,
                 NULL);
    sqlite3_close(db);
    CHILD_OUTPACE(&c, f, 0, "store", "merge", "h.db", "--db", "both.db");
    child_release(&c);
    CHILD_OUTPACE(&c, f, 0, "show", "last", "--db", "both.db");
    assert_non_null(strstr(text_get(&c.out), "), weights held\n"));
    assert_non_null(strstr(text_get(&c.out), "at context 9 one token took 1.50 times as long after"));
    assert_null(strstr(text_get(&c.out), "at context 5"));
    child_release(&c);
    // The same command has nothing to measure, and reports the earlier measurements.
    CHILD_OUTPACE(&c, f, 0, "bench", "--store", "tiny", "--k", "1,2", "--w", "1", "--context", "5,9",
                  "--rows", "1", "--samples", "1", "--threads", "1", "--weights", "held", "--db", "h.db");
    assert_non_null(strstr(text_get(&c.out), "in the middle of 1 of 2 contexts"));
    child_release(&c);
    assert_int_equal(stores_ask(f, "h.db", "SELECT count(*) FROM run"), 1);
    CHILD_OUTPACE(&c, f, 0, "bench", "--store", "tiny", "--k", "1", "--w", "0", "--context", "5", "--rows",
                  "0", "--samples", "1", "--threads", "1", "--db", "m.db");
    child_release(&c);
    assert_int_equal(
        stores_ask(f, "m.db", "SELECT count(*) FROM surface WHERE weights = 'mapped' AND drift IS NULL"), 1);
    CHILD_OUTPACE(&c, f, 0, "show", "last", "--db", "m.db");
    assert_null(strstr(text_get(&c.out), "weights"));
    child_release(&c);
}

// Loops without end, one for each core that we may use; gives their number.
static int start_loops(pid_t *loops) {
    cpu_set_t usable, one;
    int count = 0;
    assert_int_equal(sched_getaffinity(0, sizeof usable, &usable), 0);
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &usable)) continue;
        loops[count] = fork();
        if (loops[count++]) continue;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sched_setaffinity(0, sizeof one, &one);
        for (;;) __asm__ volatile("");
    }
    return count;
}

// Beside two busy loops 32 rows took 32.7 times as long as one, in truth 10.5 times; nothing was said of it.
static void disturbed(void **state) {
    static pid_t loops[CPU_SETSIZE];
    const char *root = getenv("OUTPACE_ROOT"), *f = *state;
    char here[512], *model;
    Child c;
    snprintf(here, sizeof here, "%s/models/reference", root ? root : ".");
    model = realpath(here, NULL);
    assert_non_null(model);
    int count = start_loops(loops);
    CHILD_OUTPACE(&c, f, 0, "bench", "--store", model, "--k", "1", "--w", "0,31", "--context", "100",
                  "--rows", "0", "--threads", "1", "--db", "busy.db");
    for (int i = 0; i < count; i++) {
        kill(loops[i], SIGKILL);
        child_wait(loops[i]);
    }
    assert_non_null(strstr(text_get(&c.out), "could not be measured undisturbed"));
    child_release(&c);
    assert_true(stores_ask(f, "busy.db", "SELECT count(*) FROM surface WHERE flags & 8 AND disturbed > 0") >
                0);
    assert_int_equal(
        stores_ask(f, "busy.db", "SELECT count(*) FROM heat WHERE disturbed AND slowdown_low > slowdown"), 0);
    CHILD_OUTPACE(&c, f, 0, "show", "last", "--db", "busy.db");
    assert_non_null(strstr(text_get(&c.out), "how far off their times and slowdowns are is not known"));
    child_release(&c);
    free(model);
}

static void mistakes(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 2, "bench", "--store", "tiny", "--device", "null", "--weights", "held", "--db",
                  "n.db");
    assert_non_null(strstr(text_get(&c.err), "weights held needs device cpu; leave --weights out for null"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "bench", "--store", "tiny", "--k", "500", "--w", "500", "--db", "n.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "bench", "--store", "tiny", "--layout", "bush", "--db", "n.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "bench", "--store", "tiny", "--context", "5000", "--db", "n.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "bench", "--store", "tiny", "--cache", "moved", "--db", "n.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "bench", "--store", "tiny", "--cache", "copied", "--layout", "tree", "--db",
                  "n.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "bench", "--store", "tiny", "--exits", "90", "--db", "n.db");
    child_release(&c);
}

// A rolling cache holds the window; without one every position has its place.
static void named_and_without_window(void **state) {
    Child c;
    const char *f = *state;
    CHILD_OUTPACE(&c, f, 0, "model", "synth", "mistral-7b", "narrow", "--set", "sliding_window=64", "--set",
                  "hidden_size=64", "--set", "intermediate_size=64", "--set", "num_hidden_layers=1", "--set",
                  "num_attention_heads=2", "--set", "num_key_value_heads=2", "--set", "vocab_size=256");
    child_release(&c);
    for (int off = 0; off < 2; off++) {
        CHILD_OUTPACE(&c, f, 0, "bench", "--store", "narrow", "--k", "1", "--w", "0", "--rows", "0",
                      "--context", "3000", "--samples", "1", "--sequence", "--sliding-window",
                      off ? "off" : "on", "--name", "mine", "--db", "n.db");
        const char *said = strstr(text_get(&c.out), "a cache of ");
        double size = said ? strtod(said + 11, NULL) : -1;
        if (off ? size < 0.7 : size > 0.35 || size <= 0)
            fail_msg("window %s: '%s'", off ? "off" : "on", said);
        child_release(&c);
    }
    assert_int_equal(stores_ask(f, "n.db", "SELECT count(*) FROM run WHERE name = 'mine'"), 2);
    // A whole text: one row of 3,000 tokens behind nothing; the window leaves fewer positions to see.
    assert_int_equal(stores_ask(f, "n.db",
                                "SELECT count(*) FROM surface WHERE kind = 'prefill' AND k = 1 AND w = 2999 "
                                "AND rows = 3000 AND context = 0 AND median_ns > 0"),
                     2);
    assert_int_equal(stores_ask(f, "n.db",
                                "SELECT max(operations) > 3 * min(operations) FROM surface "
                                "WHERE kind = 'prefill'"),
                     1);
}

// A machine needs no store, and its steps are called priced everywhere.
static void priced(void **state) {
    static const char *const FIGURES[] = {"slowdown", "contexts"};
    Child c;
    const char *f = *state;
    for (int i = 0; i < 2; i++) {
        char svg[32], data[40];
        size_t size;
        snprintf(svg, sizeof svg, "%s.svg", FIGURES[i]);
        snprintf(data, sizeof data, "%s.dat", svg);
        CHILD_OUTPACE(&c, f, 0, "plot", FIGURES[i], "--on", "h100-measured", "--shape", "llama2-7b", "-o",
                      svg);
        child_release(&c);
        char *picture = scratch_read(f, svg, &size);
        assert_non_null(strstr(picture, "slowdown, priced")); // even without its title
        mem_free(picture);
        CHILD_OUTPACE(&c, f, 0, "plot", FIGURES[i], "--on", "h100-measured", "--shape", "llama2-7b", "-o",
                      svg, "--title", "--footer");
        child_release(&c);
        picture = scratch_read(f, svg, &size);
        char *numbers = scratch_read(f, data, &size);
        assert_non_null(strstr(picture, "Priced, not measured: Slowdown"));
        assert_non_null(strstr(picture, "priced for NVIDIA H100 SXM 80 GB, measured, shape llama2-7b"));
        assert_non_null(strstr(picture, ", fitted to steps of at most 512 rows"));
        assert_null(strstr(picture, "run 1"));
        assert_non_null(strstr(numbers, ": llama2-7b, priced: slowdown\n"));
        mem_free(picture);
        mem_free(numbers);
    }
    CHILD_OUTPACE(&c, f, 0, "plot", "contexts", "--on", "a100-80gb", "--shape", "llama2-7b", "-o", "-");
    assert_non_null(strstr(text_get(&c.out), "slowdown, priced"));
    assert_non_null(strstr(text_get(&c.out), ">256<"));
    child_release(&c);
    CHILD_OUTPACE(&c, f, 0, "plot", "slowdown", "--on", "h100", "--shape", "llama2-7b", "--bits", "16,8,4",
                  "--batch", "1,4", "-o", "bits.svg");
    child_release(&c);
    size_t size;
    char *numbers = scratch_read(f, "bits.svg.dat", &size);
    assert_non_null(strstr(numbers, "context 25, tree: llama2-7b, priced: slowdown\n"));
    assert_non_null(strstr(numbers, "context 25, tree, batch 4: llama2-7b, priced: slowdown\n"));
    assert_non_null(strstr(numbers, "context 25, tree: llama2-7b Q8, priced: slowdown\n"));
    mem_free(numbers);
    CHILD_OUTPACE(&c, f, 2, "plot", "slowdown", "--on", "h100-measured");
    assert_non_null(strstr(text_get(&c.err), "--on goes with --shape"));
    child_release(&c);
    CHILD_OUTPACE(&c, f, 2, "plot", "slowdown", "--on", "h100-measured", "--shape", "llama2-7b", "--model",
                  "x");
    assert_non_null(strstr(text_get(&c.err), "draws no run: leave out what"));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(grid_and_parts),
                                       cmocka_unit_test(trees),
                                       cmocka_unit_test(batches),
                                       cmocka_unit_test(reference),
                                       cmocka_unit_test(doubtful_reference),
                                       cmocka_unit_test(interrupted),
                                       cmocka_unit_test(copied),
                                       cmocka_unit_test(named_and_without_window),
                                       cmocka_unit_test(held_and_drifted),
                                       cmocka_unit_test(disturbed),
                                       cmocka_unit_test(mistakes),
                                       cmocka_unit_test(priced)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
