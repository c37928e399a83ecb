// Sweeps for $SOAK minutes (45): a process that decodes all the time, and in parallel, round by round, every
// command that reads or writes a store. Nothing may grow with the rounds: memory of the long process, peak
// memory of each command, open descriptors, files, the cache, stores from which `gc` deletes a round's
// additions. The long process's own store grows by its samples, by as many bytes for the last as for the
// first.
#include "tests/support/check.h"

#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tests/support/stores.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROUNDS = 1 << 16, KEPT_RUNS = 4, LEAST_ROUNDS = 8, PAGE_CACHE = 96 << 20 };

static const char PREPARE[] =
    "set -e\n"
    "$O model synth tiny tiny\n"
    "config() { # NAME MODEL LIMIT TOKENS PASSES\n"
    "    printf 'name: %s\\nmodels: [{name: %s, target: %s}]\\ndatasets: [{name: chat, limit: %s}]\\n"
    "generation: {max_tokens: %s}\\nmethods: [autoregressive, prompt-lookup, {name: ngrammys, matrix: {k: 2, "
    "w: 2}}]\\n"
    "hardware: {threads: 1}\\nmeasurement: {warmup: 0, passes: %s}\\n' $1 $1 \"$2\" $3 $4 $5 >$1.yaml\n"
    "}\n"
    "config one tiny 2 32 1\n"
    "config two tiny 3 16 2\n"
    "config long \"$LONG\" 16 256 1000\n"
    "mkdir temporary home\n";

// A round's commands, in order. `gc` is special: its numbers are those of the existing runs.
static const char *const COMMANDS[] = {
    "run one.yaml --again --db a.db",
    "run two.yaml --again --device null --db a.db",
    "bench --store tiny --k 1,2 --w 0,1 --context 25 --rows 1,2 --samples 2 --device null --again --db a.db",
    "run one.yaml --db b.db",
    "show --db a.db",
    "status --db a.db",
    "compare a.db b.db",
    "table --db a.db",
    "plot speedup --db b.db -o a.svg",
    "report --db b.db -o a.html",
    "report --db b.db -o a.md",
    "store export --db b.db -o a.csv",
    "store export --db b.db --format jsonl --what steps -o a.jsonl",
    "store export --db b.db --format spec-bench -o answers",
    "store import steps a.jsonl --db c.db",
    "store merge a.db b.db --db c.db",
    "verify tiny -n 1 --max-tokens 8",
    "tune tiny --method ngrammys --dataset chat --limit 2 --device null --budget 60s --db c.db",
    "gc a.db",
    "gc c.db",
};
enum { COMMAND_COUNT = sizeof COMMANDS / sizeof *COMMANDS };

// Rows of watched values: first the commands' memory, then these.
enum {
    LONG_MEMORY = COMMAND_COUNT,
    LONG_FILES,
    LONG_SAMPLE,
    STORE_A,
    STORE_C,
    CACHE,
    FILES,
    TEMPORARY,
    WATCHED
};

static const struct {
    const char *name;
    double share, more; // how far the last rounds may be above the first ones
} RULES[] = {
    {"memory of the long process", 0.05, 4 << 20},
    {"its descriptors", 0, 0},
    {"its store, bytes a sample", 0.25, 0},
    {"a.db", 0.25, 64 << 10},
    {"c.db", 0.25, 64 << 10},
    {"the cache", 0, 0},
    {"files", 0, 0},
    {"temporary files", 0, 0},
};

typedef struct {
    const char *folder;
    pid_t process; // the long one
    int rounds;
    double start, hours[MOST_ROUNDS];
    double *seen[WATCHED]; // (rounds)
} Soak;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *name_of(int row) {
    return row < COMMAND_COUNT ? COMMANDS[row] : RULES[row - COMMAND_COUNT].name;
}

typedef struct {
    int files;
    double bytes;
} Size;

// Journals come and go with the long process.
static Size size_of(const char *folder) {
    char *paths[] = {(char *)(uintptr_t)folder, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    Size s = {0, 0};
    assert_non_null(walk);
    for (FTSENT *f; (f = fts_read(walk));)
        if (f->fts_info == FTS_F && !strstr(f->fts_name, ".db-")) {
            s.files++;
            s.bytes += (double)f->fts_statp->st_size;
        }
    fts_close(walk);
    return s;
}

static double file_bytes(const Soak *s, const char *name) {
    struct stat st;
    return stat(folder_path(s->folder, name), &st) ? 0 : (double)st.st_size;
}

// --- the long process

static double resident(const Soak *s) {
    char path[64], line[256];
    double kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)s->process);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "VmRSS: %lf kB", &kib);
    if (f) fclose(f);
    return 1024 * kib;
}

static int descriptors(const Soak *s) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)s->process);
    return folder_count(path);
}

static void begin_long(Soak *s) {
    char *program = getenv("O");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const char *argv[] = {program, "run", "long.yaml", "--db", "long.db", NULL};
    assert_true(null >= 0);
    s->process = child_start(s->folder, argv, null, null, null);
    close(null);
    // It makes the tables of its methods first; then there is a store.
    for (int i = 0; i < 600 && file_bytes(s, "long.db") == 0 && !waitpid(s->process, NULL, WNOHANG); i++)
        usleep(500000);
    if (file_bytes(s, "long.db") == 0) fail_msg("the long process makes no store");
}

static void watch_long(Soak *s, int round) {
    int64_t samples = stores_ask(s->folder, "long.db", "SELECT max(count(*), 1) FROM sample");
    if (waitpid(s->process, NULL, WNOHANG)) fail_msg("the long process ended in round %d", round);
    s->seen[LONG_MEMORY][round] = resident(s);
    s->seen[LONG_FILES][round] = descriptors(s);
    s->seen[LONG_SAMPLE][round] = file_bytes(s, "long.db") / (double)samples;
}

// --- a round

// Deletes all runs but the newest ones.
static void delete_runs(const Soak *s, const char *store, Child *c) {
    enum { MOST_RUNS = 20 };
    char numbers[MOST_RUNS][24];
    const char *words[MOST_RUNS + 5] = {"store", "gc"};
    int n = 2;
    for (int i = 0; i < MOST_RUNS; i++) {
        char sql[200];
        snprintf(sql, sizeof sql,
                 "SELECT coalesce((SELECT id FROM run ORDER BY id DESC LIMIT 1 OFFSET %d), 0)",
                 KEPT_RUNS + i);
        int64_t id = stores_ask(s->folder, store, sql);
        if (!id) break;
        snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)id);
        words[n++] = numbers[i];
    }
    words[n++] = "--db";
    words[n++] = store;
    child_outpace(c, s->folder, 0, words);
}

static void one_command(const Soak *s, const char *command, Child *c) {
    enum { MOST_WORDS = 30 };
    char words[400], *save;
    const char *argv[MOST_WORDS + 2] = {getenv("O")};
    int n = 1;
    snprintf(words, sizeof words, "%s", command);
    for (char *w = strtok_r(words, " ", &save); w && n < MOST_WORDS; w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    argv[n] = NULL;
    if (strcmp(argv[1], "gc") == 0) {
        delete_runs(s, argv[2], c);
        return;
    }
    child_run(c, s->folder, NULL, argv);
    // 1: slower, or not the same machine any more; 2: the same file was taken before.
    bool fine =
        c->code == 0 || (c->code < 3 && (strcmp(argv[1], "compare") == 0 || strcmp(argv[2], "import") == 0));
    if (!fine) fail_msg("%s: exit code %d: %s", command, c->code, text_get(&c->err));
}

static void one_round(Soak *s, int round) {
    for (int i = 0; i < COMMAND_COUNT; i++) {
        Child c;
        one_command(s, COMMANDS[i], &c);
        s->seen[i][round] = (double)c.peak_bytes;
        child_release(&c);
    }
    watch_long(s, round);
    Size all = size_of(s->folder), cache = size_of(folder_path(s->folder, "home")),
         temporary = size_of(folder_path(s->folder, "temporary"));
    s->seen[STORE_A][round] = file_bytes(s, "a.db");
    s->seen[STORE_C][round] = file_bytes(s, "c.db");
    s->seen[CACHE][round] = cache.bytes;
    s->seen[FILES][round] = all.files;
    s->seen[TEMPORARY][round] = temporary.files;
    s->hours[round] = (now_s() - s->start) / 3600;
}

// --- growth

static double most(const double *x, int from, int to) {
    double m = x[from];
    for (int i = from; i < to; i++) m = x[i] > m ? x[i] : m;
    return m;
}

// Least squares, over the last three quarters.
static double slope(const Soak *s, int row) {
    int from = s->rounds / 4, n = s->rounds - from;
    double t = 0, x = 0, tt = 0, tx = 0;
    for (int i = from; i < s->rounds; i++) {
        t += s->hours[i] / n;
        x += s->seen[row][i] / n;
    }
    for (int i = from; i < s->rounds; i++) {
        tt += (s->hours[i] - t) * (s->hours[i] - t);
        tx += (s->hours[i] - t) * (s->seen[row][i] - x);
    }
    return tt > 0 ? tx / tt : 0;
}

static int report(const Soak *s) {
    int bad = 0, quarter = s->rounds / 4;
    print_message(
        "%d rounds in %.1f minutes; most of the second quarter, of the last, and the slope an hour\n",
        s->rounds, 60 * s->hours[s->rounds - 1]);
    for (int i = 0; i < WATCHED; i++) {
        double share = i < COMMAND_COUNT ? 0.1 : RULES[i - COMMAND_COUNT].share,
               more = i < COMMAND_COUNT ? 4 << 20 : RULES[i - COMMAND_COUNT].more,
               early = most(s->seen[i], quarter, 2 * quarter),
               late = most(s->seen[i], s->rounds - quarter, s->rounds);
        // SQLite keeps pages of a store that grows, up to 64 MiB and what their allocation adds.
        if (i == LONG_MEMORY && early < s->seen[i][0] + PAGE_CACHE) early = s->seen[i][0] + PAGE_CACHE;
        bool grew = late > early * (1 + share) + more;
        bad += grew;
        print_message("%12.0f %12.0f %+12.0f  %s%s\n", early, late, slope(s, i), name_of(i),
                      grew ? "  GREW" : "");
    }
    return bad;
}

static void prepare(Soak *s, char *program) {
    Child c;
    const char *root = getenv("OUTPACE_ROOT");
    char *model = realpath(folder_path(root ? root : ".", "models/reference"), NULL);
    setenv("O", program, true);
    setenv("LONG", model ? model : "tiny", true);
    setenv("HOME", folder_path(s->folder, "home"), true);
    setenv("TMPDIR", folder_path(s->folder, "temporary"), true);
    child_run(&c, s->folder, NULL, (const char *const[]){"sh", "-c", PREPARE, NULL});
    if (c.code) fail_msg("%s%s", text_get(&c.out), text_get(&c.err));
    child_release(&c);
    free(model);
}

static void soak(void **state) {
    const char *set = getenv("SOAK"), *given = getenv("OUTPACE");
    double minutes = set && *set ? strtod(set, NULL) : 45;
    char *program = realpath(given ? given : "./outpace", NULL);
    Soak *s = calloc(1, sizeof *s);
    assert_true(program && s && minutes > 0);
    s->folder = *state;
    for (int i = 0; i < WATCHED; i++) assert_non_null(s->seen[i] = calloc(MOST_ROUNDS, sizeof(double)));
    prepare(s, program);
    begin_long(s);
    s->start = now_s();
    while (s->rounds < MOST_ROUNDS && (s->rounds < LEAST_ROUNDS || now_s() - s->start < 60 * minutes))
        one_round(s, s->rounds++);
    kill(s->process, SIGINT);
    assert_int_equal(child_wait(s->process), 130);
    int bad = report(s);
    for (int i = 0; i < WATCHED; i++) free(s->seen[i]);
    free(s);
    free(program);
    if (bad) fail_msg("%d of them grew", bad);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(soak, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
