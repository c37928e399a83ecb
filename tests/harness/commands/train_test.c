// Training by the real program ($OUTPACE): a text learned by heart and generated again; a run that is killed
// and interrupted gives the same files as one that is not.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tests/support/spoil.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char RHYME[] = "twinkle twinkle little star how i wonder what you are";

static char *program(void) {
    const char *p = getenv("OUTPACE");
    char *path = realpath(p ? p : "./outpace", NULL);
    assert_non_null(path);
    return path;
}

#define RUN(folder, code, child, ...) CHILD_OUTPACE(child, folder, code, __VA_ARGS__)

static void write_config(const char *folder, const char *name, int steps, const char *more) {
    char text[1000];
    int n =
        snprintf(text, sizeof text,
                 "out: %s\ntokenizer: tokenizer.json\nfiles: rhymes.txt\nseparator: '-'\n"
                 "layers: 2\nwidth: 48\nheads: 4\nkey_heads: 2\nmlp: 96\ncontext: 64\nbatch: 256\nsteps: %d\n"
                 "rate: 0.02\nlast_rate: 0.002\nwarmup: 10\nweight_decay: 0.01\n%s",
                 name, steps, more);
    char file[100];
    snprintf(file, sizeof file, "%s.yaml", name);
    scratch_write(folder, file, text, (size_t)n);
}

static void prepare(const char *folder) {
    Text text = {0};
    Child c;
    for (int i = 0; i < 20; i++) text_printf(&text, "%s\n-\nthe sky is up above the world %d\n-\n", RHYME, i);
    scratch_write(folder, "rhymes.txt", text.data, text.length);
    text_release(&text);
    RUN(folder, 0, &c, "tokenizer", "train", "rhymes.txt", "--vocab", "400", "--separator", "-");
    child_release(&c);
}

static void a_text_learned_by_heart(void **state) {
    Child c;
    prepare(*state);
    write_config(*state, "heart", 120, "held_out: 0.3\nheld_out_every: 50\n");
    RUN(*state, 0, &c, "train", "heart.yaml");
    assert_non_null(strstr(text_get(&c.out), "step 50  held-out loss "));
    assert_non_null(strstr(text_get(&c.out), "wrote the model to heart"));
    assert_non_null(strstr(text_get(&c.err), "step 120 of 120  loss 0."));
    assert_non_null(strstr(text_get(&c.out), "* loss of the batches, o held out; by step\n"));
    child_release(&c);
    RUN(*state, 0, &c, "generate", "heart", "twinkle twinkle", "-n", "60", "--stats");
    assert_string_equal(text_get(&c.out), "little star how i wonder what you are\n");
    assert_non_null(strstr(text_get(&c.err), "ended by eos"));
    child_release(&c);
    RUN(*state, 0, &c, "model", "info", "heart", "--check");
    child_release(&c);
}

// The loss of the checkpoint, or of a model; nothing is trained or written.
static void a_loss(void **state) {
    Child c;
    prepare(*state);
    write_config(*state, "base", 20, "held_out: 0.3\n");
    RUN(*state, 2, &c, "train", "base.yaml", "--loss");
    assert_non_null(strstr(text_get(&c.err), "'base.checkpoint' has nothing yet to measure: train first"));
    assert_int_equal(access(folder_path(*state, "base.checkpoint"), R_OK), -1);
    child_release(&c);
    RUN(*state, 0, &c, "train", "base.yaml", "--stop-after", "3", "--threads", "3");
    assert_non_null(strstr(text_get(&c.err), ", 3 threads\n"));
    child_release(&c);
    RUN(*state, 0, &c, "train", "base.yaml", "--loss");
    assert_non_null(strstr(text_get(&c.out), "step 3  held-out loss "));
    child_release(&c);
    write_config(*state, "all", 20, "");
    RUN(*state, 2, &c, "train", "all.yaml", "--loss");
    assert_non_null(strstr(text_get(&c.err), "set held_out"));
    child_release(&c);
}

// Losses by domain after a training.
static void domains(void **state) {
    Child c;
    Text text = {0};
    prepare(*state);
    for (int i = 0; i < 40; i++)
        text_printf(&text, "one two three four five six seven eight nine ten and %d\n-\n", i);
    scratch_write(*state, "many.txt", text.data, text.length);
    text_release(&text);
    write_config(*state, "told", 60, "held_out: 0.3\ndomains:\n  numbers: many.txt\n");
    RUN(*state, 0, &c, "train", "told.yaml");
    static const char *const WANTED[] = {"| rhymes | ", "| numbers | ", "| all | "};
    for (size_t i = 0; i < sizeof WANTED / sizeof *WANTED; i++)
        if (!strstr(text_get(&c.out), WANTED[i])) fail_msg("wanted '%s' in: %s", WANTED[i], text_get(&c.out));
    assert_null(strstr(text_get(&c.out), "nan"));
    child_release(&c);
}

// A checkpoint's model as it is, and a training that goes on from it: the schedule and the reading where they
// were.
static void a_snapshot(void **state) {
    Child c;
    prepare(*state);
    write_config(*state, "long", 120, "held_out: 0.3\nheld_out_every: 60\n");
    RUN(*state, 2, &c, "train", "long.yaml", "--snapshot", "kept");
    assert_non_null(strstr(text_get(&c.err), "'long.checkpoint' has nothing yet"));
    child_release(&c);
    RUN(*state, 0, &c, "train", "long.yaml", "--stop-after", "60");
    child_release(&c);
    RUN(*state, 0, &c, "train", "long.yaml", "--snapshot", "kept");
    assert_non_null(strstr(text_get(&c.out), "go on from it with: --fresh --start kept --begun 60\n"));
    child_release(&c);
    assert_int_equal(access(folder_path(*state, "long"), R_OK), -1);
    write_config(*state, "again", 120, "held_out: 0.3\nheld_out_every: 60\n");
    RUN(*state, 0, &c, "train", "again.yaml", "--fresh", "--start", "kept", "--begun", "60");
    assert_non_null(strstr(text_get(&c.err), "step 120 of 120  loss 0."));
    assert_null(strstr(text_get(&c.out), "step 60 "));
    child_release(&c);
    RUN(*state, 0, &c, "generate", "again", "twinkle twinkle", "-n", "60");
    assert_string_equal(text_get(&c.out), "little star how i wonder what you are\n");
    child_release(&c);
}

// A text of the model's own, which an adapter can learn from.
static void own_outputs(void **state) {
    Child c;
    size_t n;
    prepare(*state);
    write_config(*state, "own", 120, "held_out: 0.3\n");
    RUN(*state, 0, &c, "train", "own.yaml");
    child_release(&c);
    RUN(*state, 0, &c, "train", "own.yaml", "--outputs", "new/own.txt", "--prompts", "9", "-n", "30");
    assert_non_null(strstr(text_get(&c.out), "bytes of outputs to new/own.txt"));
    child_release(&c);
    char *text = scratch_read(*state, "new/own.txt", &n);
    assert_non_null(strstr(text, "twinkle twinkle little star how i wonder what you are\n-\n"));
    mem_free(text);
    RUN(*state, 0, &c, "train", "heads", "own", "--text", "new/own.txt", "--separator", "-", "--steps", "1",
        "-o", "heads");
    child_release(&c);
    RUN(*state, 2, &c, "train", "own.yaml", "--outputs", "rhymes.txt");
    child_release(&c);
}

// The losses as a figure, also of a training that is done.
static void a_figure(void **state) {
    Child c;
    size_t n;
    prepare(*state);
    write_config(*state, "drawn", 30, "held_out: 0.3\nheld_out_every: 10\n");
    RUN(*state, 0, &c, "train", "drawn.yaml");
    child_release(&c);
    RUN(*state, 2, &c, "train", "drawn.yaml", "--figure", "losses.gif");
    assert_non_null(strstr(text_get(&c.err), "--figure 'losses.gif' must end in .svg, .png or .pdf"));
    child_release(&c);
    if (access("/usr/bin/gnuplot", X_OK)) skip();
    RUN(*state, 0, &c, "train", "drawn.yaml", "--figure", "losses.svg");
    child_release(&c);
    char *svg = scratch_read(*state, "losses.svg", &n), *numbers = scratch_read(*state, "losses.svg.dat", &n);
    assert_true(strstr(svg, "</svg>") && strstr(svg, "held out") && strstr(svg, "drawn"));
    assert_true(strstr(numbers, ": batches\n# step loss\n1 ") &&
                strstr(numbers, ": held out\n# step loss\n10 "));
    mem_free(svg);
    mem_free(numbers);
}

// A preset needs no file; where there is one, the file is first, and the command line before both.
static void a_preset(void **state) {
    Child c;
    prepare(*state);
    RUN(*state, 0, &c, "train", "--preset", "5m", "--text", "rhymes.txt", "--separator", "-", "--tokenizer",
        "tokenizer.json", "-o", "it's", "--steps", "1", "--batch", "1024");
    assert_non_null(strstr(text_get(&c.err), "step 1 of 1  loss "));
    assert_non_null(strstr(text_get(&c.out), "wrote the model to it's"));
    child_release(&c);
    RUN(*state, 2, &c, "train", "--preset", "5m", "--text", "rhymes.txt", "-o", "m");
    assert_non_null(strstr(text_get(&c.err), "needs --tokenizer FILE; 'outpace tokenizer train' makes one"));
    child_release(&c);
    RUN(*state, 2, &c, "train", "--preset", "7m");
    assert_non_null(strstr(text_get(&c.err), "no preset '7m': there are 5m, 20m and 60m"));
    child_release(&c);
    static const char SHORT[] = "out: m\ntokenizer: tokenizer.json\nfiles: none.txt\nlayers: 1\nsteps: 9\n";
    scratch_write(*state, "short.yaml", SHORT, sizeof SHORT - 1);
    RUN(*state, 0, &c, "train", "short.yaml", "--preset", "5m", "--text", "rhymes.txt", "--separator", "-",
        "--steps", "1", "--batch", "1024");
    child_release(&c);
    size_t n;
    char *config = scratch_read(folder_path(*state, "m"), "config.json", &n);
    assert_non_null(strstr(config, "\"num_hidden_layers\": 1"));
    assert_non_null(strstr(config, "\"hidden_size\": 256"));
    mem_free(config);
}

static void expect_same_file(const char *folder, const char *a, const char *b, const char *name) {
    size_t n, m;
    char *x = scratch_read(folder_path(folder, a), name, &n),
         *y = scratch_read(folder_path(folder, b), name, &m);
    if (n != m || memcmp(x, y, n)) fail_msg("%s of '%s' and '%s' differ", name, a, b);
    mem_free(x);
    mem_free(y);
}

// Starts a training, waits until it reports some step, and sends a signal.
static int start_and_signal(const char *folder, const char *config, int number) {
    char *path = program(), seen[4096];
    const char *argv[] = {path, "train", config, NULL};
    int out[2], null = open("/dev/null", O_RDWR);
    size_t n = 0;
    assert_int_equal(pipe(out), 0);
    pid_t pid = child_start(folder, argv, null, out[1], null);
    close(out[1]);
    for (ssize_t k; n < sizeof seen - 1 && (k = read(out[0], seen + n, sizeof seen - 1 - n)) > 0;) {
        n += (size_t)k;
        seen[n] = 0;
        if (strstr(seen, "held-out loss")) break;
    }
    kill(pid, number);
    int code = child_wait(pid);
    close(out[0]);
    close(null);
    free(path);
    return code;
}

// Killed after some step after a checkpoint, then interrupted, then stopped, then to the end; with other
// threads each time.
static void killed_is_uninterrupted(void **state) {
    const char *more = "held_out: 0.3\nheld_out_every: 20\ncheckpoint_every: 7\nthreads: %d\n";
    char text[200];
    Child c;
    prepare(*state);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, more, i + 1);
        write_config(*state, i ? "broken" : "whole", 120, text);
    }
    RUN(*state, 0, &c, "train", "whole.yaml");
    child_release(&c);
    assert_int_equal(start_and_signal(*state, "broken.yaml", SIGKILL), 128 + SIGKILL);
    assert_int_equal(access(folder_path(*state, "broken.checkpoint"), R_OK), 0);
    assert_int_equal(access(folder_path(*state, "broken"), R_OK), -1);
    assert_int_equal(start_and_signal(*state, "broken.yaml", SIGINT), 130);
    RUN(*state, 0, &c, "train", "broken.yaml", "--stop-after", "3");
    assert_non_null(strstr(text_get(&c.err), "resumed   at step "));
    assert_non_null(strstr(text_get(&c.err), "resumes from broken.checkpoint"));
    child_release(&c);
    RUN(*state, 0, &c, "train", "broken.yaml");
    child_release(&c);
    expect_same_file(*state, "whole", "broken", "model.safetensors");
    expect_same_file(*state, "whole", "broken", "config.json");
    size_t n, m;
    char *whole = scratch_read(*state, "whole.losses.tsv", &n),
         *broken = scratch_read(*state, "broken.losses.tsv", &m);
    assert_true(n == m && memcmp(whole, broken, n) == 0);
    assert_non_null(strstr(whole, "\n120\t"));
    mem_free(whole);
    mem_free(broken);
}

static void refusals(void **state) {
    Child c;
    prepare(*state);
    write_config(*state, "a", 4, "eos: '<end>'\n");
    RUN(*state, 2, &c, "train", "a.yaml");
    assert_string_equal(
        text_get(&c.err),
        "outpace: 'tokenizer.json' has no piece '<end>' to end documents with; name it as eos\n");
    child_release(&c);
    RUN(*state, 2, &c, "train", "none.yaml");
    child_release(&c);
    RUN(*state, 2, &c, "train");
    child_release(&c);
    RUN(*state, 2, &c, "train", "a.yaml", "--dataset", "chat");
    assert_string_equal(text_get(&c.err),
                        "outpace: train: --dataset is for what learns from a model's answers: 'outpace train "
                        "adapter|heads|eagle|eagle3|mtp|dflash|dspark MODEL --dataset NAME'\n");
    child_release(&c);
    RUN(*state, 2, &c, "tokenizer", "train", "no*.txt");
    assert_string_equal(text_get(&c.err), "outpace: there is no file 'no*.txt'\n");
    child_release(&c);
    RUN(*state, 2, &c, "tokenizer", "train", "rhymes.txt", "--vocab", "100");
    child_release(&c);
    write_config(*state, "b", 4, "");
    RUN(*state, 0, &c, "train", "b.yaml");
    child_release(&c);
    write_config(*state, "b", 5, "");
    RUN(*state, 2, &c, "train", "b.yaml");
    assert_non_null(strstr(text_get(&c.err), "'b.checkpoint' is of a run with another configuration"));
    child_release(&c);
    RUN(*state, 0, &c, "train", "b.yaml", "--fresh");
    child_release(&c);
}

// A teacher and a start are found by name, as models of the command line are.
static void models_by_name(void **state) {
    char *root = realpath(getenv("OUTPACE_ROOT") ? getenv("OUTPACE_ROOT") : ".", NULL);
    char *tokenizer = mem_printf("%s/models/draft/tokenizer.json", root);
    Child c;
    prepare(*state);
    write_config(*state, "pupil", 1, "teacher: draft\n");
    RUN(*state, 0, &c, "train", "pupil.yaml", "--tokenizer", tokenizer);
    child_release(&c);
    write_config(*state, "again", 1, "start: refrence\n");
    RUN(*state, 2, &c, "train", "again.yaml", "--tokenizer", tokenizer);
    assert_string_equal(text_get(&c.err),
                        "outpace: start: there is no model 'refrence'; did you mean 'reference'?\n");
    child_release(&c);
    mem_free(tokenizer);
    free(root);
}

// Runs a command that must be refused, with this in its message; `dir` is then as it was.
static void refused(const char *folder, const char *dir, const char *wanted, const char *const *words) {
    static const char *const FILES[] = {"config.json", "model.safetensors"};
    Child c;
    char *before[2], *after;
    size_t n[2], m;
    for (int i = 0; i < 2; i++) before[i] = scratch_read(folder_path(folder, dir), FILES[i], &n[i]);
    child_outpace(&c, folder, 2, words);
    if (!strstr(text_get(&c.err), wanted)) fail_msg("wanted '%s' in: %s", wanted, text_get(&c.err));
    child_release(&c);
    for (int i = 0; i < 2; i++) {
        after = scratch_read(folder_path(folder, dir), FILES[i], &m);
        assert_true(n[i] == m && memcmp(before[i], after, m) == 0);
        mem_free(before[i]);
        mem_free(after);
    }
}
#define REFUSED(dir, wanted, ...) refused(*state, dir, wanted, (const char *const[]){__VA_ARGS__, NULL})

// A model is replaced by another training's model only, an adapter by an adapter only; what is read, and what
// 'train' did not write, is not.
static void models_stay(void **state) {
    static const char READ[] = "is read by this command", OTHERS[] = "a model that 'train' did not write";
    Child c;
    prepare(*state);
    write_config(*state, "m", 2, "");
    RUN(*state, 0, &c, "train", "m.yaml");
    child_release(&c);
    assert_int_equal(symlink("m", folder_path(*state, "link")), 0);
    REFUSED("m", READ, "train", "adapter", "m", "-o", "m", "-l", "1", "--text", "rhymes.txt", "--separator",
            "-");
    REFUSED("m", READ, "train", "heads", "m", "-o", "./m/../m/", "--text", "rhymes.txt", "--separator", "-");
    REFUSED("m", READ, "train", "heads", "m", "-o", "link", "--text", "rhymes.txt", "--separator", "-");
    REFUSED("m", READ, "train", "heads", "link", "-o", "m", "--text", "rhymes.txt", "--separator", "-");
    REFUSED("m", READ, "train", "m.yaml", "--start", "m", "--fresh");
    REFUSED("m", READ, "model", "inflate", "m", "m", "--shape", "500m", "--force");
    REFUSED("m", READ, "model", "adapter", "m", "link", "--exit-layer", "1");
    REFUSED("m", "'synth' did not write", "model", "synth", "tiny", "m");
    RUN(*state, 0, &c, "model", "synth", "tiny", "random/a", "--set", "vocab_size=400");
    child_release(&c);
    REFUSED("random/a", OTHERS, "train", "heads", "m", "-o", "random/a", "--text", "rhymes.txt",
            "--separator", "-");
    write_config(*state, "random/a", 2, "");
    REFUSED("random/a", OTHERS, "train", "random/a.yaml");
    RUN(*state, 0, &c, "train", "adapter", "m", "-o", "new/ad", "-l", "1", "--text", "rhymes.txt",
        "--separator", "-", "--steps", "1");
    child_release(&c);
    write_config(*state, "n", 1, "");
    RUN(*state, 0, &c, "train", "n.yaml");
    child_release(&c);
    REFUSED("m", "holds a model, not an adapter", "train", "heads", "n", "-o", "m", "--text", "rhymes.txt",
            "--separator", "-");
    RUN(*state, 0, &c, "train", "heads", "m", "-o", "new/ad", "--text", "rhymes.txt", "--separator", "-",
        "--steps", "1", "--fresh");
    child_release(&c);
    // Of a model's files alone, too; the tokenizer that it learns with is written again as it was.
    static const char TOKENS[] = "tokens/tokenizer.json";
    write_config(*state, "tokens", 1, "");
    assert_int_equal(mkdir(folder_path(*state, "tokens"), 0777), 0);
    scratch_write(*state, TOKENS, "mine", 4);
    RUN(*state, 2, &c, "train", "tokens.yaml");
    assert_non_null(strstr(text_get(&c.err), "'tokens' holds 'tokenizer.json', without a config.json"));
    child_release(&c);
    RUN(*state, 2, &c, "model", "synth", "tiny", "tokens");
    child_release(&c);
    assert_int_equal(remove(folder_path(*state, TOKENS)), 0);
    assert_int_equal(link(folder_path(*state, "tokenizer.json"), folder_path(*state, TOKENS)), 0);
    RUN(*state, 0, &c, "train", "tokens.yaml");
    child_release(&c);
    scratch_write(*state, "mine.checkpoint", "mine", 4);
    write_config(*state, "mine", 2, "");
    RUN(*state, 2, &c, "train", "mine.yaml", "--fresh");
    assert_non_null(strstr(text_get(&c.err), "is not a checkpoint"));
    child_release(&c);
    RUN(*state, 0, &c, "train", "random/a.yaml", "--force");
    child_release(&c);
    RUN(*state, 2, &c, "tokenizer", "train", "rhymes.txt", "--vocab", "400", "-o", "rhymes.txt");
    child_release(&c);
    RUN(*state, 2, &c, "tokenizer", "train", "rhymes.txt", "--vocab", "400", "-o", "m.yaml");
    child_release(&c);
    RUN(*state, 2, &c, "tokenizer", "train", "rhymes.txt", "--vocab", "400", "-o", "m/tokenizer.json");
    child_release(&c);
    RUN(*state, 0, &c, "tokenizer", "train", "rhymes.txt", "--vocab", "400");
    child_release(&c);
}

// A directory that was missing is named; of a training that is refused nothing remains.
static void a_new_directory(void **state) {
    Child c;
    prepare(*state);
    write_config(*state, "m", 1, "");
    int before = folder_count(*state);
    RUN(*state, 2, &c, "train", "m.yaml", "-o", "new/x/m", "--text", "none.txt");
    child_release(&c);
    assert_int_equal(folder_count(*state), before);
    RUN(*state, 0, &c, "train", "m.yaml", "-o", "new/x/m");
    if (!strstr(text_get(&c.err), "made      the directory new/x\n"))
        fail_msg("wanted the directory new/x, got: %s", text_get(&c.err));
    child_release(&c);
    RUN(*state, 0, &c, "train", "m.yaml", "-o", "new/x/n");
    assert_null(strstr(text_get(&c.err), "made"));
    child_release(&c);
}

// Reported before the first step: a missing directory to write to, or a full disk.
static void told_at_once(void **state) {
    static const char *const OUTS[] = {"/proc/nowhere/ad", "rhymes.txt/ad", "disk/ad"};
    static const char *const WANTED[] = {"cannot make the directory '/proc/nowhere'",
                                         "cannot make the directory 'rhymes.txt'",
                                         "checkpoints and the model take 0.2 MB, 'disk' has room for 0.1"};
    Child c;
    prepare(*state);
    write_config(*state, "m", 1, "");
    RUN(*state, 0, &c, "train", "m.yaml");
    child_release(&c);
    bool disk = folder_disk(*state, "disk", 100);
    for (int i = 0; i < 2 + disk; i++) {
        RUN(*state, 1, &c, "train", "adapter", "m", "-o", OUTS[i], "-l", "1", "--text", "rhymes.txt",
            "--separator", "-");
        if (!strstr(text_get(&c.err), WANTED[i])) fail_msg("wanted '%s' in: %s", WANTED[i], text_get(&c.err));
        assert_null(strstr(text_get(&c.err), "step 1 of"));
        child_release(&c);
    }
    if (!disk) skip();
    assert_int_equal(folder_count(folder_path(*state, "disk")), 0);
}

// A target that gives no numbers ends the training of its adapter; a start that has none, that of a model.
static void weights_that_are_not_finite(void **state) {
    Child c;
    Text text = {0};
    prepare(*state);
    for (int i = 0; i < 400; i++) text_printf(&text, "%s %d\n-\n", RHYME, i);
    scratch_write(*state, "many.txt", text.data, text.length);
    text_release(&text);
    RUN(*state, 0, &c, "model", "synth", "tiny", "nan");
    child_release(&c);
    spoil_weight(folder_path(*state, "nan"), "model.norm.weight", "0");
    RUN(*state, 2, &c, "train", "adapter", "nan", "--exit-layer", "1", "--text", "many.txt", "--separator",
        "-", "-o", "never", "--steps", "2");
    assert_non_null(strstr(text_get(&c.err), "model 'nan': the hidden states after token "));
    child_release(&c);
    write_config(*state, "begun", 2, "start: nan\n");
    RUN(*state, 2, &c, "train", "begun.yaml");
    assert_non_null(
        strstr(text_get(&c.err), "tensor 'model.norm.weight' in 'nan/model.safetensors' holds a NaN"));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_text_learned_by_heart, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_loss, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_snapshot, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(own_outputs, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_figure, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_preset, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(domains, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(killed_is_uninterrupted, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refusals, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(models_by_name, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(models_stay, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_new_directory, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(told_at_once, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(weights_that_are_not_finite, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
