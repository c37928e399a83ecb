// Whatever a file, a model, a dataset or a point is called, what is printed of its name stays on its line and
// moves no cursor: every command on names with an end of line and an escape in them.
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>

#define NAME "x\n\033[31mZZ" // '%' below

// The names once as the shell has them, once as YAML writes them.
static const char INPUTS[] =
    "set -e\n"
    "N=$(printf 'x\\n\\033[31mZZ') n='x\\n\\e[31mZZ'\n"
    "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do\n"
    "    printf 'twinkle twinkle little star how i wonder\\n-\\nthe sky is up above the world %d\\n-\\n' $i\n"
    "done >\"$N.txt\"\n"
    "printf '{\"prompt\": \"one two\", \"reference\": \"three\"}\\n{\"prompt\": \"four\"}\\n' >\"$N.jsonl\"\n"
    "cat >\"$N.yaml\" <<END\n"
    "name: \"$n\"\n"
    "models: [{name: \"$n\", target: \"$n\"}]\n"
    "datasets: [{name: \"$n\", path: \"$n.jsonl\"}]\n"
    "generation: {max_tokens: 8}\n"
    "methods: [autoregressive, jacobi, {name: rest, matrix: {datastore: [\"$n.store\", \"no$n\"]}}]\n"
    "hardware: {threads: 1}\n"
    "measurement: {warmup: 0, passes: 1}\n"
    "END\n"
    "cat >\"train$N.yaml\" <<END\n"
    "{out: \"$n.trained\", tokenizer: \"$n.tok\", files: \"$n.txt\", separator: \"-\", layers: 1, width: "
    "16,\n"
    " heads: 2, key_heads: 1, mlp: 32, context: 32, batch: 64, steps: 4, rate: 0.02, last_rate: 0.002,\n"
    " warmup: 1, held_out: 0.3, held_out_every: 2, checkpoint_every: 2}\n"
    "END\n"
    "cat >\"parts$N.yaml\" <<END\n"
    "{files: [\"$n.txt\"], separator: \"-\", steps: 2, context: 32, batch: 64, pass: 64, held_out: 0.3}\n"
    "END\n";

typedef struct {
    int code;
    const char *words; // apart by one space
} Line;

// clang-format off
static const Line LINES[] = {
    {0, "model synth tiny %"},
    {0, "model adapter % %.a --exit-layer 1"},
    {0, "model info %"},
    {0, "generate % hi -n 3 --stats -c 4096 --adapter %.a --method kangaroo:exit_layer=1"},
    {0, "tokenizer train %.txt --vocab 390 --separator - -o %.tok"},
    {0, "tokenizer encode % hello"},
    {0, "datasets index %.txt --model % -o %.store"},
    {0, "datasets index --info %.store"},
    {0, "generate % star -n 3 --stats --method rest:datastore=%.store"},
    {0, "verify % -n 1 --max-tokens 4 -m rest:datastore=%.store"},
    {0, "datasets --path %.jsonl"},
    {0, "replay --path %.jsonl --model % --resamples 100"},
    {3, "plan --check %.yaml"},
    {3, "plan %.yaml --points --db %.db"},
    {3, "run %.yaml --db %.db"},
    {3, "plan %.yaml --points --db %.db"},
    {3, "run 1 --db %.db"},
    {0, "show --db %.db"},
    {0, "show --db %.db"},
    {0, "table --db %.db"},
    {0, "sql SELECT(label)FROM(point) --db %.db"},
    {0, "compare 1/1 1/2 --db %.db"},
    {0, "simulate 1 --on a100-80gb --shape llama2-7b --db %.db"},
    {0, "table spec-bench --run 1 --db %.db"},
    {2, "fit 1 --db %.db"},
    {0, "plot speedup --db %.db -o %.svg"},
    {0, "plot speedup --db %.db -o %.tex"},
    {0, "plot speedup --db %.db --format term"},
    {0, "report --db %.db -o %.md"},
    {0, "store export --db %.db --format spec-bench -o %.answers"},
    {0, "store export --db %.db --format jsonl --what steps -o %.steps"},
    {0, "store import steps %.steps --db i%.db"},
    {0, "store merge %.db --db m%.db"},
    {0, "store gc --check --db m%.db"},
    {0, "bench --store % --k 1,2 --w 0,1 --context 25 --rows 0 --samples 1 --device null --db s%.db"},
    {0, "bench % --tokens 1,2 --context 25 --samples 1 --seconds 0 --device null"},
    {0, "tune % --method ngrammys --dataset chat --limit 2 --device null --budget 60s --db t%.db"},
    {0, "train train%.yaml --stop-after 2"},
    {0, "train train%.yaml"},
    {0, "train adapter % --exit-layer 1 --config parts%.yaml -o %.ad"},
    {2, "show --db no%.db"},
    {2, "run no%"},
    {2, "no%"},
};
// clang-format on
enum { LINE_COUNT = sizeof LINES / sizeof *LINES, MOST_WORDS = 24 };

// No control characters, and no line that begins within a name.
static void check(const char *words, const Text *t) {
    for (size_t i = 0; i < t->length; i++) {
        const char *at = text_get(t) + i;
        if ((*at != '\n' && (unsigned char)*at < ' ') || *at == 0x7f || strncmp(at, "\n?[31m", 6) == 0)
            fail_msg("%s: a name is printed as it is: %s", words, text_get(t));
    }
}

static void run_line(const char *folder, const Line *l) {
    const char *argv[MOST_WORDS + 1] = {0};
    Text words = {0};
    Child c;
    int n = 0;
    for (const char *at = l->words; *at; at++) text_puts(&words, *at == '%' ? NAME : (char[]){*at, 0});
    for (char *save, *word = strtok_r(words.data, " ", &save); word; word = strtok_r(NULL, " ", &save))
        assert_true(n < MOST_WORDS), argv[n++] = word;
    child_outpace(&c, folder, l->code, argv);
    check(l->words, &c.out);
    check(l->words, &c.err);
    child_release(&c);
    text_release(&words);
}

static void stay_on_their_line(void **state) {
    Child c;
    setenv("HOME", *state, true);
    child_run(&c, *state, NULL, (const char *const[]){"sh", "-c", INPUTS, NULL});
    assert_int_equal(c.code, 0);
    child_release(&c);
    for (int i = 0; i < LINE_COUNT; i++) run_line(*state, &LINES[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stay_on_their_line, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
