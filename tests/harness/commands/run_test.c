// Experiments run by the real program on the null backend: a whole run, one that is killed, an
// interrupted one, changed content, where models come from, messages. Those that can't be run are in
// run_refused_test.c.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tests/support/stores.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROMPTS = 20 };

static const char CONFIG[] = "name: test\n"
                             "models: [{name: tiny, target: tiny}]\n"
                             "datasets: [{name: own, path: own.jsonl, turns: 2}]\n"
                             "hardware: {device: 'null'}\n"
                             "generation: {max_tokens: 24, ignore_eos: on}\n"
                             "methods:\n"
                             "  - jacobi\n"
                             "  - {name: prompt-lookup, matrix: {allow_short: on, draft: [2, 6]}}\n"
                             "  - lookahead\n";

static void write_prompts(const char *folder) {
    FILE *f = fopen(folder_path(folder, "own.jsonl"), "w");
    assert_non_null(f);
    for (int i = 0; i < PROMPTS; i++)
        fprintf(f, "{\"turns\": [\"text %d of this file, and more of it\"%s]%s}\n", i,
                i % 3 ? "" : ", \"and on\"", i % 2 ? "" : ", \"reference\": \"a file of text\"");
    fclose(f);
}

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    folder_write(*state, "x.yaml", CONFIG);
    write_prompts(*state);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    return 0;
}

// --- whole runs ------------------------------------------------------------------------------------------

static void whole(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "whole.db");
    assert_non_null(strstr(text_get(&c.out), "4 points measured, 0 skipped, 0 failed, 0 with another text"));
    assert_int_equal(strchr(text_get(&c.err), '\r') != NULL, 0); // quiet off a terminal
    child_release(&c);
    int turns = PROMPTS + (PROMPTS + 2) / 3;
    assert_int_equal(stores_ask(*state, "whole.db", "SELECT count(*) FROM sample"),
                     5 * turns); // a baseline of its own
    assert_int_equal(stores_ask(*state, "whole.db", "SELECT count(DISTINCT attempt_id) FROM sample"), 1);
    assert_int_equal(stores_ask(*state, "whole.db", "SELECT result = 'done' FROM attempt"), 1);
    // Every method takes every place equally often.
    assert_int_equal(
        stores_ask(*state, "whole.db",
                   "SELECT count(*) FROM (SELECT point_id, position FROM sample JOIN prompt ON prompt.id ="
                   " prompt_id WHERE turn = 0 GROUP BY 1, 2 HAVING count(*) = 4)"),
        25);
    assert_int_equal(stores_ask(*state, "whole.db",
                                "SELECT count(*) FROM sample s WHERE tokens <> (SELECT sum(emitted) FROM"
                                " step WHERE sample_id = s.id)"),
                     0);
    // Ten prompts have a reference of their first turn; outputs are equal, and scored once.
    assert_int_equal(stores_ask(*state, "whole.db", "SELECT count(*) FROM score"), 3 * PROMPTS / 2);
    // Resampled here, and by the store's own views over the same samples.
    assert_int_equal(
        stores_ask(*state, "whole.db",
                   "SELECT count(*) FROM point_speedup AS s JOIN estimate AS e USING (point_id) WHERE"
                   " (metric = 'speedup' AND abs(value / speedup - 1) < 1e-9) OR"
                   " (metric = 'speedup_e2e' AND abs(value / speedup_e2e - 1) < 1e-9) OR"
                   " (metric = 'speedup_specbench' AND abs(value / speedup_specbench - 1) < 1e-9)"),
        3 * 5);
    // The same command again has nothing to do.
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "whole.db");
    child_release(&c);
    assert_int_equal(stores_ask(*state, "whole.db", "SELECT count(DISTINCT attempt_id) FROM sample"), 1);
    assert_int_equal(stores_ask(*state, "whole.db", "SELECT count(*) FROM run"), 1);
}

// A line of the table, and texts below it.
static void expect_status(const char *folder, const char *db, const char *row, const char *below,
                          const char *last) {
    Child c;
    CHILD_OUTPACE(&c, folder, 0, "status", "--db", db);
    const char *out = text_get(&c.out);
    if (!strstr(out, row) || !strstr(out, below) || !strstr(out, last))
        fail_msg("status of %s: wanted '%s', '%s', '%s', got: %s", db, row, below, last, out);
    child_release(&c);
}

// Parts in stores of their own, one of them in two goes, merged: the same run as in one piece, each method
// compared with a baseline of its own machine.
static void parts(void **state) {
    static const char TOKENS[] =
        "SELECT sum(tokens * point.number) FROM sample JOIN point ON point.id = point_id"
        " WHERE method <> 'autoregressive'",
                      STEPS[] =
                          "SELECT sum(steps * point.number) FROM sample JOIN point ON point.id = point_id"
                          " WHERE method <> 'autoregressive'";
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "1.db", "--shard", "1/3");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "2.db", "--shard", "2/3");
    child_release(&c);
    setenv("SLURM_ARRAY_TASK_ID", "7", 1);
    setenv("SLURM_ARRAY_TASK_MIN", "5", 1);
    setenv("SLURM_ARRAY_TASK_COUNT", "3", 1);
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "3.db");
    child_release(&c);
    setenv("SLURM_ARRAY_TASK_COUNT", "2", 1);
    CHILD_OUTPACE(&c, *state, 2, "run", "x.yaml", "--db", "4.db");
    assert_non_null(strstr(text_get(&c.err), "give it numbers without gaps"));
    child_release(&c);
    unsetenv("SLURM_ARRAY_TASK_ID");
    CHILD_OUTPACE(&c, *state, 0, "run", "last", "--db", "2.db"); // it knows its part
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "merge", "1.db", "2.db", "3.db", "--db", "merged.db");
    child_release(&c);
    assert_int_equal(stores_ask(*state, "merged.db", "SELECT count(*) FROM run"), 1);
    expect_status(*state, "merged.db", "all 3  done", "3 of 3 parts measured", "100%\n");
    CHILD_OUTPACE(&c, *state, 0, "store", "merge", "1.db", "--db", "one.db");
    child_release(&c);
    expect_status(*state, "one.db", "1/3  done", "1 of 3 parts measured", " of about ");
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "cut.db", "--shard", "1/2");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "store", "merge", "1.db", "cut.db", "--db", "cuts.db");
    child_release(&c);
    expect_status(*state, "cuts.db", "1/2  done", "there are parts of 2 and parts of 3:", "");
    assert_int_equal(
        stores_ask(*state, "merged.db", "SELECT count(*) FROM point WHERE method <> 'autoregressive'"), 4);
    assert_int_equal(stores_ask(*state, "merged.db", TOKENS), stores_ask(*state, "whole.db", TOKENS));
    assert_int_equal(stores_ask(*state, "merged.db", STEPS), stores_ask(*state, "whole.db", STEPS));
    assert_int_equal(
        stores_ask(*state, "merged.db",
                   "SELECT count(*) FROM point p JOIN sample s ON s.point_id = p.id JOIN sample b ON"
                   " b.point_id = p.baseline_id AND b.prompt_id = s.prompt_id AND b.pass = s.pass"
                   " WHERE b.attempt_id = s.attempt_id"),
        stores_ask(*state, "whole.db",
                   "SELECT count(*) FROM sample JOIN point ON point.id ="
                   " point_id WHERE method <> 'autoregressive'"));
    assert_int_equal(stores_ask(*state, "merged.db", "SELECT count(*) FROM result WHERE speedup > 0"),
                     4 + stores_ask(*state, "merged.db",
                                    "SELECT count(*) FROM point WHERE method ="
                                    " 'autoregressive'"));
    CHILD_OUTPACE(&c, *state, 2, "run", "x.yaml", "--db", "4.db", "--shard", "4/3");
    assert_non_null(strstr(text_get(&c.err), "--shard '4/3': it must be i/n with i from 1 to n"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "run", "x.yaml", "--db", "4.db", "--shard", "30/30");
    assert_non_null(strstr(text_get(&c.err), "has no points: there are only 4"));
    child_release(&c);
}

static void second_turns_follow_replies(void **state) {
    // A prompt of two turns: the second's holds the first, its reply and the question.
    assert_int_equal(
        stores_ask(*state, "whole.db",
                   "SELECT count(*) FROM sample b JOIN prompt q ON q.id = b.prompt_id AND q.turn = 1"
                   " JOIN prompt p ON p.dataset_id = q.dataset_id AND p.number = q.number AND p.turn = 0"
                   " JOIN sample a ON a.prompt_id = p.id AND a.point_id = b.point_id AND a.pass = b.pass"
                   " WHERE b.prompt_tokens > a.prompt_tokens + 2"),
        5 * ((PROMPTS + 2) / 3));
}

static void changed_content(void **state) {
    Child c;
    char config[2048];
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "whole.db", "--set", "generation.max_tokens=8");
    child_release(&c);
    assert_int_equal(stores_ask(*state, "whole.db", "SELECT count(*) FROM run"), 2);
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "whole.db", "--again");
    child_release(&c);
    assert_int_equal(stores_ask(*state, "whole.db", "SELECT count(*) FROM run"), 3);
    // A comment and a name in the config change nothing that is measured.
    snprintf(config, sizeof config, "# a comment\n%s", CONFIG);
    folder_write(*state, "y.yaml", config);
    CHILD_OUTPACE(&c, *state, 0, "run", "y.yaml", "--db", "whole.db");
    child_release(&c);
    assert_int_equal(stores_ask(*state, "whole.db", "SELECT count(*) FROM run"), 3);
    FILE *f = fopen(folder_path(*state, "own.jsonl"), "a");
    assert_non_null(f);
    fputs("{\"turns\": [\"one more\"]}\n", f);
    fclose(f);
    CHILD_OUTPACE(&c, *state, 2, "run", "last", "--db", "whole.db");
    assert_non_null(strstr(text_get(&c.err), "have changed since that run"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "whole.db");
    child_release(&c);
    assert_int_equal(stores_ask(*state, "whole.db", "SELECT count(*) FROM run"), 4);
    write_prompts(*state);
}

// --- killed and interrupted ------------------------------------------------------------------------------

// Runs the config in the folder; its events and errors go to the descriptors given, or nowhere.
static pid_t start(const char *folder, const char *db, int events, int errors) {
    const char *program = getenv("OUTPACE") ? getenv("OUTPACE") : "./outpace";
    char *path = realpath(program, NULL);
    assert_non_null(path);
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t pid = child_start(folder,
                            (const char *const[]){path, "run", "x.yaml", "--set", "measurement.passes=3",
                                                  "--json", "--db", db, NULL},
                            nowhere, events < 0 ? nowhere : events, errors < 0 ? nowhere : errors);
    close(nowhere);
    free(path);
    return pid;
}

// One that has measured something. It cannot be done: its events fill the pipe, from which they are read on
// only by finish.
static pid_t start_and_see(const char *folder, const char *db, int errors, int *from) {
    int ends[2];
    char got[4096];
    Text events = {0};
    ssize_t bytes;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, (int)sizeof got) >= 0);
    pid_t pid = start(folder, db, ends[1], errors);
    close(ends[1]);
    while (!strstr(text_get(&events), "\"event\":\"sample\"") && (bytes = read(ends[0], got, sizeof got)) > 0)
        text_add(&events, got, (size_t)bytes);
    assert_non_null(strstr(text_get(&events), "\"event\":\"sample\""));
    text_release(&events);
    *from = ends[0];
    return pid;
}

static int finish(pid_t pid, int from) {
    char got[4096];
    while (read(from, got, sizeof got) > 0) continue;
    close(from);
    return child_wait(pid);
}

static void stopped(const char *folder, const char *db, int signal_number, int want) {
    int from;
    pid_t pid = start_and_see(folder, db, -1, &from);
    for (int i = 0; i < 2; i++) kill(pid, signal_number), usleep(10000); // a process's group may get it, too
    assert_int_equal(finish(pid, from), want);
    assert_true(stores_ask(folder, db, "SELECT count(DISTINCT point_id || ' ' || pass) < 5 * 3 FROM sample"));
}

// Killed, it goes on by the same command; interrupted, its prompt ends, and it is resumed by its number.
static void killed_and_interrupted(void **state) {
    Child c;
    assert_int_equal(child_wait(start(*state, "calm.db", -1, -1)), 0);
    stopped(*state, "killed.db", SIGKILL, 128 + SIGKILL);
    assert_int_equal(child_wait(start(*state, "killed.db", -1, -1)), 0);
    stores_same(*state, "calm.db", "killed.db");
    stopped(*state, "interrupted.db", SIGINT, 130);
    assert_int_equal(stores_ask(*state, "interrupted.db", "SELECT result = 'interrupted' FROM attempt"), 1);
    CHILD_OUTPACE(&c, *state, 0, "run", "1", "--db", "interrupted.db");
    child_release(&c);
    stores_same(*state, "calm.db", "interrupted.db");
}

// So it ends where another program keeps the store locked, too.
static void interrupted_while_it_waits(void **state) {
    int from, ends[2];
    char line[1024] = {0};
    sqlite3 *other;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = start_and_see(*state, "waits.db", ends[1], &from);
    close(ends[1]);
    sqlite3_open(folder_path(*state, "waits.db"), &other);
    sqlite3_busy_timeout(other, 60000);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    kill(pid, SIGINT);
    int code = finish(pid, from);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    close(ends[0]);
    sqlite3_close(other);
    assert_int_equal(code, 130);
    assert_non_null(strstr(line, "outpace: run: interrupted"));
    assert_non_null(strstr(line, "; every prompt that ended is kept: the same command continues\n"));
    assert_int_equal(child_wait(start(*state, "waits.db", -1, -1)), 0);
    stores_same(*state, "calm.db", "waits.db");
}

// While a process measures a run, no other does, nor takes it away.
static void one_at_a_time(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "claimed.db", "--set", "datasets.own.limit=2");
    child_release(&c);
    Store *s = store_open(folder_path(*state, "claimed.db"), STORE_WRITE, NULL, NULL);
    assert_true(s && store_claim(s, 1, NULL));
    CHILD_OUTPACE(&c, *state, 2, "run", "last", "--db", "claimed.db");
    assert_non_null(strstr(text_get(&c.err), "another process measures run 1"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "store", "gc", "1", "--db", "claimed.db");
    assert_non_null(strstr(text_get(&c.err), "another process measures run 1"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "show", "--db", "claimed.db");
    assert_non_null(strstr(text_get(&c.out), " running "));
    child_release(&c);
    store_close(s);
    CHILD_OUTPACE(&c, *state, 0, "run", "last", "--db", "claimed.db");
    child_release(&c);
    assert_int_equal(stores_ask(*state, "claimed.db", "SELECT count(*) FROM attempt"),
                     2); // of those that began
}

// --- where models come from ------------------------------------------------------------------------------

static void in_order(const char *folder, const char *config, const char *set) {
    Child c;
    CHILD_OUTPACE(&c, folder, 0, "plan", "--check", config, "--set", set, "--set", "methods=[speculative]",
                  "--set", "hardware.device=cpu");
    assert_non_null(strstr(text_get(&c.out), "1 point, 0 cannot be run"));
    child_release(&c);
}

// A config that ships, by its name, until the store has a run of that name.
static void configs_by_name(void **state) {
    static const char *const NOTES[] = {
        "note: running 'configs/mine.yaml'\n",
        "note: continuing the run 'mine' of 'n.db'; the config is 'configs/mine.yaml'\n",
        "note: running 'configs/mine.yaml'\n"};
    folder_write(*state, "mine.yaml",
                 "name: mine\nmodels: [{name: tiny, target: tiny}]\nhardware: {device: 'null'}\n"
                 "datasets: [{name: own, path: own.jsonl, limit: 1}]\nmethods: [jacobi]\n");
    setenv("OUTPACE_CONFIGS", *state, 1);
    for (int i = 0; i < 3; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 0, "run", "mine", "--db", "n.db", i == 2 ? "--threads" : NULL, "1");
        if (!strstr(text_get(&c.err), NOTES[i]))
            fail_msg("run mine, time %d: wanted '%s', got '%s'", i + 1, NOTES[i], text_get(&c.err));
        child_release(&c);
    }
    assert_int_equal(stores_ask(*state, "n.db", "SELECT count(*) FROM run"), 2);
    Child c;
    CHILD_OUTPACE(&c, *state, 2, "run", "mime", "--db", "n.db");
    assert_string_equal(text_get(&c.err),
                        "outpace: there is no config 'mime'; did you mean 'configs/mine.yaml'?\n");
    child_release(&c);
    unsetenv("OUTPACE_CONFIGS");
}

static void models(void **state) {
    Child c;
    char *cache = realpath(folder_path(*state, "tiny"), NULL); // any folder will do
    assert_int_equal(mkdir(folder_path(*state, "family"), 0777), 0);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "family/large");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "family/small", "--seed", "2");
    child_release(&c);
    setenv("OUTPACE_MODELS", "family", 1);
    in_order(*state, "x.yaml", "models=[{reference: large, draft: small}]");
    in_order(*state, "x.yaml", "models=[{reference: large, draft: ./tiny}]");
    unsetenv("OUTPACE_MODELS");
    setenv("XDG_CACHE_HOME", cache, 1);
    static const char SYNTHESISED[] = "models=[{synthesise: tiny, seed: 3, draft: tiny}]";
    in_order(*state, "x.yaml", SYNTHESISED);
    assert_int_equal(access(folder_path(*state, "tiny/outpace"), F_OK), -1); // described only
    for (int i = 0; i < 2; i++) {
        CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "made.db", "--set", SYNTHESISED, "--set",
                      "methods=[speculative]", "--set", "datasets.own.limit=1");
        child_release(&c);
    }
    assert_int_equal(folder_count(folder_path(*state, "tiny/outpace/random")), 2); // made once; its lock
    unsetenv("XDG_CACHE_HOME");
    free(cache);
}

// An inflated model's draft is inflated, too, to a fifth of it at most; described, then made, by the same
// rules.
static void drafts_are_inflated(void **state) {
    Child c;
    setenv("XDG_CACHE_HOME", folder_path(*state, "drafts"), 1);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "source", "--set", "num_hidden_layers=2");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "large", "--set", "num_hidden_layers=40");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "smaller", "--set", "num_hidden_layers=5");
    child_release(&c);
    folder_write(*state, "drafted.yaml",
                 "name: drafted\nmodels: {target: source, inflate: large/config.json, draft: source, "
                 "inflate_draft: smaller/config.json}\ndatasets: [{name: own, path: own.jsonl, limit: 1}]\n"
                 "generation: {max_tokens: 8}\nmethods: [{name: speculative, matrix: {gamma: 2}}]\n");
    CHILD_OUTPACE(&c, *state, 0, "plan", "--check", "drafted.yaml");
    assert_int_equal(access(folder_path(*state, "drafts"), F_OK), -1);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "run", "drafted.yaml", "--db", "drafted.db");
    child_release(&c);
    // The draft computes the same as the target, so everything is accepted: three tokens per step.
    CHILD_OUTPACE(&c, *state, 0, "sql", "SELECT S FROM result WHERE method = 'speculative'", "--db",
                  "drafted.db", "--format", "csv");
    assert_string_equal(text_get(&c.out), "S\r\n2.66666666666667\r\n");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "plan", "--check", "drafted.yaml", "--set",
                  "models.inflate_draft=large/config.json");
    assert_non_null(strstr(text_get(&c.err),
                           "inflate_draft 'large/config.json' has 100% of the parameters of "
                           "'large/config.json': take a shape of at most 20%"));
    child_release(&c);
    unsetenv("XDG_CACHE_HOME");
}

// The config of 'make demo' is in order, on any model; methods that need more than a target are told.
static void demo(void **state) {
    Child c;
    char *path = realpath("configs/demo.yaml", NULL);
    assert_non_null(path);
    setenv("XDG_CACHE_HOME", folder_path(*state, "none"), 1); // the user's may have the tables
    CHILD_OUTPACE(&c, *state, 3, "plan", path, "--model", "target=tiny", "--db", "none.db", "--set",
                  "methods.ngrammys.matrix.strategy=mixed", "--set", "methods.ngrammys.matrix.table=whole");
    assert_non_null(strstr(text_get(&c.out), "10 points, 5 skipped"));
    assert_non_null(strstr(text_get(&c.out), "ms; reckoned: "));
    assert_non_null(strstr(text_get(&c.out), "  tables   "));
    child_release(&c);
    unsetenv("XDG_CACHE_HOME");
    free(path);
}

// --- messages --------------------------------------------------------------------------------------------

static void plans(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "plan", "x.yaml", "--points", "--db", "calm.db", "--set",
                  "measurement.passes=3");
    assert_non_null(strstr(text_get(&c.out), "x.yaml: 4 points, 0 skipped"));
    assert_non_null(strstr(text_get(&c.out), "60 of 60 rounds done"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "plan", "x.yaml", "--db", "none.db", "--model", "target=tiny,draft=tiny",
                  "--set", "methods=[{name: ouroboros, matrix: {warm: [off, on]}}]");
    assert_non_null(strstr(text_get(&c.out), "baseline added, in whole passes, since they keep state, 0 of"));
    assert_non_null(strstr(text_get(&c.out), "baseline added, 0 of"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "plan", "x.yaml", "--db", "none.db");
    assert_non_null(strstr(text_get(&c.out), "0 of 20 rounds done"));
    child_release(&c);
}

static void events(void **state) {
    Child c;
    int samples = 0;
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--json", "--db", "json.db", "--set",
                  "datasets.own.limit=3");
    for (const char *p = text_get(&c.out); (p = strstr(p, "{\"event\":\"sample\"")); p++) samples++;
    assert_int_equal(samples, 5 * 4);
    assert_non_null(
        strstr(text_get(&c.out), "\"event\":\"end\",\"result\":\"done\",\"points\":4,\"failed\":0"));
    child_release(&c);
}

// Threads are a way to the same output: the faster baseline is everybody's, and each one's own stands beside
// it.
static void fastest_baseline(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "run", "x.yaml", "--db", "threads.db", "--set", "hardware.threads=[1, 2]",
                  "--set", "methods=[jacobi]", "--set", "datasets.own.limit=4");
    assert_non_null(strstr(text_get(&c.out), "  against autoregressive threads="));
    assert_non_null(strstr(text_get(&c.out), " against its own settings"));
    child_release(&c);
    assert_int_equal(stores_ask(*state, "threads.db", "SELECT count(*) FROM point WHERE baseline_id IS NULL"),
                     1);
    assert_int_equal(stores_ask(*state, "threads.db", "SELECT count(DISTINCT baseline_id) FROM point"), 1);
    assert_int_equal(
        stores_ask(*state, "threads.db",
                   "SELECT baseline_id IS NULL FROM point JOIN sample ON point_id = point.id WHERE"
                   " method = 'autoregressive' GROUP BY point_id"
                   " ORDER BY 1.0 * sum(decode_ns) / sum(tokens) LIMIT 1"),
        1);
    assert_int_equal(stores_ask(*state, "threads.db", "SELECT count(DISTINCT same_path_id) FROM point"), 2);
}

static void shows(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "show", "--db", "calm.db");
    assert_non_null(strstr(text_get(&c.out), "done"));
    assert_non_null(strstr(text_get(&c.out), " begun ")); // of a run that was stopped they are not done
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "show", "test", "--db", "calm.db", "--json");
    assert_non_null(strstr(text_get(&c.out), "\"label\":\"prompt-lookup allow_short=on draft=2\""));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "show", "7", "--db", "calm.db");
    child_release(&c);
}

// A model is marked by how it was made, a quantised one as such, in every output.
static void made_models(void **state) {
    static const char synth[] = "stand-in: random weights, shape tiny",
                      quantised[] = "quantised: 4 bits, groups of 32, of trained (";
    Child c;
    json_t *config;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "trained");
    child_release(&c);
    config = scratch_json(folder_path(*state, "trained"), "config.json");
    json_object_del(config, "outpace_synth");
    scratch_write_json(folder_path(*state, "trained"), "config.json", config);
    json_decref(config);
    CHILD_OUTPACE(&c, *state, 0, "model", "quantise", "trained", "codes", "--bits", "4");
    child_release(&c);
    CHILD_OUTPACE(
        &c, *state, 0, "run", "x.yaml", "--db", "marks.db", "--set",
        "models=[{name: random, target: tiny}, {name: codes, target: codes}, {name: plain, target: trained}]",
        "--set", "datasets.0.limit=1", "--set", "generation.max_tokens=4");
    child_release(&c);
    static const char *const asked[][7] = {
        {"show", "last", "--db", "marks.db"},
        {"report", "--db", "marks.db", "-o", "marks.html"},
        {"plot", "speedup", "--db", "marks.db", "-o", "marks.svg", "--footer"}};
    for (int i = 0; i < 3; i++) {
        const char *const words[] = {asked[i][0], asked[i][1], asked[i][2], asked[i][3],
                                     asked[i][4], asked[i][5], asked[i][6], NULL};
        size_t size;
        child_outpace(&c, *state, 0, words);
        char *text = i ? scratch_read(*state, i == 1 ? "marks.html" : "marks.svg", &size) : NULL;
        const char *got = text ? text : text_get(&c.out), *again = strstr(got, "stand-in: ");
        if (!strstr(got, i == 2 ? "stand-in: random, random" : synth) ||
            !strstr(got, i == 2 ? "quantised: codes, 4 bits" : quantised))
            fail_msg("%s: wanted '%s' and '%s', got %s", asked[i][0], synth, quantised, got);
        for (; again; again = strstr(again + 1, "stand-in: "))
            if (!strstr(again, "random") || strstr(again, "random") > again + 20)
                fail_msg("%s: %.80s", asked[i][0], again);
        mem_free(text);
        child_release(&c);
    }
    CHILD_OUTPACE(&c, *state, 0, "show", "last", "--json", "--db", "marks.db");
    json_t *points = json_loads(text_get(&c.out), 0, NULL), *one;
    size_t i;
    int marked[2] = {0};
    json_array_foreach(points, i, one) {
        const char *model = json_string_value(json_object_get(one, "model"));
        bool stands = json_is_string(json_object_get(one, "stand_in")),
             coded = json_is_string(json_object_get(one, "quantised"));
        if (stands != (strcmp(model, "random") == 0) || coded != (strcmp(model, "codes") == 0))
            fail_msg("%s: stand_in %d, quantised %d", model, stands, coded);
        marked[0] += stands, marked[1] += coded;
    }
    assert_true(marked[0] && marked[1]);
    json_decref(points);
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole),
                                       cmocka_unit_test(parts),
                                       cmocka_unit_test(second_turns_follow_replies),
                                       cmocka_unit_test(changed_content),
                                       cmocka_unit_test(killed_and_interrupted),
                                       cmocka_unit_test(interrupted_while_it_waits),
                                       cmocka_unit_test(one_at_a_time),
                                       cmocka_unit_test(configs_by_name),
                                       cmocka_unit_test(models),
                                       cmocka_unit_test(drafts_are_inflated),
                                       cmocka_unit_test(demo),
                                       cmocka_unit_test(plans),
                                       cmocka_unit_test(events),
                                       cmocka_unit_test(fastest_baseline),
                                       cmocka_unit_test(shows),
                                       cmocka_unit_test(made_models)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
