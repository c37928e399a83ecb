// A sweep of twelve parts on a real Slurm of four nodes, two tasks at a time, disturbed in every way: a task
// is killed, one reaches its time limit, a node is drained, another one fails. The merged store equals that
// of the same parts run by hand, and by GNU parallel.
#include "tests/support/check.h"

#include "tests/support/child.h"
#include "tests/support/cluster.h"
#include "tests/support/stores.h"

#include <stdio.h>
#include <unistd.h>

static const char CONFIG[] =
    "name: disturbed\n"
    "models: [{reference: reference}]\n"
    "datasets: [{name: reference-stories, limit: 24}, {name: reference-code, limit: 24},"
    " {name: reference-mathematics, limit: 24}]\n"
    "hardware: {threads: 1}\n"
    "generation: {max_tokens: 128, ignore_eos: on}\n"
    "methods: [jacobi, prompt-lookup, {name: lookahead, matrix: {W: 5, N: 3, G: 5}},"
    " {name: ngrammys, matrix: {k: 5, w: 4}}]\n"
    "measurement: {warmup: 1, passes: 3}\n";

static int set_up(void **state) {
    char *program = realpath(getenv("OUTPACE") ? getenv("OUTPACE") : "./outpace", NULL),
         *models = realpath("models", NULL);
    assert_true(program && models);
    setenv("O", program, 1);
    setenv("OUTPACE_MODELS", models, 1);
    free(program);
    free(models);
    if (folder_setup(state)) return -1;
    setenv("XDG_CACHE_HOME", *state, 1);
    FILE *f = fopen(folder_path(*state, "c.yaml"), "w");
    assert_non_null(f);
    fputs(CONFIG, f);
    fclose(f);
    return 0;
}

// The id that Slurm has for a task while it runs, in $id; and that it has stored an answer.
#define RUNS(task) "$O status --db parts/" #task ".db 2>/dev/null | grep -q 'running *[1-9]'"
#define ID(task)   "id=$(squeue -h -t R -r -O ArrayTaskID:10,JobID:10 | awk '$1 == \"" #task "\" {print $2}')"

// Does something to a task once it has stored answers.
static void when_running(const char *folder, const char *runs, const char *what) {
    if (!cluster_wait(folder, 600, runs)) fail_msg("never: %s", runs);
    cluster_bash(folder, what);
}

static void disturb(const char *folder) {
    // Killed, as where memory runs out: the script queues the task again.
    when_running(folder, RUNS(1), "pkill -KILL -f -- '--shard 1/12'");
    // The limit becomes a minute, so notice is given at once.
    when_running(folder, RUNS(2), ID(2) " && scontrol update JobId=$id TimeLimit=1");
    // No new task begins there; the one that runs ends.
    when_running(folder, RUNS(3),
                 ID(3) " && node=$(squeue -h -j $id -o %N) && echo $node >drained &&"
                       " scontrol update NodeName=$node State=DRAIN Reason=test");
    // The controller loses a node, with the task on it.
    when_running(folder, RUNS(4),
                 ID(4) " && node=$(squeue -h -j $id -o %N) &&"
                       " scontrol update NodeName=$node State=DOWN Reason=test &&"
                       " scontrol update NodeName=$node State=RESUME");
}

static void an_array_is_disturbed(void **state) {
    const char *folder = *state;
    if (!cluster_start(folder)) skip();
    cluster_bash(folder,
                 "$O plan c.yaml --slurm --tasks 12 --concurrent 2 --time 20 --stores parts | sbatch");
    disturb(folder);
    bool ended = cluster_wait(folder, 1800, "[ -e parts.html ] && ! squeue -h | grep .");
    cluster_bash(folder, "scontrol show node $(cat drained) | grep -q DRAIN");
    if (!ended)
        cluster_bash(folder, "squeue; sinfo; $O status --stores 'parts/*.db'; tail -n 5 parts/*.log; false");
    cluster_stop(folder);
    // Four tasks were started more than once; and what they had before is still theirs.
    for (int i = 1; i <= 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "parts/%d.db", i);
        int64_t starts = stores_ask(folder, name, "SELECT count(*) FROM attempt"),
                used = stores_ask(folder, name, "SELECT count(DISTINCT attempt_id) FROM sample");
        if (i != 3 && (starts < 2 || used < 2))
            fail_msg("%s: %d starts, %d with answers", name, (int)starts, (int)used);
        if (i == 3) assert_int_equal(starts, 1);
    }
    assert_int_equal(
        stores_ask(folder, "parts/2.db", "SELECT count(*) FROM attempt WHERE result = 'interrupted'"), 1);
    // By GNU parallel, and by hand.
    cluster_bash(
        folder,
        "parallel -j 2 $O run c.yaml --shard {}/12 --db lined/{}.db ::: $(seq 12) >/dev/null 2>&1 &&"
        " $O store merge --stores 'lined/*.db' --db lined.db && $O report --db lined.db -o lined.html");
    cluster_bash(folder,
                 "for i in $(seq 12); do $O run c.yaml --shard $i/12 --db hand/$i.db; done &&"
                 " $O store merge --stores 'hand/*.db' --db hand.db && $O report --db hand.db -o hand.html");
    stores_same(folder, "hand.db", "lined.db");
    stores_same(folder, "hand.db", "parts.db");
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_array_is_disturbed, set_up, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
