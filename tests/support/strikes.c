#include "tests/support/check.h"

#include "tests/support/strikes.h"

#include "tests/support/folder.h"
#include "tests/support/folders_compared.h"
#include "tests/support/strike.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The inputs of every row, in ../in, made once.
static const char INPUTS[] =
    "set -e\n"
    "$O model synth tiny tiny\n"
    "$O model adapter tiny adapter --exit-layer 1\n"
    "sed -e 's/\"hidden_size\": 64/\"hidden_size\": 128/' -e 's/heads\": 4/heads\": 8/'"
    " -e 's/intermediate_size\": 160/intermediate_size\": 320/' tiny/config.json >wide.json\n"
    "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do\n"
    "    printf 'twinkle twinkle little star how i wonder\\n-\\nthe sky is up above the world %d\\n-\\n' $i\n"
    "done >rhymes.txt\n"
    "$O tokenizer train rhymes.txt --vocab 390 --separator - -o tok.json\n"
    "printf '{\"prompt\": \"one two\", \"reference\": \"three\"}\\n{\"prompt\": \"four\", \"reference\": "
    "\"five\"}\\n'"
    " >own.jsonl\n"
    "printf '{\"prompt_token_ids\": [1, 2, 3, 1], \"generated_token_ids\": [2, 3, 1, 2, 4]}\\n' >ids.jsonl\n"
    "config() { # NAME METHODS\n"
    "    printf 'name: %s\\nmodels: [{name: tiny, target: ../in/tiny}]\\n"
    "datasets: [{name: own, path: ../in/own.jsonl}]\\ngeneration: {max_tokens: 8}\\n"
    "methods: [%s]\\nhardware: {threads: 1}\\nmeasurement: {warmup: 0, passes: 1}\\n' \"$1\" \"$2\" "
    ">$1.yaml\n"
    "}\n"
    "config one 'autoregressive, {name: ngrammys, matrix: {k: 2, w: 2}}'\n"
    "config two 'autoregressive, jacobi'\n"
    "printf 'out: m\\ntokenizer: ../in/tok.json\\nfiles: ../in/rhymes.txt\\nseparator: \"-\"\\nlayers: "
    "1\\nwidth: 16\\n"
    "heads: 2\\nkey_heads: 1\\nmlp: 32\\ncontext: 32\\nbatch: 64\\nsteps: 4\\nrate: 0.02\\nlast_rate: "
    "0.002\\n"
    "warmup: 1\\nheld_out: 0.3\\nheld_out_every: 2\\ncheckpoint_every: 2\\n' >train.yaml\n"
    "printf 'files: [../in/rhymes.txt]\\nseparator: \"-\"\\nsteps: 2\\ncontext: 32\\nbatch: 64\\npass: "
    "64\\nheld_out: 0.3\\n' >parts.yaml\n"
    "mkdir ../use && cd ../use\n"
    "$O run ../in/one.yaml --db ../in/a.db\n"
    "$O run ../in/two.yaml --db ../in/b.db\n"
    "cd ../in && rm -r ../use\n"
    "$O store export --db a.db --format jsonl --what steps -o steps.jsonl\n"
    "$O store export --db a.db --format spec-bench -o answers\n"
    "for i in $(seq 3); do echo '{\"acceptance_histogram\": [3, 1], \"num_spec_steps\": 4, "
    "\"num_accepted_draft_tokens\": 1}'; done >records.jsonl\n"
    "printf 'N\\tW\\tG\\tS\\n5\\t5\\t5\\t1.5\\n5\\t10\\t10\\t1.7\\n5\\t15\\t15\\t1.8\\n4\\t7\\t7\\t1.55\\n' "
    ">points.tsv\n"
    "$O bench tiny --tokens 1,2,4,8,16 --context 25,50,100 --samples 1 --seconds 0 --csv |\n"
    "    awk -F, -v OFS=, 'NR > 1 { $6 = 1e-4 + 1e-5 * $1 + 1e-8 * $1 * $2 } 1' >steps.csv\n"
    "$O bench --store tiny --k 1,2 --w 0,1 --context 25 --rows 0 --samples 1 --device null --db s.db\n"
    "$O datasets index rhymes.txt -o rhymes.store --model tiny\n"
    "rm -f *.db-wal *.db-shm\n";

// Commands that run long enough to be killed in the middle.
static const char LONG_INPUTS[] =
    "set -e\n"
    "sed -e 's/methods: .*/methods: [autoregressive, jacobi, prompt-lookup, {name: ngrammys, matrix: {k: [2, "
    "4], w: 2}}]/'"
    " -e 's/own, path.*}/chat, limit: 12}/' -e 's/tokens: 8/tokens: 48/' -e 's/passes: 1/passes: 3/' "
    "one.yaml >long.yaml\n"
    "sed -e 's/steps: 4/steps: 400/' -e 's/every: 2/every: 20/g' train.yaml >train-long.yaml\n"
    "mkdir ../use && cd ../use\n"
    "$O run ../in/long.yaml --db ../in/long.db\n"
    "cd ../in && rm -r ../use\n"
    "$O store export --db long.db --format jsonl --what steps -o long.jsonl\n"
    "for i in $(seq 400); do echo '{\"acceptance_histogram\": [3, 1], \"num_spec_steps\": 4, "
    "\"num_accepted_draft_tokens\": 1}'; done >long-records.jsonl\n"
    "rm -f *.db-wal *.db-shm\n";

typedef struct {
    const char *name;
    const char *prepare; // makes the folder's content before it, by the shell
    const char *words;   // apart by one space
    int code;            // undisturbed
    bool loose;          // its output contains times
    bool varies;         // its files depend on times
    bool cleared;        // its output's directory is emptied before it is filled again
    const char *once;    // done twice, it refuses with these words
    int most;            // strikes of each way where a run takes long; 0: of every call
} Row;

// clang-format off
static const Row ROWS[] = {
    {.name = "generate", .words = "generate ../in/tiny abc -n 4 --method ngrammys:k=2,w=2"},
    {.name = "kangaroo", .words = "generate ../in/tiny abc -n 4 --method kangaroo:exit_layer=1 --adapter ../in/adapter"},
    {.name = "rest", .words = "generate ../in/tiny star -n 4 --method rest:datastore=../in/rhymes.store"},
    {.name = "held", .words = "generate ../in/tiny abc -n 4 --weights held"},
    {.name = "synth", .words = "model synth tiny m"},
    {.name = "synth over", .words = "model synth tiny m --seed 7", .prepare = "$O model synth tiny m", .cleared = true},
    {.name = "adapter", .words = "model adapter ../in/tiny m --exit-layer 1"},
    {.name = "inflate", .words = "model inflate ../in/tiny m --shape ../in/wide.json"},
    {.name = "info", .words = "model info ../in/tiny --check"},
    {.name = "tokenize", .words = "tokenizer encode ../in/tiny hello"},
    {.name = "tokenizer", .words = "tokenizer train ../in/rhymes.txt --vocab 390 --separator - -o tok.json"},
    {.name = "train", .words = "train ../in/train.yaml", .loose = true},
    {.name = "train on", .words = "train ../in/train.yaml", .loose = true, .prepare = "$O train ../in/train.yaml --stop-after 2"},
    {.name = "train adapter", .words = "train adapter ../in/tiny --exit-layer 1 --config ../in/parts.yaml -o m", .loose = true},
    {.name = "train heads", .words = "train heads ../in/tiny --heads 2 --config ../in/parts.yaml -o m", .loose = true},
    {.name = "train eagle", .words = "train eagle ../in/tiny --config ../in/parts.yaml -o m", .loose = true},
    {.name = "verify", .words = "verify ../in/tiny -n 1 --max-tokens 4 --adapter ../in/adapter", .loose = true},
    {.name = "quality", .words = "quality ../in/tiny --against ../in/tiny --path ../in/own.jsonl --limit 1 --greedy 2", .loose = true},
    {.name = "list", .words = "table --db ../in/a.db"},
    {.name = "run", .words = "run ../in/one.yaml --db a.db", .loose = true},
    {.name = "run on", .words = "run ../in/two.yaml --db a.db", .loose = true, .prepare = "cp ../in/a.db ."},
    {.name = "run null", .words = "run ../in/one.yaml --db a.db --device null --json", .loose = true},
    {.name = "resume", .words = "run 1 --db a.db", .loose = true, .prepare = "cp ../in/a.db ."},
    {.name = "validate", .words = "plan --check ../in/one.yaml"},
    {.name = "plan", .words = "plan ../in/one.yaml --db ../in/a.db", .loose = true},
    {.name = "plan slurm", .words = "plan --slurm ../in/one.yaml --time 5 --stores parts --db ../in/a.db", .loose = true, .most = 60},
    {.name = "status", .words = "status --db ../in/a.db"},
    {.name = "runs", .words = "show --db ../in/a.db", .loose = true},
    {.name = "show", .words = "show --db a.db", .prepare = "cp ../in/a.db ."},
    {.name = "sql", .words = "sql SELECT(count(*))FROM(step) --db ../in/a.db"},
    {.name = "compare", .words = "compare 1/1 1/1 --db ../in/a.db"},
    {.name = "simulate", .words = "simulate 1 --on a100-80gb --shape llama2-7b --db ../in/a.db"},
    {.name = "replay", .words = "replay --path ../in/own.jsonl --model ../in/tiny --resamples 100", .loose = true},
    {.name = "replay tokens", .words = "replay --tokens ../in/ids.jsonl --method prompt-lookup --db a.db --resamples 100", .loose = true, .once = "already"},
    {.name = "svg", .words = "plot speedup --db ../in/a.db -o a.svg"},
    {.name = "pdf", .words = "plot speedup --db ../in/a.db -o a.pdf"},
    {.name = "tex", .words = "plot speedup --db ../in/a.db -o a.tex"},
    {.name = "svg over", .words = "plot speedup --db ../in/a.db -o a.svg", .prepare = "$O plot speedup --db ../in/b.db -o a.svg"},
    {.name = "paper", .words = "plot all --db ../in/a.db --paper p --method ngrammys", .most = 12},
    {.name = "term", .words = "plot speedup --db ../in/a.db --format term"},
    {.name = "html", .words = "report --db ../in/a.db -o a.html", .most = 60},
    {.name = "md", .words = "report --db ../in/a.db -o a.md", .most = 60},
    {.name = "csv", .words = "store export --db ../in/a.db -o a.csv"},
    {.name = "csv out", .words = "store export --db ../in/a.db"},
    {.name = "jsonl over", .words = "store export --db ../in/a.db --format jsonl --what steps -o a.jsonl", .prepare = "$O store export --db ../in/b.db --format jsonl --what steps -o a.jsonl"},
    {.name = "spec-bench", .words = "store export --db ../in/a.db --format spec-bench -o answers"},
    {.name = "import", .words = "store import steps ../in/steps.jsonl --db a.db", .once = "already"},
    {.name = "import on", .words = "store import steps ../in/steps.jsonl --db a.db", .once = "already", .prepare = "cp ../in/b.db a.db"},
    {.name = "import records", .words = "store import vllm ../in/records.jsonl --db a.db", .once = "already"},
    {.name = "import answers", .words = "store import spec-bench ../in/answers/2-ngrammys-pass0.jsonl --baseline ../in/answers/1-autoregressive-pass0.jsonl --db a.db", .once = "already"},
    {.name = "merge", .words = "store merge ../in/a.db ../in/b.db --db c.db", .loose = true},
    {.name = "merge into", .words = "store merge ../in/b.db --db a.db", .loose = true, .prepare = "cp ../in/a.db ."},
    {.name = "gc", .words = "store gc 1 --check --db a.db", .prepare = "cp ../in/a.db . && $O store merge ../in/b.db --db a.db", .loose = true, .once = "has no run"},
    {.name = "surface", .words = "bench --store ../in/tiny --k 1,2 --w 0,1 --context 25 --rows 0 --samples 1 --device null --db s.db", .loose = true},
    {.name = "bench", .words = "bench ../in/tiny --tokens 1,2 --context 25 --samples 1 --seconds 0 --csv --device null", .loose = true, .most = 60},
    {.name = "tune", .words = "tune ../in/tiny --method ngrammys --dataset chat --limit 2 --device null --budget 60s --db t.db", .loose = true, .varies = true, .most = 60},
    {.name = "tune tree", .words = "tune ../in/tiny --method recycling --dataset chat --limit 2 -n 8 --device null --tree t.tree", .loose = true, .varies = true, .most = 60},
    {.name = "table", .words = "table spec-bench --run 1 --db ../in/a.db"},
    {.name = "fit", .words = "fit --points ../in/points.tsv --resamples 100"},
    {.name = "fit machine", .words = "fit --surface ../in/steps.csv --model ../in/tiny --on cpu-2core-zen4 --save m.json"},
    {.name = "doctor", .words = "doctor --threads 1", .loose = true, .most = 60},
    {.name = "datasets", .words = "datasets --path ../in/own.jsonl"},
    {.name = "datastore", .words = "datasets index ../in/rhymes.txt -o a.store --model ../in/tiny"},
    {.name = "datastore info", .words = "datasets index --info ../in/rhymes.store"},
    {.name = "methods", .words = "methods"},
    {.name = "version", .words = "--version"},
};

static const Row LONG_ROWS[] = {
    {.name = "run", .words = "run ../in/long.yaml --db a.db", .loose = true},
    {.name = "surface", .words = "bench --store ../in/tiny --k 1..4 --w 0..3 --context 25,100 --rows 1..8 --samples 9 --db s.db", .loose = true},
    {.name = "train", .words = "train ../in/train-long.yaml", .loose = true},
    {.name = "merge", .words = "store merge ../in/long.db --db a.db", .loose = true, .prepare = "cp ../in/b.db a.db"},
    {.name = "import", .words = "store import steps ../in/long.jsonl --db a.db", .once = "already"},
    {.name = "import records", .words = "store import vllm ../in/long-records.jsonl --db a.db", .once = "already", .prepare = "cp ../in/b.db a.db"},
};
// clang-format on
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS, LONG_COUNT = sizeof LONG_ROWS / sizeof *LONG_ROWS };

enum { ONE_ROW_IN = 4, MOST_IN_A_ROW = 6, MOST_WORDS = 20 };

typedef struct {
    char root[FOLDER_PATH_SIZE]; // in: inputs; stage: a row's folder before; want: after; now: struck; out:
                                 // printed
    char program[4096];
    char *temporary; // $TMPDIR before
    Random random;
    int strikes, by_kind[STRIKE_KINDS], survived, problems;
} World;

static const char *in_world(const World *w, const char *name) { return folder_path(w->root, name); }

static void shell(const World *w, const char *folder, const char *script) {
    Child c;
    child_run(&c, in_world(w, folder), NULL, (const char *const[]){"sh", "-c", script, NULL});
    if (c.code)
        fail_msg("exit code %d: %s%s, of: %.400s", c.code, text_get(&c.out), text_get(&c.err), script);
    child_release(&c);
}

static void world_open(World *w, uint64_t which) {
    const char *program = getenv("OUTPACE");
    char folder[FOLDER_PATH_SIZE], *path;
    const char *temporary = getenv("TMPDIR");
    *w = (World){.random = test_random(which), .temporary = strdup(temporary ? temporary : "/tmp")};
    assert_non_null(realpath(program ? program : "./outpace", w->program));
    folder_make(folder);
    path = realpath(folder, NULL);
    assert_non_null(path);
    snprintf(w->root, sizeof w->root, "%s", path);
    free(path);
    setenv("O", w->program, true);
    mkdir(in_world(w, "in"), 0777);
    setenv("HOME", in_world(w, "in"), true);
    shell(w, "in", INPUTS);
}

static void world_close(World *w) {
    setenv("TMPDIR", w->temporary, true);
    free(w->temporary);
    if (!w->problems) folder_remove(w->root);
    if (w->problems) fail_msg("%d problems; the last one's files are in %s", w->problems, w->root);
}

// ---- one row

static int split(const World *w, const Row *r, char *words, size_t size, const char **argv) {
    int n = 0;
    argv[n++] = w->program;
    snprintf(words, size, "%s", r->words);
    for (char *save, *word = strtok_r(words, " ", &save); word && n < MOST_WORDS;
         word = strtok_r(NULL, " ", &save))
        argv[n++] = word;
    argv[n] = NULL;
    return n;
}

static void copy_stage(const World *w) {
    folder_remove(in_world(w, "now"));
    Child c;
    child_run(&c, w->root, NULL, (const char *const[]){"cp", "-a", "stage", "now", NULL});
    assert_int_equal(c.code, 0);
    child_release(&c);
}

static void run_row(const World *w, const Row *r, Strike *s, Child *c) {
    char words[600];
    const char *argv[MOST_WORDS + 1];
    split(w, r, words, sizeof words, argv);
    strike_run(s, c, w->root, in_world(w, "now"), in_world(w, "out"), argv);
}

static bool folder_is_right(const World *w, const Row *r, bool killed, Text *problem) {
    const Folders f = {
        .before = in_world(w, "stage"), .after = in_world(w, "want"), .now = in_world(w, "now")};
    return folders_left_whole(&f, killed, problem) && (r->cleared || folders_kept(&f, problem));
}

// All files of the undisturbed one are there, with the same content.
static bool same_results(World *w, const Row *r, Text *problem) {
    static const Row SHOW = {.words = "show --db a.db"};
    if (r->once) { // estimates that could not be kept are made when they are asked for
        Strike none = {.at = 0};
        Child ignored;
        run_row(w, &SHOW, &none, &ignored);
        child_release(&ignored);
    }
    if (r->varies) return folder_is_right(w, r, true, problem);
    return folders_same(in_world(w, "want"), in_world(w, "now"), problem);
}

// The row's folder before it, and the files and output of an undisturbed run.
static void prepare(World *w, const Row *r, Strike *s, Text *printed) {
    Child c;
    folder_remove(in_world(w, "stage"));
    folder_remove(in_world(w, "want"));
    mkdir(in_world(w, "stage"), 0777);
    setenv("HOME", in_world(w, "now/home"), true);
    setenv("TMPDIR", in_world(w, "now"), true);
    folder_remove(in_world(w, "now"));
    if (r->prepare) {
        setenv("HOME", in_world(w, "stage/home"), true);
        shell(w, "stage", r->prepare);
        setenv("HOME", in_world(w, "now/home"), true);
    }
    copy_stage(w);
    *s = (Strike){.kinds = (1 << STRIKE_KINDS) - 1};
    run_row(w, r, s, &c);
    if (c.code != r->code)
        fail_msg("%s: exit code %d: %s%s", r->name, c.code, text_get(&c.out), text_get(&c.err));
    text_add(printed, text_get(&c.out), c.out.length);
    child_release(&c);
    assert_int_equal(rename(in_world(w, "now"), in_world(w, "want")), 0);
}

// How many lines of a text begin so.
static int lines_that_begin(const char *text, const char *start) {
    int n = 0;
    for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        n += strncmp(line, start, strlen(start)) == 0;
    return n;
}

static bool names_something(const char *err) {
    return strchr(err, '\'') || strstr(err, "standard output") || strstr(err, "memory") ||
           strstr(err, "SHA-256") || strstr(err, "thread") || strstr(err, "a pipe") ||
           strstr(err, "error while loading shared libraries");
}

static bool judge_failure(const World *w, const Row *r, const Strike *s, const Child *c, Text *problem) {
    const char *err = text_get(&c->err);
    // A point that can't be run, or failed, is left out of a run: reported among the others, or as an event.
    bool partial = c->code == 3;
    bool loader = c->code == 127 && strstr(err, "loading shared libraries");
    if (c->code >= 128) text_printf(problem, "ended by signal %d", c->code - 128);
    else if (!partial && !loader && lines_that_begin(err, "outpace: ") != 1)
        text_printf(problem, "%d lines that begin with 'outpace: '", lines_that_begin(err, "outpace: "));
    else if (strstr(err, "this is a bug in outpace")) text_puts(problem, "it did not say why");
    else if (!names_something(err) && !(partial && names_something(text_get(&c->out))))
        text_puts(problem, "the line names nothing");
    if (s->kinds & 1u << STRIKE_STAT && (strstr(err, "not a regular file") || strstr(err, "there is none")))
        text_puts(problem, "the line tells of another fault");
    return problem->length == 0 && folder_is_right(w, r, s->kinds & 1u << STRIKE_REMOVE, problem);
}

static bool printed_same(const Row *r, const Child *c, const Text *printed) {
    return r->loose || strcmp(text_get(&c->out), text_get(printed)) == 0;
}

// The same command again, undisturbed.
static bool judge_again(World *w, const Row *r, bool partial, const Text *printed, Text *problem) {
    Child c;
    Strike none = {.at = 0};
    run_row(w, r, &none, &c);
    bool refused = r->once && c.code == 2 && strstr(text_get(&c.err), r->once);
    // A point that failed stays out of a run in which others were measured.
    if (partial && c.code == 3) {
        child_release(&c);
        return folder_is_right(w, r, true, problem);
    }
    if (c.code != r->code && !refused)
        text_printf(problem, "again, it %s with exit code %d: %s", none.hung ? "hung" : "ends", c.code,
                    text_get(&c.err));
    else if (!refused && !printed_same(r, &c, printed)) text_puts(problem, "again, it prints something else");
    else if (!same_results(w, r, problem)) text_puts(problem, ", done again");
    child_release(&c);
    return problem->length == 0;
}

static bool judge(World *w, const Row *r, const Strike *s, const Child *c, const Text *printed,
                  Text *problem) {
    const char *err = text_get(&c->err);
    if (s->hung) return text_puts(problem, "it hung"), false;
    if (strstr(err, "Assertion") || strstr(err, "Sanitizer")) return text_puts(problem, "it crashed"), false;
    if (s->way == STRIKE_KILLS) return folder_is_right(w, r, true, problem);
    if (c->code != r->code) return judge_failure(w, r, s, c, problem);
    w->survived += s->struck;
    if (!printed_same(r, c, printed)) text_puts(problem, "it succeeds, but printed something else");
    else if (!same_results(w, r, problem)) text_puts(problem, ", and it succeeds");
    return problem->length == 0;
}

typedef struct {
    unsigned kinds;
    Strike how;
    const char *name;
} Way;

static const Way WAYS[] = {
    {1u << STRIKE_OPEN, {.error = EIO}, "EIO"},
    {1u << STRIKE_OPEN, {.error = EMFILE}, "EMFILE"},
    {1u << STRIKE_READ, {.error = EIO}, "EIO"},
    {1u << STRIKE_READ, {.error = EINTR}, "EINTR"},
    {1u << STRIKE_READ, {.way = STRIKE_HALF}, "half"},
    {1u << STRIKE_WRITE, {.error = ENOSPC, .lasting = true}, "a full disk"},
    {1u << STRIKE_WRITE, {.error = EIO}, "EIO"},
    {1u << STRIKE_WRITE, {.error = EINTR}, "EINTR"},
    {1u << STRIKE_WRITE, {.way = STRIKE_HALF}, "half"},
    {1u << STRIKE_SYNC, {.error = EIO}, "EIO"},
    {1u << STRIKE_RENAME, {.error = EIO}, "EIO"},
    {1u << STRIKE_MAP, {.error = ENOMEM}, "ENOMEM"},
    {1u << STRIKE_CLOSE, {.error = EIO}, "EIO"},
    {1u << STRIKE_RESIZE, {.error = ENOSPC}, "ENOSPC"},
    {1u << STRIKE_REMOVE, {.error = EIO}, "EIO"},
    {1u << STRIKE_FOLDER, {.error = ENOSPC}, "ENOSPC"},
    {1u << STRIKE_LOCK, {.error = ENOLCK}, "ENOLCK"},
    {1u << STRIKE_STAT, {.error = EIO}, "EIO"},
    {1u << STRIKE_PIPE, {.error = EINTR}, "EINTR"},
    {1u << STRIKE_PIPE, {.way = STRIKE_HALF}, "half"},
    {1u << STRIKE_START, {.error = EAGAIN}, "EAGAIN"},
    {1u << STRIKE_MEMORY, {.error = ENOMEM, .lasting = true}, "no memory"},
};

// Death comes before a call that changes the disk.
enum {
    CHANGES = 1 << STRIKE_WRITE | 1 << STRIKE_SYNC | 1 << STRIKE_RENAME | 1 << STRIKE_RESIZE |
              1 << STRIKE_REMOVE | 1 << STRIKE_FOLDER | 1 << STRIKE_OPEN
};
static const Way KILLS[] = {
    {CHANGES, {.way = STRIKE_KILLS}, "kill"},
    {CHANGES, {.way = STRIKE_KILLS, .named = true}, "kill, files have names"},
};
enum { WAY_COUNT = sizeof WAYS / sizeof *WAYS, KILL_COUNT = sizeof KILLS / sizeof *KILLS };

// False: there wasn't a call number s->at.
static bool strike_once(World *w, const Row *r, Strike *s, const char *name, const Text *printed) {
    Child c;
    Text problem = {0};
    copy_stage(w);
    run_row(w, r, s, &c);
    bool struck = s->struck;
    if (struck) {
        w->strikes++;
        for (int k = 0; k < STRIKE_KINDS; k++) w->by_kind[k] += s->kinds == 1u << k;
    }
    if (!judge(w, r, s, &c, printed, &problem) || !judge_again(w, r, c.code == 3, printed, &problem)) {
        w->problems++;
        print_message("%s: call %d (%s): %s: %s; exit code %d: %s\n", r->name, s->at, s->where, name,
                      text_get(&problem), c.code, text_get(&c.err));
    } else if (getenv("OUTPACE_STRIKES_SHOW"))
        print_message("%s: call %d (%s): %s: exit code %d: %s\n", r->name, s->at, s->where, name, c.code,
                      c.code ? text_get(&c.err) : "");
    text_release(&problem);
    child_release(&c);
    return struck;
}

static bool wanted(const char *variable, const char *name) {
    const char *only = getenv(variable);
    return !only || strcmp(only, name) == 0;
}

// `share` of the calls at random; if that is all of them, until none is left.
static void strike_row(World *w, const Row *r, const Way *way, int calls, double share, bool whole,
                       const Text *printed) {
    const char *one = getenv("OUTPACE_STRIKES_CALL");
    bool all = whole && share >= 1;
    for (int n = 1; all || n <= calls; n++) {
        if (one ? n != atoi(one) : !all && random_uniform(&w->random) >= share) continue;
        Strike s = way->how;
        s.kinds = way->kinds;
        s.at = n;
        if (!strike_once(w, r, &s, way->name, printed) || one) break;
    }
}

static int calls_of(const Strike *s, unsigned kinds) {
    int n = 0;
    for (int k = 0; k < STRIKE_KINDS; k++)
        if (kinds >> k & 1) n += s->counts[k];
    return n;
}

// A row's strikes: as many as `budget` gives it, spread evenly over the ways.
static void each_way(World *w, const Row *r, bool kills, double budget) {
    const Way *ways = kills ? KILLS : WAYS;
    int before = w->strikes, count = kills ? KILL_COUNT : WAY_COUNT;
    Text printed = {0};
    Strike counted;
    const char *most = getenv("OUTPACE_STRIKES_MOST"); // of each row and way
    prepare(w, r, &counted, &printed);
    for (int i = 0; i < count; i++) {
        int calls = calls_of(&counted, ways[i].kinds);
        double share = budget > 0 ? budget / count : most ? atoi(most) : r->most ? r->most : calls;
        bool skipped = calls == 0 || (ways[i].how.named && !counted.nameless);
        if (!skipped && wanted("OUTPACE_STRIKES_WAY", ways[i].name))
            strike_row(w, r, &ways[i], calls, share / calls, budget <= 0, &printed);
    }
    if (budget <= 0) print_message("%-16s %5d strikes\n", r->name, w->strikes - before);
    text_release(&printed);
}

// A sample takes only some rows, and none that takes long.
static bool visited(World *w, const Row *r, int budget) {
    return budget <= 0 || getenv("OUTPACE_STRIKES") ||
           (!r->most && random_below(&w->random, ONE_ROW_IN) == 0);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Runs a row's command and kills it after so many seconds; false where it had ended by then.
static bool kill_once(const World *w, const Row *r, double seconds) {
    char words[600];
    const char *argv[MOST_WORDS + 1];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct timespec wait = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    split(w, r, words, sizeof words, argv);
    pid_t pid = child_start(in_world(w, "now"), argv, null, null, null);
    nanosleep(&wait, NULL);
    kill(pid, SIGKILL);
    close(null);
    return child_wait(pid) == 128 + SIGKILL;
}

// Chains of kills: after each, nothing that was committed before is gone; at the end of a chain the command
// itself ends with the undisturbed result.
static void killed_at_random(World *w, const Row *r, int kills) {
    Text printed = {0};
    Strike none;
    int done = 0, ended = 0;
    double start = now_s();
    prepare(w, r, &none, &printed);
    double takes = now_s() - start;
    while (done < kills) {
        int64_t before = 0;
        copy_stage(w);
        for (int i = 0; i < MOST_IN_A_ROW && done < kills; i++) {
            Text problem = {0};
            if (!kill_once(w, r, takes * random_uniform(&w->random))) {
                ended++;
                takes *= 0.9; // it was slower when it was timed
                break;
            }
            done++;
            int64_t there = folders_rows(in_world(w, "now"));
            if (there < before)
                text_printf(&problem, "of %lld committed rows %lld are left; ", (long long)before,
                            (long long)there);
            before = there;
            if (!folder_is_right(w, r, true, &problem) || problem.length) {
                w->problems++;
                print_message("%s: kill %d: %s\n", r->name, done, text_get(&problem));
            }
            text_release(&problem);
        }
        Text problem = {0};
        if (!judge_again(w, r, false, &printed, &problem)) {
            w->problems++;
            print_message("%s: gone on with after %d kills: %s\n", r->name, done, text_get(&problem));
        }
        text_release(&problem);
    }
    print_message("%-16s %5d kills in %.2f s that it takes, %d times it had ended before\n", r->name, done,
                  takes, ended);
    text_release(&printed);
}

// Whether the row has a longer one, whose kills strikes_random has.
static bool is_long(const Row *r) {
    bool found = false;
    for (int i = 0; i < LONG_COUNT; i++) found |= strcmp(LONG_ROWS[i].name, r->name) == 0;
    return found;
}

static void strikes(int budget, bool kills) {
    World w;
    Error why = {0};
    if (!strike_possible(&why)) {
        print_message("%s\n", why.text);
        skip();
    }
    world_open(&w, kills);
    for (int i = 0; i < ROW_COUNT; i++)
        if (wanted("OUTPACE_STRIKES", ROWS[i].name) && visited(&w, &ROWS[i], budget))
            each_way(&w, &ROWS[i], kills, (double)budget * ONE_ROW_IN / ROW_COUNT);
    for (int i = 0; kills && budget > 0 && i < ROW_COUNT; i++)
        if (is_long(&ROWS[i])) killed_at_random(&w, &ROWS[i], 2);
    print_message("%d strikes, %d of them survived, %d problems:", w.strikes, w.survived, w.problems);
    for (int k = 0; k < STRIKE_KINDS && !kills; k++) print_message(" %s %d", STRIKE_NAMES[k], w.by_kind[k]);
    print_message("\n");
    world_close(&w);
}

void strikes_random(int kills) {
    World w;
    world_open(&w, 2);
    shell(&w, "in", LONG_INPUTS);
    for (int i = 0; i < LONG_COUNT; i++)
        if (wanted("OUTPACE_STRIKES", LONG_ROWS[i].name)) killed_at_random(&w, &LONG_ROWS[i], kills);
    world_close(&w);
}

void strikes_fail(int budget) { strikes(budget, false); }
void strikes_kill(int budget) { strikes(budget, true); }
