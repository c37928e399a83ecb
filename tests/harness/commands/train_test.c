// Training by the real program ($OUTPACE): a text learned by heart and generated again; a run that is killed
// and interrupted gives the same files as one that is not.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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
    child_release(&c);
    RUN(*state, 0, &c, "generate", "heart", "twinkle twinkle", "-n", "60", "--stats");
    assert_string_equal(text_get(&c.out), "little star how i wonder what you are\n");
    assert_non_null(strstr(text_get(&c.err), "ended by eos"));
    child_release(&c);
    RUN(*state, 0, &c, "model", "info", "heart", "--check");
    child_release(&c);
}

// The 5-grams' loss with the checkpoint's beside it where there is one; nothing is trained or written.
static void a_baseline(void **state) {
    Child c;
    prepare(*state);
    write_config(*state, "base", 20, "held_out: 0.3\n");
    RUN(*state, 0, &c, "train", "base.yaml", "--baseline");
    assert_non_null(strstr(text_get(&c.out), "5-gram  held-out loss "));
    assert_null(strstr(text_get(&c.out), "step "));
    assert_int_equal(access(folder_path(*state, "base.checkpoint"), R_OK), -1);
    child_release(&c);
    RUN(*state, 0, &c, "train", "base.yaml", "--stop-after", "3");
    child_release(&c);
    RUN(*state, 0, &c, "train", "base.yaml", "--baseline");
    assert_non_null(strstr(text_get(&c.out), "5-gram  held-out loss "));
    assert_non_null(strstr(text_get(&c.out), "step 3  held-out loss "));
    child_release(&c);
    write_config(*state, "all", 20, "");
    RUN(*state, 2, &c, "train", "all.yaml", "--baseline");
    assert_non_null(strstr(text_get(&c.err), "set held_out"));
    child_release(&c);
}

static void expect_same_file(const char *folder, const char *a, const char *b, const char *name) {
    size_t n, m;
    char *x = scratch_read(folder_path(folder, a), name, &n),
         *y = scratch_read(folder_path(folder, b), name, &m);
    if (n != m || memcmp(x, y, n)) fail_msg("%s of '%s' and '%s' differ", name, a, b);
    mem_free(x);
    mem_free(y);
}

// Starts a training, waits until it has said that it is at some step, and sends a signal.
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
    assert_non_null(strstr(text_get(&c.err), "goes on from broken.checkpoint"));
    child_release(&c);
    RUN(*state, 0, &c, "train", "broken.yaml");
    child_release(&c);
    expect_same_file(*state, "whole", "broken", "model.safetensors");
    expect_same_file(*state, "whole", "broken", "config.json");
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_text_learned_by_heart, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_baseline, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(killed_is_uninterrupted, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refusals, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
