// `mpirun -n R outpace ... --ranks mpi` emits what one process emits, with rank 0 as the only one that
// writes; and ends within seconds, with a line that names the rank, when one dies. Skipped where there is no
// mpirun.
#include "tests/support/check.h"
#include "tests/support/child.h"

#include "engine/base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 40, PATH_SIZE = 4096 };

typedef struct World {
    char folder[PATH_SIZE], model[PATH_SIZE], program[PATH_SIZE];
    bool mpi, open_mpi;
} World;

static int open_world(void **state) {
    static World w;
    Child c;
    const char *root = getenv("OUTPACE_ROOT"), *program = getenv("OUTPACE");
    char model[PATH_SIZE];
    snprintf(model, sizeof model, "%s/models/reference", root ? root : ".");
    assert_non_null(realpath(model, w.model));
    assert_non_null(realpath(program ? program : "./outpace", w.program));
    snprintf(w.folder, sizeof w.folder, "/tmp/outpace-ranks-XXXXXX");
    assert_non_null(mkdtemp(w.folder));
    child_run(&c, NULL, NULL,
              (const char *const[]){"sh", "-c", "command -v mpirun && mpirun --version", NULL});
    w.mpi = c.code == 0;
    w.open_mpi = w.mpi && strstr(text_get(&c.out), "Open MPI");
    child_release(&c);
    // Tests may run as root, on fewer cores than there are ranks.
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    unsetenv("PMI_SIZE"); // this test is not one of several processes, whoever started it
    unsetenv("PMIX_RANK");
    unsetenv("SLURM_PROCID");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    if (!w.mpi) print_message("no mpirun: ./setup mpi installs it; tests of processes are skipped\n");
    *state = &w;
    return 0;
}

static int close_world(void **state) {
    const World *w = *state;
    Child c;
    child_run(&c, NULL, NULL, (const char *const[]){"rm", "-rf", w->folder, NULL});
    child_release(&c);
    return 0;
}

// "mpirun -n R" in front of the program and its words; ranks 0: no mpirun. quiet: mpirun adds nothing.
static void command(const World *w, int ranks, bool quiet, const char *const *words, const char *argv[WORDS],
                    char number[16]) {
    int n = 0;
    snprintf(number, 16, "%d", ranks);
    if (ranks) {
        argv[n++] = "mpirun";
        if (w->open_mpi && quiet) argv[n++] = "-q";
        argv[n++] = "-n";
        argv[n++] = number;
    }
    argv[n++] = w->program;
    while (*words && n < WORDS - 3) argv[n++] = *words++;
    if (ranks) argv[n++] = "--ranks";
    if (ranks) argv[n++] = "mpi";
    argv[n] = NULL;
}

static void run_words(const World *w, int ranks, int code, Child *c, const char *const *words) {
    const char *argv[WORDS];
    char number[16];
    command(w, ranks, true, words, argv, number);
    child_run(c, w->folder, NULL, argv);
    if (c->code != code)
        fail_msg("%d ranks: code %d, want %d: %s%s", ranks, c->code, code, text_get(&c->out),
                 text_get(&c->err));
}

static void the_text_is_that_of_one_process(void **state) {
    const World *w = *state;
    static const char *const methods[] = {"lookahead:W=6,N=4,G=6,ranks=2",
                                          "lookahead:W=5,N=4,G=4,slide=accepted,prompt_pool=on,ranks=3"};
    if (!w->mpi) skip();
    for (int i = 0; i < 2; i++)
        for (int sampled = 0; sampled < 2; sampled++) {
            Child one, many;
            const char *const words[] = {"generate",
                                         w->model,
                                         "Once upon a time there was a",
                                         "-m",
                                         methods[i],
                                         "-n",
                                         "60",
                                         "--threads",
                                         "1",
                                         "--seed",
                                         "3",
                                         "-t",
                                         sampled ? "0.8" : "0",
                                         NULL};
            run_words(w, 0, 0, &one, words);
            run_words(w, i + 2, 0, &many, words);
            assert_string_equal(text_get(&many.out), text_get(&one.out));
            assert_string_equal(text_get(&many.err), "");
            assert_true(one.out.length > 60);
            child_release(&one);
            child_release(&many);
        }
}

static void count_text(const char *text, const char *word, int want) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) n++;
    if (n != want) fail_msg("'%s' %d times, want %d, in: %s", word, n, want, text);
}

// Points of as many ranks as there are processes are shared; the store is rank 0's alone.
static void a_run_is_written_once(void **state) {
    const World *w = *state;
    Child c;
    char path[PATH_SIZE + 8], model[PATH_SIZE + 16];
    if (!w->mpi) skip();
    snprintf(path, sizeof path, "%s/c.yaml", w->folder);
    snprintf(model, sizeof model, "%s/outpace.db", w->folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(
        f,
        "name: ranks\nabout: ranks\nmodels: [{target: %s}]\ndatasets: [{name: reference-stories, limit: 2}]\n"
        "generation: {max_tokens: 24}\nhardware: {threads: 1}\n"
        "methods: [{name: lookahead, matrix: {W: 5, N: 4, G: 5, ranks: [1, 2, 3]}}]\n"
        "measurement: {warmup: 0, passes: 1}\n",
        w->model);
    fclose(f);
    run_words(w, 2, 0, &c, (const char *const[]){"run", "c.yaml", "--db", "outpace.db", NULL});
    count_text(text_get(&c.out),
               "run 1 in outpace.db: 3 points measured, 0 skipped, 0 failed, 0 with another text", 1);
    child_release(&c);
    run_words(
        w, 0, 0, &c,
        (const char *const[]){"sql", "SELECT 'samples', count(*) FROM sample", "--db", "outpace.db", NULL});
    count_text(text_get(&c.out), "8", 1); // two prompts, by the baseline and three points
    child_release(&c);
}

static void verify_certifies_ranks(void **state) {
    const World *w = *state;
    Child c;
    if (!w->mpi) skip();
    run_words(w, 2, 0, &c,
              (const char *const[]){"verify", w->model, "-m", "lookahead:W=4,N=4,G=4,ranks=2", "-n", "2",
                                    "--max-tokens", "24", "--threads", "1", NULL});
    count_text(text_get(&c.out), "1 checks, 0 failed", 1);
    child_release(&c);
}

static void misuse_names_the_fix(void **state) {
    const World *w = *state;
    Child c;
    const char *const words[] = {"generate", w->model, "Once", "-n", "4", "-m", "lookahead:ranks=3", NULL};
    const char *const alone[] = {"generate",          w->model,  "Once", "-m",
                                 "lookahead:ranks=2", "--ranks", "mpi",  NULL};
    setenv("OUTPACE_MPI", "/nowhere/libmpi.so", 1);
    run_words(w, 0, 2, &c, alone);
    unsetenv("OUTPACE_MPI");
    count_text(text_get(&c.err), "MPI is not installed: ./setup mpi installs it", 1);
    child_release(&c);
    if (!w->mpi) skip();
    run_words(w, 0, 2, &c, alone);
    count_text(text_get(&c.err), "--ranks mpi needs a launcher: mpirun -n 2 outpace", 1);
    child_release(&c);
    run_words(w, 2, 2, &c, words);
    count_text(text_get(&c.err), "method 'lookahead' has 3 ranks, but 2 processes were started", 1);
    child_release(&c);
}

// --- death

// The process of the group whose environment has this word; 0: none yet.
static pid_t find_process(pid_t mpirun, const char *word) {
    DIR *dir = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *d; dir && !found && (d = readdir(dir));) {
        static char bytes[1 << 16];
        char path[300];
        int parent = 0;
        snprintf(path, sizeof path, "/proc/%.20s/stat", d->d_name);
        FILE *f = fopen(path, "r");
        if (!f) continue;
        bool child = fscanf(f, "%*d (%*[^)]) %*c %d", &parent) == 1 && parent == mpirun;
        fclose(f);
        if (!child) continue;
        snprintf(path, sizeof path, "/proc/%.20s/environ", d->d_name);
        f = fopen(path, "r");
        size_t n = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
        if (f) fclose(f);
        for (size_t i = 0; i + strlen(word) < n && !found; i += strlen(bytes + i) + 1) {
            bytes[n] = 0;
            if (strcmp(bytes + i, word) == 0) found = (pid_t)strtol(d->d_name, NULL, 10);
        }
    }
    if (dir) closedir(dir);
    return found;
}

static off_t size_of(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 ? s.st_size : 0;
}

static void a_dead_rank_ends_all(void **state) {
    const World *w = *state;
    const struct timespec nap = {.tv_nsec = 20000000};
    char out[PATH_SIZE + 8], err[PATH_SIZE + 8], number[16], text[8192] = "";
    const char *argv[WORDS];
    if (!w->open_mpi) skip();
    snprintf(out, sizeof out, "%s/out", w->folder);
    snprintf(err, sizeof err, "%s/err", w->folder);
    command(w, 2, false,
            (const char *const[]){"generate", w->model, "Once upon a time", "-m", "lookahead:ranks=2", "-n",
                                  "1000", "--ignore-eos", "--threads", "1", NULL},
            argv, number);
    int out_file = open(out, O_CREAT | O_WRONLY | O_CLOEXEC, 0600),
        err_file = open(err, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    pid_t pid = child_start(w->folder, argv, STDIN_FILENO, out_file, err_file);
    Clock clock = clock_monotonic();
    double start = clock_now(clock);
    while (size_of(out) < 20 && clock_now(clock) < start + 60) nanosleep(&nap, NULL);
    pid_t victim = find_process(pid, "OMPI_COMM_WORLD_RANK=1");
    assert_true(victim > 0);
    kill(victim, SIGKILL);
    start = clock_now(clock);
    assert_int_not_equal(child_wait(pid), 0);
    assert_true(clock_now(clock) - start < 20); // a busy machine; 2 s otherwise
    close(out_file);
    close(err_file);
    FILE *f = fopen(err, "r");
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    count_text(text, "process rank 1 with PID", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_that_of_one_process),
        cmocka_unit_test(a_run_is_written_once),
        cmocka_unit_test(verify_certifies_ranks),
        cmocka_unit_test(misuse_names_the_fix),
        cmocka_unit_test(a_dead_rank_ends_all),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
