// The script of 'plan --slurm': its values, quoted, and all that it does, by commands of Slurm that only take
// notes; then on a real Slurm, where there is one (tests/support/slurm).
#include "tests/support/check.h"

#include "harness/run/slurm.h"
#include "tests/support/child.h"
#include "tests/support/cluster.h"
#include "tests/support/stores.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char CONFIG[] = "name: it's a test\n"
                             "models: [{name: tiny, target: tiny}]\n"
                             "datasets: [{name: own, path: own.jsonl}]\n"
                             "hardware: {device: 'null', threads: 1}\n"
                             "generation: {max_tokens: 24, ignore_eos: on}\n"
                             "methods: [jacobi, {name: prompt-lookup, matrix: {draft: [2, 6]}}, lookahead]\n";

static int set_up(void **state) {
    Child c;
    char *program = realpath(getenv("OUTPACE") ? getenv("OUTPACE") : "./outpace", NULL);
    assert_non_null(program);
    setenv("O", program, 1);
    free(program);
    if (folder_setup(state)) return -1;
    folder_write(*state, "it's a sweep.yaml", CONFIG);
    FILE *f = fopen(folder_path(*state, "own.jsonl"), "w");
    assert_non_null(f);
    for (int i = 0; i < 12; i++) fprintf(f, "{\"prompt\": \"text %d of this file, and more of it\"}\n", i);
    fclose(f);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    // Commands that take notes.
    cluster_bash(
        *state,
        "mkdir bin && for c in sbatch scontrol; do"
        " printf '#!/bin/bash\\nprintf \"%%s\\\\n\" \"$@\" >>%s.words\\n' $c >bin/$c; chmod +x bin/$c; done");
    cluster_bash(*state, "$O run \"it's a sweep.yaml\" --db whole.db");
    cluster_bash(*state, "for i in 1 2 3; do $O run \"it's a sweep.yaml\" --shard $i/3 --db hand/$i.db; done;"
                         " $O store merge --stores 'hand/*.db' --db hand.db");
    return 0;
}

// --- its words ---------------------------------------------------------------------------------------------

static void words_and_times(void **state) {
    static const struct {
        const char *word, *want;
    } words[] = {{"a/b.yaml", "a/b.yaml"}, {"", "''"},           {"a b", "'a b'"},
                 {"it's", "'it'\\''s'"},   {"$(rm)", "'$(rm)'"}, {"a=[1,2]", "'a=[1,2]'"}};
    static const struct {
        double seconds;
        const char *want;
    } times[] = {{1, "00:01:00"}, {3600, "01:00:00"}, {86399, "1-00:00:00"}, {90061, "1-01:02:00"}};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        Text t = {0};
        shell_word(words[i].word, &t);
        assert_string_equal(text_get(&t), words[i].want);
        text_release(&t);
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        Text t = {0};
        slurm_time(times[i].seconds, &t);
        assert_string_equal(text_get(&t), times[i].want);
        assert_true(slurm_is_time(text_get(&t)));
        text_release(&t);
    }
    static const char *const taken[] = {"1", "5:30", "100:00:00", "1-0", "2-23:59", "0-00:00:01", "3650-0"},
                             *const not [] = {"1h",   "",         "-5",        "5 ",         "0",
                                              "0:00", "0-0",      "1:99",      "1:60:00",    "1-99:00",
                                              "1-24", "99999999", "3650-0:01", "1:2:3:4",    "1-2-3",
                                              "1:",   ":5",       "1-",        "12345678901"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (!slurm_is_time(taken[i])) fail_msg("'%s' is refused", taken[i]);
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        if (slurm_is_time(not [i])) fail_msg("'%s' is taken", not [i]);
}

static const SlurmJob JOB = {.program = "/bin/outpace",
                             .folder = "/",
                             .config = "x.yaml",
                             .run = "",
                             .name = "x",
                             .stores = "s",
                             .tasks = 1,
                             .concurrent = 1,
                             .time = "5"};

static void values_that_break_lines(void **state) {
    static const Words none = {.count = 0}, broken = {.items = {"account=a\nrm -r"}, .count = 1};
    SlurmJob job = JOB;
    job.options = &none;
    Error e = {0};
    Text t = {0};
    (void)state;
    assert_true(slurm_script(&job, &t, &e));
    job.options = &broken;
    assert_false(slurm_script(&job, &t, &e));
    job.options = &none;
    job.folder = "/a\"b";
    assert_false(slurm_script(&job, &t, &e));
    assert_non_null(strstr(e.text, "the folder '/a\"b' has a character"));
    text_release(&t);
}

// Options of sbatch that the script sets are refused by name, in short forms too; others are the user's.
static void own_options(void **state) {
    static const struct {
        const char *option, *name; // name: NULL: taken
    } rows[] = {{"array=1-3", "array"},    {"arr=1-3", "array"},       {"output=x", "output"},
                {"error=x", "error"},      {"time=5", "time"},         {"job-name x", "job-name"},
                {"wrap=true", "wrap"},     {"signal=TERM", "signal"},  {"open-mode=truncate", "open-mode"},
                {"dependency=1", "depe"},  {"no-requeue", "requeue"},  {"chdir=/", "chdir"},
                {"nodes=2", "nodes"},      {"cpus-per-task=2", "cpu"}, {"account=me", NULL},
                {"mem=64G", NULL},         {"gres=gpu:a100:1", NULL},  {"exclusive", NULL},
                {"constraint=zen4", NULL}, {"nodelist=a", NULL},       {"ntasks-per-node=1", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Words options = {.items = {rows[i].option}, .count = 1};
        SlurmJob job = JOB;
        job.options = &options;
        Error e = {0};
        Text t = {0};
        bool taken = slurm_script(&job, &t, &e);
        if (taken == !!rows[i].name || (rows[i].name && !strstr(e.text, rows[i].name)))
            fail_msg("%s: %s '%s'", rows[i].option, taken ? "taken" : "refused with", e.text);
        text_release(&t);
    }
}

static void refused_options(void **state) {
    static const struct {
        const char *word, *value, *want;
    } rows[] = {{"--tasks", "12", "--tasks is 12, and there are only 4 points"},
                {"--time", "soon", "--time is 'soon', must be minutes, MM:SS"},
                {"--shard", "1/3", "it takes no --shard"},
                {"--margin", "2", "how long this takes is not known here"}}; // the null device has no speed
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 2, "plan", "it's a sweep.yaml", "--slurm", rows[i].word, rows[i].value);
        if (!strstr(text_get(&c.err), rows[i].want))
            fail_msg("wanted '%s', got '%s'", rows[i].want, text_get(&c.err));
        child_release(&c);
    }
}

// --- what it does ------------------------------------------------------------------------------------------

#define TASK(i)                                                                                  \
    "SLURM_ARRAY_TASK_ID=" #i " SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_JOB_ID=7 SLURM_JOB_ID=9" #i \
    " PATH=$PWD/bin:$PATH bash job.sh"

// As many points and samples as the whole run has, and equal ones.
static void expect_whole(const char *folder, const char *merged) {
    static const char SUMS[] =
        "SELECT sum((tokens + 31 * steps) * point.number) FROM sample JOIN point ON point.id ="
        " point_id WHERE method <> 'autoregressive'";
    assert_int_equal(stores_ask(folder, merged, SUMS), stores_ask(folder, "whole.db", SUMS));
    assert_int_equal(stores_ask(folder, merged, "SELECT count(*) FROM run"), 1);
    stores_same(folder, "hand.db", merged);
}

static void tasks_merge_and_report(void **state) {
    cluster_bash(*state,
                 "$O plan \"it's a sweep.yaml\" --slurm --tasks 3 --time 30 --stores 'noted parts/' --sbatch "
                 "account=me >job.sh && bash -n job.sh && ! ls 'noted parts' | grep .");
    cluster_bash(*state, TASK(2));
    cluster_bash(*state, TASK(1));
    cluster_bash(*state, TASK(3));
    // One task has submitted the merge.
    cluster_bash(*state,
                 "grep -c . sbatch.words | grep -x 7 && grep -x -- --dependency=afterok:7 sbatch.words &&"
                 " grep -x -- --account=me sbatch.words && ! [ -e scontrol.words ]");
    cluster_bash(*state, "sed -n 's/^--wrap=//p' sbatch.words >merge.sh && sh merge.sh");
    cluster_bash(
        *state,
        "grep -q 'it&#39;s a test\\|it.s a test' 'noted parts.html' && ! ls 'noted parts' | grep merge-");
    expect_whole(*state, "noted parts.db");
    // Again: nothing is left to do.
    cluster_bash(*state, TASK(2) " && rm -r 'noted parts'/merge-7");
    expect_whole(*state, "noted parts.db");
}

// A folder is taken literally, and a name that begins with a dash isn't an option.
static void odd_names(void **state) {
    cluster_bash(*state,
                 "rm -f *.words; cp \"it's a sweep.yaml\" ./-x.yaml; mkdir 'res1'; cp hand/1.db res1/1.db;"
                 " $O plan --slurm --tasks 3 --time 30 --stores '-r[1]' -- -x.yaml >job.sh; mv res1 ./-r1");
    for (int i = 0; i < 3; i++) cluster_bash(*state, i == 0 ? TASK(1) : i == 1 ? TASK(2) : TASK(3));
    cluster_bash(*state,
                 "[ -d ./'-r[1]'/merge-7 ] && sed -n 's/^--wrap=//p' sbatch.words >merge.sh && sh merge.sh");
    expect_whole(*state, "./-r[1].db");
    cluster_bash(*state, "$O status --stores './-r[1]/*.db' | grep -c '^[123].db' | grep -qx 3");
    cluster_bash(*state, "rm -r ./-* *.words; $O status --stores 'han[cd]/*.db' | grep -q '^1.db'");
}

// A notice before the time limit, to the script as Slurm sends it: the run ends well, the task is queued
// again, and goes on where it was.
static void noticed(void **state) {
    cluster_bash(*state,
                 "rm -f *.words; $O plan \"it's a sweep.yaml\" --slurm --tasks 3 --time 30 --stores noticed"
                 " --set measurement.passes=1000 >job.sh && mkdir noticed/merge-7");
    cluster_bash(
        *state,
        TASK(2) " >task.log 2>&1 & task=$!;"
                "until $O status --db noticed/2.db 2>/dev/null | grep -q 'running *[1-9]' || ! kill -0 $task;"
                " do sleep 0.05; done; kill -USR1 $task; "
                "wait $task");
    cluster_bash(*state, "printf '%s\\n' requeue 92 | cmp - scontrol.words");
    assert_int_equal(stores_ask(*state, "noticed/2.db", "SELECT result = 'interrupted' FROM attempt"), 1);
    assert_int_equal(
        stores_ask(*state, "noticed/2.db",
                   "SELECT count(*) % (SELECT count(DISTINCT point_id) FROM sample) FROM sample"),
        0); // whole rounds
    cluster_bash(*state, "$O status --stores 'noticed/*.db' | grep -q '^2.db *2/3 *interrupted'");
}

// SIGTERM is a notice within a job, and an interruption elsewhere.
static void preempted(void **state) {
#define TERM(job, db, code)                                                                                \
    job "$O run \"it's a sweep.yaml\" --db " db " --set measurement.passes=1000 >/dev/null 2>&1 & run=$!;" \
        "until $O status --db " db                                                                         \
        " 2>/dev/null | grep -q 'running *[1-9]' || ! kill -0 $run; do sleep 0.05;"                        \
        "done; kill -TERM $run; wait $run; [ $? = " code " ]"
    cluster_bash(*state, TERM("SLURM_JOB_ID=7 ", "job.db", "75"));
    cluster_bash(*state, TERM("", "no-job.db", "130"));
#undef TERM
    assert_int_equal(stores_ask(*state, "job.db", "SELECT result = 'interrupted' FROM attempt"), 1);
}

// The machine may be another one: here, one with fewer cores.
static void elsewhere(void **state) {
    Child c;
    cluster_bash(
        *state,
        "part=(run \"it's a sweep.yaml\" --shard 2/3 --db moved/2.db); $O \"${part[@]}\" & run=$!;"
        "until $O status --db moved/2.db 2>/dev/null | grep -q '2/3 *[a-z]* *[1-9]' || ! kill -0 $run;"
        "do sleep 0.01; done; kill -USR1 $run; wait $run;"
        "cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//'); taskset -c $cpu $O \"${part[@]}\"");
    CHILD_OUTPACE(&c, *state, 0, "store", "merge", "hand/1.db", "moved/2.db", "hand/3.db", "--db",
                  "moved.db");
    child_release(&c);
    expect_whole(*state, "moved.db");
}

// --- a real one --------------------------------------------------------------------------------------------

static void on_slurm(void **state) {
    if (!cluster_start(*state)) skip();
    cluster_bash(
        *state,
        "$O plan \"it's a sweep.yaml\" --slurm --tasks 3 --concurrent 2 --time 5 --stores parts | sbatch");
    bool ended = cluster_wait(*state, 120, "[ -e parts.html ] && ! squeue -h | grep .");
    if (!ended) cluster_bash(*state, "squeue; sinfo; cat parts/*.log; false");
    cluster_stop(*state);
    expect_whole(*state, "parts.db");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_times), cmocka_unit_test(values_that_break_lines),
        cmocka_unit_test(own_options),     cmocka_unit_test(odd_names),
        cmocka_unit_test(refused_options), cmocka_unit_test(tasks_merge_and_report),
        cmocka_unit_test(noticed),         cmocka_unit_test(preempted),
        cmocka_unit_test(elsewhere),       cmocka_unit_test(on_slurm),
    };
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
