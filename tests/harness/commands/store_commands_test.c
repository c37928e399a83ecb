// The real program on a store: sql, export, import, merge, gc.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "tests/support/child.h"
#include "tests/support/filled_store.h"
#include "tests/support/scratch.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void make(const char *folder, const char *name, int passes) {
    FilledStore f;
    Error e = {0};
    if (!filled_open(&f, folder_path(folder, name), NULL, 3, 4, &e) || !filled_add_all(&f, passes, &e))
        fail_msg("%s", e.text);
    filled_close(&f);
}

static void expect_out(const Child *c, const char *want) {
    if (!strstr(text_get(&c->out), want)) fail_msg("wanted '%s', got '%s'", want, text_get(&c->out));
}

static void expect_err(const Child *c, const char *want) {
    if (!strstr(text_get(&c->err), want)) fail_msg("wanted '%s', got '%s'", want, text_get(&c->err));
}

// A terminal gets no line that it must break, and hears which columns it does not see; a pipe gets them all.
static void fits_the_terminal(void **state) {
    Child c = {0};
    make(*state, "a.db", 1);
    CHILD_TERMINAL(&c, *state, 80, 0, "show", "1", "--db", "a.db");
    if (child_widest(&c) > 80) fail_msg("%s", text_get(&c.out));
    expect_out(&c, "S  [95%]");
    expect_out(&c, "left out of this width: ");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "show", "1", "--db", "a.db");
    expect_out(&c, "  rows/step  CTAR1  CTAR2  CTAR4  tokens/s ");
    if (strstr(text_get(&c.out), "left out")) fail_msg("%s", text_get(&c.out));
    child_release(&c);
}

static void all_fit_the_terminal(void **state) {
    static const char CONFIG[] = "name: x\nmodels: [tiny]\ndatasets: [{name: code, limit: 1}]\n"
                                 "hardware: {device: 'null'}\nmethods: [jacobi, prompt-lookup]\n";
    static const char *const COMMANDS[] = {
        "--help",
        "bench --help",
        "table",
        "table --claims",
        "table lookahead-figure-4b --about",
        "methods",
        "datasets",
        "datasets chat",
        "datasets --formats",
        "plan x.yaml --points",
        "bench tiny --device null --tokens 1,9 --samples 1 --seconds 0",
        "show --db a.db",
        "show last --db a.db",
        "compare 1 1 --db a.db",
        "table",
        "table ngrammys-table-1 --run 1 --db a.db",
        "simulate 1 --on l4 --shape llama2-70b --against 1 --db a.db",
    };
    Child c = {0};
    make(*state, "a.db", 1);
    scratch_write(*state, "x.yaml", CONFIG, sizeof CONFIG - 1);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        char line[96], *words[16] = {0}, *rest = NULL;
        child_release(&c);
        snprintf(line, sizeof line, "%s", COMMANDS[i]);
        for (int k = 0; k < 15 && (words[k] = strtok_r(k ? NULL : line, " ", &rest)); k++) continue;
        child_terminal(&c, *state, 80, 0, (const char *const *)words);
        int letters = child_widest(&c);
        if (letters < 40 || letters > 80) fail_msg("%d letters wide:\n%s", letters, text_get(&c.out));
        if (i == 1)
            expect_out(&c, "forward pass, LM\nhead on every node, best token of each. Verification pays");
    }
    child_release(&c);
}

static void questions(void **state) {
    Child c = {0};
    make(*state, "a.db", 1);
    CHILD_OUTPACE(&c, *state, 0, "sql",
                  "SELECT method, count(*) AS n FROM sample JOIN point ON point.id = point_id GROUP BY 1",
                  "--db", "a.db");
    assert_string_equal(text_get(&c.out), "method          n\nautoregressive  4\nngrammys        8\n");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "sql", "SELECT 1 AS x, 'a\nb' AS y", "--format", "jsonl", "--db", "a.db");
    assert_string_equal(text_get(&c.out), "{\"x\":1,\"y\":\"a\\nb\"}\n");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "sql", "DELETE FROM step", "--db", "a.db");
    expect_err(&c, "the query would write");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "sql", "SELECT zeroblob(1000000000)", "--db", "a.db");
    assert_string_equal(text_get(&c.err), "outpace: store 'a.db': a value of the query is too long\n");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "sql", "SELECT 1", "--db", "none.db");
    expect_err(&c, "there is none");
    child_release(&c);
}

// No file is made, and existing ones are unchanged.
static void refused_imports(void **state) {
    static const char *const ROWS[][2] = {{"steps", "holds no samples"}, {"spec-bench", "holds no answers"}};
    Child c = {0};
    size_t before, after;
    scratch_write(*state, "none.jsonl", "\n", 1);
    make(*state, "a.db", 1);
    mem_free(scratch_read(*state, "a.db", &before));
    for (size_t i = 0; i < 2; i++) {
        CHILD_OUTPACE(&c, *state, 2, "store", "import", ROWS[i][0], "none.jsonl", "--db", "new/b.db");
        expect_err(&c, ROWS[i][1]);
        assert_int_equal(access(folder_path(*state, "new"), F_OK), -1);
        child_release(&c);
        CHILD_OUTPACE(&c, *state, 2, "store", "import", ROWS[i][0], "none.jsonl", "--db", "a.db");
        expect_err(&c, ROWS[i][1]);
        mem_free(scratch_read(*state, "a.db", &after));
        assert_int_equal(after, before);
        child_release(&c);
    }
}

static void formats(void **state) {
    Child c = {0};
    size_t n;
    make(*state, "a.db", 2);
    CHILD_OUTPACE(&c, *state, 0, "store", "export", "1", "--format", "spec-bench", "-o", "answers", "--db",
                  "a.db");
    expect_out(&c, "answers/2-ngrammys-pass1.jsonl: 2 answers");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "spec-bench", "answers/2-ngrammys-pass1.jsonl",
                  "--baseline", "answers/1-autoregressive-pass1.jsonl", "--method", "n", "--db", "b.db");
    expect_out(&c, "run 1: 8 samples with 80 steps");
    assert_null(strstr(text_get(&c.out), "without an autoregressive baseline"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "show", "1", "--db", "b.db");
    expect_out(&c, "  not compared  "); // its text with the baseline's
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "spec-bench", "answers/2-ngrammys-pass1.jsonl",
                  "--method", "n", "--db", "alone.db");
    expect_out(&c, "points without an autoregressive baseline: 1; they have no speedup: import them with it");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "show", "1", "--db", "alone.db");
    expect_out(&c, "points without an autoregressive baseline: 1; they have no speedup: import them with it");
    expect_out(&c, "  not compared  ");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "show", "1", "--db", "alone.db", "--json");
    expect_out(&c, "\"speedup\":null,\"speedup_low\":null,\"speedup_high\":null,\"speedup_e2e\":null");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "sql", "SELECT metric FROM estimate WHERE metric GLOB 'speedup*'", "--db",
                  "alone.db");
    assert_null(strstr(text_get(&c.out), "speedup"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "show", "1", "--db", "b.db");
    assert_null(strstr(text_get(&c.out), "no speedup"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "export", "1", "--what", "steps", "-o", "s.jsonl", "--db", "a.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "steps", "s.jsonl", "--name", "other", "--db", "b.db");
    expect_out(&c, "run 2: 24 samples with 240 steps");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "store", "import", "steps", "s.jsonl", "--db", "b.db");
    expect_err(&c, "is in the store already, as run 2");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "steps", "s.jsonl", "--db", "own/c.db");
    expect_out(&c, "run 1: 24 samples with 240 steps");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "export", "1", "--what", "samples", "-o", "samples.csv", "--db",
                  "a.db");
    child_release(&c);
    char *csv = scratch_read(*state, "samples.csv", &n);
    assert_int_equal(strncmp(csv, "point,label,dataset,prompt,turn,", 32), 0);
    mem_free(csv);
    // A failure leaves the old file, and a device, here by a link to it.
    CHILD_OUTPACE(&c, *state, 2, "store", "export", "1", "--what", "nothing", "-o", "samples.csv", "--db",
                  "a.db");
    expect_err(&c, "must be results, samples, steps or fits");
    child_release(&c);
    size_t again;
    mem_free(scratch_read(*state, "samples.csv", &again));
    assert_int_equal(again, n);
    assert_int_equal(symlink("/dev/full", folder_path(*state, "full")), 0);
    CHILD_OUTPACE(&c, *state, 1, "store", "export", "1", "--what", "samples", "-o", "full", "--db", "a.db");
    expect_err(&c, "is the disk full?");
    child_release(&c);
    assert_int_equal(access(folder_path(*state, "full"), F_OK), 0);
    // Steps of chosen points, and of no other.
    CHILD_OUTPACE(&c, *state, 0, "store", "export", "1", "--what", "steps", "--format", "jsonl", "--method",
                  "ngrammys", "--db", "a.db");
    expect_out(&c, "\"method\":\"ngrammys\"");
    assert_null(strstr(text_get(&c.out), "\"method\":\"autoregressive\""));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "store", "export", "1", "--format", "xml", "--db", "a.db");
    expect_err(&c, "--format is 'xml', must be csv, jsonl, perfetto or spec-bench");
    child_release(&c);
}

// An export may be written again, in each of its forms; the store, by whatever name, and any other file stay.
static void exports_replace_exports(void **state) {
    static const char *const FORMATS[] = {"csv", "jsonl"}, *const TABLES[] = {"results", "samples", "steps"};
    static const char *const OTHERS[] = {"a.db", "./a.db", "link.db", "notes.txt", "1.csv"};
    Child c = {0};
    size_t n;
    make(*state, "a.db", 1);
    scratch_write(*state, "notes.txt", "mine", 4);
    assert_int_equal(link(folder_path(*state, "a.db"), folder_path(*state, "link.db")), 0);
    for (int i = 0; i < 2 * 2 * 3; i++) {
        char file[32];
        snprintf(file, sizeof file, "%d.%s", i / 4, FORMATS[i / 2 % 2]);
        CHILD_OUTPACE(&c, *state, 0, "store", "export", "--db", "a.db", "--format", FORMATS[i / 2 % 2],
                      "--what", TABLES[i / 4], "-o", file);
        child_release(&c);
    }
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        CHILD_OUTPACE(&c, *state, 2, "store", "export", "--db", "a.db", "-o", OTHERS[i]);
        expect_err(&c, OTHERS[i]);
        child_release(&c);
    }
    CHILD_OUTPACE(&c, *state, 0, "show", "last", "--db", "a.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "export", "--db", "a.db", "-o", "notes.txt", "--force");
    child_release(&c);
    char *csv = scratch_read(*state, "notes.txt", &n);
    CHILD_OUTPACE(&c, *state, 0, "store", "export", "--db", "a.db", "-o", "/dev/stdout");
    assert_string_equal(text_get(&c.out), csv);
    child_release(&c);
    mem_free(csv);
}

// Whoever reads an export may have enough of it: that is no failure, and no full disk.
static void readers_may_leave(void **state) {
    Child c = {0};
    int ends[2];
    make(*state, "a.db", 1);
    char *program = realpath(getenv("OUTPACE") ? getenv("OUTPACE") : "./outpace", NULL);
    assert_non_null(program);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    const char *argv[] = {program, "store", "export", "1", "--what", "steps", "--db", "a.db", NULL};
    FILE *err = tmpfile();
    assert_int_equal(child_wait(child_start(*state, argv, STDIN_FILENO, ends[1], fileno(err))), 0);
    assert_int_equal(fseek(err, 0, SEEK_END), 0);
    assert_int_equal(ftell(err), 0);
    fclose(err);
    close(ends[1]);
    free(program);
    CHILD_OUTPACE(&c, *state, 0, "show", "1", "--db", "a.db");
    expect_out(&c, "run 1, filled, not finished: outpace");
    child_release(&c);
}

static void together_and_away(void **state) {
    Child c = {0};
    make(*state, "a.db", 1);
    make(*state, "b.db", 2);
    CHILD_OUTPACE(&c, *state, 0, "store", "merge", "a.db", "b.db", "--db", "all.db");
    assert_string_equal(text_get(&c.out),
                        "a.db: 1 new runs, 12 new samples\nb.db: 1 new runs, 24 new samples\n");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "store", "merge", "c.db", "--db", "none.db"); // a wrong name makes no store
    expect_err(&c, "store 'c.db': there is none");
    assert_false(file_exists(folder_path(*state, "none.db")));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "gc", "2", "--check", "--db", "all.db");
    expect_out(&c, "deleted 1 runs,");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "sql", "SELECT count(*) AS n FROM sample", "--format", "csv", "--db",
                  "all.db");
    assert_string_equal(text_get(&c.out), "n\r\n12\r\n");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "gc", "1", "--db",
                  "all.db"); // the last: nothing is left that it stood on
    expect_out(&c, "4 prompts, 1 datasets, 1 models, 1 environments");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "store", "gc", "7", "--db", "all.db");
    expect_err(&c, "7");
    child_release(&c);
}

static void alter(const char *folder, const char *name, const char *sql) {
    sqlite3 *db;
    if (sqlite3_open(folder_path(folder, name), &db) || sqlite3_exec(db, sql, NULL, NULL, NULL))
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

// A store that was altered is named, by whatever it's asked; it makes no store and changes none.
static void altered(void **state) {
    Child c = {0};
    size_t n;
    make(*state, "a.db", 1);
    char *bytes = scratch_read(*state, "a.db", &n);
    scratch_write(*state, "trigger.db", bytes, n);
    scratch_write(*state, "sums.db", bytes, n);
    scratch_write(*state, "other.db", bytes, n);
    mem_free(bytes);
    alter(*state, "trigger.db", "CREATE TRIGGER e AFTER INSERT ON attempt BEGIN DELETE FROM sample; END");
    alter(*state, "sums.db", "UPDATE sample SET steps = 1 WHERE point_id = 2");
    alter(*state, "other.db", "UPDATE sample SET decode_ns = decode_ns + 1 WHERE point_id = 2");
    CHILD_OUTPACE(&c, *state, 2, "show", "--db", "trigger.db");
    expect_err(&c, "outpace: store 'trigger.db': its trigger 'e' was not made by this program: drop it");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "store", "merge", "a.db", "--db", "trigger.db");
    expect_err(&c, "its trigger 'e'");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 1, "store", "gc", "--check", "--db", "sums.db");
    expect_err(&c,
               "outpace: store 'sums.db': it was altered: run 1, point 2, pass 0, prompt 0, turn 0: steps is "
               "1, but its steps give 10; samples like this: 4;");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 1, "store", "merge", "a.db", "sums.db", "--db", "none.db");
    expect_err(&c, "store 'sums.db': it was altered");
    assert_false(file_exists(folder_path(*state, "none.db")));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 1, "store", "merge", "other.db", "--db", "a.db");
    assert_string_equal(text_get(&c.out),
                        "other.db: 0 new runs, 0 new samples, 4 samples differ and stay as in "
                        "'a.db': one of both stores was altered\n");
    child_release(&c);
}

// What somebody else's store calls its things does not reach the terminal as it is; JSON escapes it.
static void foreign_names(void **state) {
    static const char *const ASK[][4] = {
        {"show", "last"},
        {"show"},
        {"compare", "1", "1"},
        {"table"},
        {"sql", "SELECT label, run.name FROM run JOIN point ON run.id = run_id"},
    };
    sqlite3 *db;
    Child c = {0};
    make(*state, "a.db", 1);
    assert_int_equal(sqlite3_open(folder_path(*state, "a.db"), &db), SQLITE_OK);
    static const char CHANGE[] =
        "UPDATE point SET label = 'a' || char(27) || '[31m' || char(7) || char(155) || char(13) || 'b';"
        "UPDATE run SET name = 'n' || char(27) || '[2J' || char(10) || char(127) || 'm';"
        "UPDATE model SET name = 'x' || char(27) || ']0;title' || char(7), stand_in = char(8);"
        "UPDATE dataset SET name = char(27) || 'c'; UPDATE environment SET cpu = char(27) || 'c'";
    assert_int_equal(sqlite3_exec(db, CHANGE, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    for (size_t i = 0; i < sizeof ASK / sizeof *ASK; i++) {
        const char *words[] = {ASK[i][0], "--db", "a.db", ASK[i][1], ASK[i][2], ASK[i][3], NULL};
        child_outpace(&c, *state, 0, words);
        for (const unsigned char *p = (const unsigned char *)text_get(&c.out); *p; p++)
            if ((*p < ' ' && *p != '\n') || *p == 127 || (*p == 0xc2 && p[1] < 0xa0))
                fail_msg("%s printed %02x: %s", ASK[i][0], *p, text_get(&c.out));
        child_release(&c);
    }
    CHILD_OUTPACE(&c, *state, 0, "show", "--json", "--db", "a.db");
    expect_out(&c, "\\u001B[31m\\u0007");
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fits_the_terminal, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(all_fit_the_terminal, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(questions, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refused_imports, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(formats, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(exports_replace_exports, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(readers_may_leave, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(foreign_names, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(altered, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(together_and_away, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
