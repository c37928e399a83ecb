// No command replaces what it reads, whatever --force says: every command that has --force, on each of its
// inputs.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char INPUTS[] =
    "set -e\n"
    "$O model synth tiny m\n"
    "$O model adapter m a --exit-layer 1\n"
    "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do\n"
    "    printf 'twinkle twinkle little star how i wonder\\n-\\nthe sky is up above the world %d\\n-\\n' $i\n"
    "done >t.txt\n"
    "ln -s t.txt soft.svg && ln t.txt hard.svg\n"
    "printf '{\"prompt\": \"one two\", \"reference\": \"three\"}\\n' >own.jsonl\n"
    "printf 'name: x\\nmodels: [{name: m, target: m}]\\ndatasets: [{name: own, path: own.jsonl}]\\n"
    "generation: {max_tokens: 4}\\nmethods: [autoregressive, jacobi]\\nhardware: {threads: 1}\\n"
    "measurement: {warmup: 0, passes: 1}\\n' >x.yaml\n"
    "$O run x.yaml --db x.db\n"
    "cp x.db y.db\n"
    "$O bench m --tokens 1,2,4 --context 25,50 --samples 1 --seconds 0 --device null --csv >steps.csv\n"
    "$O fit --surface steps.csv --model m --on cpu-2core-zen4 --save sheet.json\n"
    "$O tokenizer train t.txt --vocab 390 --separator - -o tok.json\n"
    "printf 'out: n\\ntokenizer: tok.json\\nfiles: t.txt\\nseparator: \"-\"\\nlayers: 1\\nwidth: 16\\n"
    "heads: 2\\nkey_heads: 1\\nmlp: 32\\ncontext: 32\\nbatch: 64\\nsteps: 2\\nrate: 0.02\\n"
    "last_rate: 0.002\\nwarmup: 1\\nheld_out: 0.3\\nheld_out_every: 2\\ncheckpoint_every: 2\\n' >n.yaml\n"
    "$O train n.yaml\n";

typedef struct {
    const char *input; // must stay as it is
    const char *words; // apart by one space; --force is added
} Row;

// clang-format off
static const Row ROWS[] = {
    {"x.db", "store export --db x.db -o x.db"},
    {"x.db", "store export --db x.db -o x.db --format jsonl --what steps"},
    {"x.db", "report --db x.db -o x.db --format html"},
    {"x.db", "report --db x.db -o x.db --format md"},
    {"x.db", "report --db x.db -o x.db-shm --format html"},
    {"x.db", "plot speedup --db x.db -o x.db --format svg"},
    {"x.db", "plot predicted --db y.db --against-db x.db --against 1 --on l4 --shape llama2-7b -o x.db --format svg"},
    {"sheet.json", "plot predicted --db x.db --on sheet.json --shape llama2-7b -o sheet.json --format svg"},
    {"m/config.json", "plot predicted --db x.db --on l4 --shape m/config.json -o m/config.json --format svg"},
    {"t.txt", "tokenizer train t.txt --vocab 360 -o t.txt"},
    {"t.txt", "tokenizer train *.txt --vocab 360 -o t.txt"},
    {"t.txt", "tokenizer train t.txt --vocab 360 -o soft.svg"},
    {"t.txt", "tokenizer train soft.svg --vocab 360 -o hard.svg"},
    {"t.txt", "datasets index t.txt -o t.txt --model m"},
    {"m/config.json", "datasets index t.txt -o m/config.json --model m"},
    {"m/model.safetensors", "datasets index t.txt -o m/model.safetensors --model m"},
    {"steps.csv", "fit --surface steps.csv --model m --on cpu-2core-zen4 --save steps.csv"},
    {"m/config.json", "fit --surface steps.csv --model m --on cpu-2core-zen4 --save m/config.json"},
    {"sheet.json", "fit --surface steps.csv --model m --on ./sheet.json --save sheet.json"},
    {"own.jsonl", "tune m --method recycling --path own.jsonl --limit 1 --device null --tree own.jsonl"},
    {"m/config.json", "tune m --method recycling --path own.jsonl --limit 1 --device null --tree m/config.json"},
    {"m/config.json", "model synth m/config.json m"},
    {"m/config.json", "model adapter m m --exit-layer 1"},
    {"m/config.json", "model inflate m m --shape 500m"},
    {"a/config.json", "model inflate m a --shape 500m --adapter a"},
    {"m/config.json", "model quantise m ./m/"},
    {"n.yaml", "train n.yaml --outputs n.yaml"},
    {"t.txt", "train n.yaml --outputs t.txt"},
    {"tok.json", "train n.yaml --outputs tok.json"},
    {"n/config.json", "train n.yaml --outputs n/config.json"},
    {"t.txt", "train n.yaml --fresh -o n2 --figure soft.svg"},
    {"n/config.json", "train n.yaml --fresh --start n"},
    {"m/config.json", "train adapter m -o m -l 1 --text t.txt --separator -"},
    {"m/config.json", "train heads m -o m --text t.txt --separator -"},
};
// clang-format on
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS, MOST_WORDS = 24 };

static void stays(const char *folder, const Row *row) {
    const char *argv[MOST_WORDS + 2];
    char words[256], before[SHA256_TEXT], after[SHA256_TEXT];
    Error e = {0};
    Child c;
    int n = 0;
    snprintf(words, sizeof words, "%s", row->words);
    for (char *save, *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        assert_true(n < MOST_WORDS);
        argv[n++] = word;
    }
    argv[n++] = "--force";
    argv[n] = NULL;
    assert_true(sha256_file(folder_path(folder, row->input), before, &e));
    child_outpace(&c, folder, 2, argv);
    const char *told = text_get(&c.err), *last = strstr(told, "outpace: cannot write '");
    if (!last || !strstr(last, "it is read by this command; give another ") || strchr(last, '\n')[1])
        fail_msg("%s --force: wanted one line, that it is read by this command, got '%s'", row->words, told);
    if (!sha256_file(folder_path(folder, row->input), after, &e)) fail_msg("%s: %s", row->words, e.text);
    if (strcmp(before, after) != 0) fail_msg("%s --force changed '%s'", row->words, row->input);
    child_release(&c);
}

static void inputs_stay(void **state) {
    Child c;
    char *program = realpath(getenv("OUTPACE") ? getenv("OUTPACE") : "./outpace", NULL);
    assert_non_null(program);
    setenv("O", program, true);
    free(program);
    child_run(&c, *state, NULL, (const char *const[]){"sh", "-c", INPUTS, NULL});
    if (c.code) fail_msg("exit code %d: %s", c.code, text_get(&c.err));
    child_release(&c);
    for (int i = 0; i < ROW_COUNT; i++) stays(*state, &ROWS[i]);
}

// --- every command has rows

static bool has_row(const char *name) {
    size_t n = strlen(name);
    for (int i = 0; i < ROW_COUNT; i++)
        if (strncmp(ROWS[i].words, name, n) == 0 && ROWS[i].words[n] == ' ') return true;
    return false;
}

// By the manual page: the options of ".SS outpace COMMAND USAGE", or of a part's, follow it.
static void every_command(void **state) {
    static const char SECTION[] = ".SS outpace ";
    char name[70] = "";
    Child c;
    int count = 0;
    CHILD_OUTPACE(&c, *state, 0, "completions", "man");
    for (char *save, *line = strtok_r(c.out.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, SECTION, strlen(SECTION)) == 0) {
            const char *at = line + strlen(SECTION);
            size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz "); // up to the usage
            while (n && at[n - 1] != ' ') n--;
            snprintf(name, sizeof name, "%.*s", (int)n - 1, at);
        }
        if (strcmp(line, ".B \\-\\-force") != 0) continue;
        if (!has_row(name)) fail_msg("'%s --force' has no row", name);
        count++;
    }
    assert_in_range(count, 9, 30);
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_command, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(inputs_stay, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
