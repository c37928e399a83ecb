// Training files in YAML: the effect of their keys, and one line with place and fix for every error.
#include "tests/support/check.h"

#include "harness/train/train.h"

#include <stdio.h>
#include <math.h>
#include <string.h>

static const char GOOD[] = "# a small one\n"
                           "out: models/small\n"
                           "tokenizer: t.json\n"
                           "files: [a.txt, 'b/*.txt']\n"
                           "layers: 2\nwidth: 64\nheads: 4\nkey_heads: 2\nmlp: 128\ncontext: 96\n"
                           "steps: 100\nrate: 3e-3\nbatch: 1152\n";

static void parse(TrainFile *f, const char *text) {
    Error e = {0};
    if (!train_file_parse(f, text, strlen(text), "x.yaml", TRAIN_MODEL, &e)) fail_msg("%s", e.text);
}

static void values(void **state) {
    (void)state;
    TrainFile f;
    parse(&f, GOOD);
    assert_string_equal(f.out, "models/small");
    assert_int_equal(f.files.count, 2);
    assert_string_equal(f.files.items[1], "b/*.txt");
    assert_int_equal(f.config.shape.width, 64);
    assert_int_equal(f.config.shape.head_dim, 16);
    assert_int_equal(f.config.shape.rope.pairs, 8);
    assert_int_equal(f.config.shape.kv_heads, 2);
    assert_true(f.config.optimizer.rate == 3e-3);
    assert_true(f.config.optimizer.beta2 == 0.95);
    assert_int_equal(f.config.pass, 576); // the largest of 96's multiples up to 1024 that divides 1152
    assert_string_equal(f.eos, "</s>");
    assert_null(f.separator);
    train_file_release(&f);
}

static void all_keys(void **state) {
    (void)state;
    char text[2000];
    TrainFile f;
    snprintf(text, sizeof text, "%s%s", GOOD,
             "eos: '<|end|>'\nseparator: '---8<---'\nheld_out: 0.25\nheld_out_rows: 10\nheld_out_every: 7\n"
             "checkpoint_every: 9\nhead_size: 32\nrope_theta: 500000\nnorm_epsilon: 1e-6\nwarmup: 20\n"
             "last_rate: 1e-4\nbeta1: 0.8\nbeta2: 0.9\nepsilon: 1e-9\nweight_decay: 0\nclip: 0\npass: 96\n"
             "seed: 9223372036854775807\nthreads: 3\nisa: avx2\noptimizer: muon\nmomentum: 0.9\n"
             "schedule: stable\ncooldown: 0.4\ndecays: layers\nembedding_rate: 2e-3\n");
    parse(&f, text);
    assert_string_equal(f.separator, "---8<---");
    assert_int_equal(f.config.shape.head_dim, 32);
    assert_true(f.config.shape.norm_epsilon == 1e-6f);
    assert_true(f.config.seed == INT64_MAX);
    assert_int_equal(f.config.pass, 96);
    assert_int_equal(f.held_out_every, 7);
    assert_string_equal(f.config.isa, "avx2");
    const OptimizerOptions *o = &f.config.optimizer;
    assert_true(o->clip == 0 && o->momentum == 0.9 && o->cooldown == 0.4 && o->embedding_rate == 2e-3);
    assert_true(o->kind == OPTIMIZER_MUON && o->schedule == SCHEDULE_STABLE && o->decays == DECAY_LAYERS);
    train_file_release(&f);
}

// GOOD with one line replaced (or added), and the message for it.
// Everything has a fallback; shape and tokenizer are the model's.
static void adapters(void **state) {
    (void)state;
    const char *text = "files: a.txt\nbatch: 2048\nrate: 1e-3\nforwards: 3\nlayers: [1, 4, 7]\n"
                       "draft_vocab: 500\nkeep: 0.5\nblock: 9\ndraft_layers: 2\nmarkov_rank: 64\n",
               *bad = "files: a.txt\nwidth: 2\n";
    TrainFile f, fallbacks = {0};
    Error e = {0};
    assert_true(train_file_open_adapter(&fallbacks, NULL, &(TrainOptions){.draft_vocab = -1}, &e));
    assert_true(fallbacks.config.optimizer.kind == OPTIMIZER_MUON &&
                fallbacks.config.optimizer.schedule == SCHEDULE_STABLE);
    if (!train_file_parse(&f, text, strlen(text), "x.yaml", TRAIN_ADAPTER, &e)) fail_msg("%s", e.text);
    assert_null(f.out);
    assert_int_equal(f.config.batch, 2048);
    assert_int_equal(f.forwards, 3);
    assert_int_equal(f.draft_vocab, 500);
    assert_int_equal(f.block, 9);
    assert_int_equal(f.draft_layers, 2);
    assert_int_equal(f.markov_rank, 64);
    assert_int_equal(f.config.keep, 500000000);
    assert_int_equal(f.layers.count, 3);
    assert_true(f.config.optimizer.rate == 1e-3);
    assert_int_equal(f.config.optimizer.steps, fallbacks.config.optimizer.steps);
    assert_int_equal(f.config.pass, 0);
    train_file_set_context(&f, 256);
    assert_int_equal(f.config.pass, 1024);
    train_file_release(&f);
    assert_false(train_file_parse(&f, bad, strlen(bad), "x.yaml", TRAIN_ADAPTER, &e));
    assert_non_null(strstr(e.text, "x.yaml:2:1: an adapter's training file has no key 'width'"));
}

static void expect_domain(const TrainFile *f, int i, const char *file, const char *want) {
    assert_string_equal(f->files.items[i], file);
    if (f->domains[i].length != (int)strlen(want) || strncmp(f->domains[i].text, want, strlen(want)))
        fail_msg("file %d: wanted the domain '%s', got '%.*s'", i, want, f->domains[i].length,
                 f->domains[i].text);
}

// A domain is a file's name, a pattern's directory, or a key of `domains`.
static void domains(void **state) {
    (void)state;
    const char *text = "files: [novels.txt, texts/a.b.txt, 'texts/*.txt', '*.txt', .txt]\n"
                       "domains:\n  code: [x.py, y.py]\n  chat: z.txt\n";
    TrainFile f;
    Error e = {0};
    if (!train_file_parse(&f, text, strlen(text), "x.yaml", TRAIN_ADAPTER, &e)) fail_msg("%s", e.text);
    assert_int_equal(f.files.count, 8);
    expect_domain(&f, 0, "novels.txt", "novels");
    expect_domain(&f, 1, "texts/a.b.txt", "a.b");
    expect_domain(&f, 2, "texts/*.txt", "texts");
    expect_domain(&f, 3, "*.txt", "*");
    expect_domain(&f, 4, ".txt", ".txt");
    expect_domain(&f, 5, "x.py", "code");
    expect_domain(&f, 6, "y.py", "code");
    expect_domain(&f, 7, "z.txt", "chat");
    train_file_release(&f);
}

// Every preset is a shape that trains, with about as many parameters as its name gives.
static void presets(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int vocab;
        double millions;
    } SIZES[] = {{"5m", 2048, 5}, {"20m", 4096, 20}, {"60m", 8192, 60}};
    const char *file = "a'b.txt";
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        TrainOptions said = {
            .preset = SIZES[i].name, .out = "o", .tokenizer = "t", .files = {{file}, 1}, .rate = 0.25};
        TrainFile f;
        Parameters p;
        Error e = {0};
        if (!train_file_open_model(&f, NULL, &said, &e)) fail_msg("%s: %s", said.preset, e.text);
        assert_string_equal(f.files.items[0], file);
        assert_true(f.config.optimizer.rate == 0.25);
        f.config.shape.vocab = f.config.shape.real_vocab = SIZES[i].vocab;
        if (!parameters_plan(&p, &f.config.shape, &e)) fail_msg("%s: %s", said.preset, e.text);
        double millions = (double)p.total / 1e6;
        if (fabs(millions / SIZES[i].millions - 1) > 0.03)
            fail_msg("%s is %g million", said.preset, millions);
        parameters_release(&p);
        train_file_release(&f);
    }
}

static void expect_error(const char *was, const char *is, const char *want) {
    char text[2000];
    const char *at = strstr(GOOD, was);
    TrainFile f;
    Error e = {0};
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - GOOD), GOOD, is, at + strlen(was));
    if (train_file_parse(&f, text, strlen(text), "x.yaml", TRAIN_MODEL, &e)) fail_msg("'%s' was taken", is);
    if (strcmp(e.text, want)) fail_msg("'%s': wanted '%s', got '%s'", is, want, e.text);
    assert_int_equal(e.kind, ERROR_INPUT);
    train_file_release(&f);
}

static void errors(void **state) {
    (void)state;
    expect_error(
        "steps:", "stesp:", "x.yaml:11:1: a training file has no key 'stesp'; did you mean 'steps'?");
    expect_error("width: 64", "width: 6.5",
                 "x.yaml:6:8: 'width' is '6.5', must be a whole number from 1 to 131072");
    expect_error("width: 64", "width: 64k",
                 "x.yaml:6:8: 'width' is '64k', must be a whole number from 1 to 131072");
    expect_error("width: 64", "width: [64]", "x.yaml:6:8: 'width' must be one value");
    expect_error("rate: 3e-3", "rate: .nan", "x.yaml:12:7: 'rate' is '.nan', must be a number from 0 to 10");
    expect_error("mlp: 128\n", "", "x.yaml:2:1: a training file needs 'mlp': add a line 'mlp: ...'");
    expect_error("mlp: 128\n", "width: 1\n",
                 "x.yaml:9:1: 'width' is given twice, first in line 6: take one away");
    expect_error("mlp: 128", "mlp: 128\nseed: -1",
                 "x.yaml:10:7: 'seed' is '-1', must be a whole number from 0 to 2^63 - 1");
    expect_error("models/small", "", "x.yaml:2:5: 'out' is empty: give it a value or take the line away");
    expect_error("files: [a.txt, 'b/*.txt']\n", "",
                 "x.yaml:2:1: a training file needs 'files' or 'domains': add a line 'files: ...'");
    expect_error("files: [a.txt, 'b/*.txt']\n", "domains: a.txt\n",
                 "x.yaml:4:10: 'domains' must be a map of names to files: 'code: [a.txt, b.txt]'");
    expect_error("files: [a.txt, 'b/*.txt']\n", "domains: {a: {b: c}}\n",
                 "x.yaml:4:14: the domain 'a' must be a list of files: [one, two]");
    expect_error("a.txt", "[a, b]", "x.yaml:4:9: 'files' must be one value");
    expect_error("a.txt, 'b/*.txt'", "a, *b", "x.yaml:4:12: '*b' is an alias: write the value itself");
    expect_error(GOOD, "just a text", "x.yaml:1:1: a training file must be a map: lines such as 'out: ...'");
    expect_error(GOOD, "", "x.yaml:1:1: there is nothing in it");
    expect_error("steps", "\x01", "x.yaml:11:1: this is not YAML: control characters are not allowed");
}

// Any bytes at all: a line or values, never a crash.
static void random_bytes(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 3000; round++) {
        char text[sizeof GOOD];
        size_t n = random_below(&r, sizeof GOOD);
        memcpy(text, GOOD, sizeof GOOD);
        for (int i = test_between(&r, 1, 6); i > 0; i--)
            text[random_below(&r, sizeof GOOD)] =
                (char)(random_below(&r, 4) ? "[]{}*&:-'\"\n 1"[random_below(&r, 13)]
                                           : (int)random_below(&r, 256));
        TrainFile f;
        Error e = {0};
        if (!train_file_parse(&f, text, round % 2 ? n : sizeof GOOD - 1, "x", (TrainKind)(round % 2), &e))
            assert_int_equal(e.kind, ERROR_INPUT);
        train_file_release(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values),      cmocka_unit_test(all_keys),
                                       cmocka_unit_test(domains),     cmocka_unit_test(presets),
                                       cmocka_unit_test(errors),      cmocka_unit_test(adapters),
                                       cmocka_unit_test(random_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
