// A card whose kernel has failed answers no further calls: every command then ends with one line and exit
// code 1, wherever it happens, without trying other methods, and `run` continues from the store (tests/simt).
#include "tests/support/check.h"

#include "engine/model/make/synth.h"
#include "tests/support/child.h"
#include "tests/support/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char EXPERIMENT[] =
    "name: test\nmodels: [{target: tiny, draft: tiny}]\ndatasets: [{name: own, path: own.txt}]\n"
    "hardware: {device: cuda}\ngeneration: {max_tokens: 8, ignore_eos: on}\n"
    "methods: [{name: autoregressive}, {name: prompt-lookup}]\nmeasurement: {passes: 1, warmup: 0}\n";

static const char ON_TWO[] =
    "name: test\nmodels: [{target: tiny, draft: tiny, draft_device: 'cuda:0'}]\n"
    "datasets: [{name: own, path: own.txt}]\ngeneration: {max_tokens: 8, ignore_eos: on}\n"
    "methods: [{name: autoregressive}, {name: speculative}]\nmeasurement: {passes: 1, warmup: 0}\n";

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

// The program lies in the build's folder simt/, three above this one's.
static int set_up(void **state) {
    char path[4096];
    Error e = {0};
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    if (n <= 0 || folder_setup(state)) return -1;
    for (int up = 0; up < 4 && n > 0; up++)
        while (n > 0 && path[--n] != '/') {}
    snprintf(path + n, 64, "/simt/outpace");
    write_text(folder_path(*state, "own.txt"), "text one\ntext two of it\nthree\nfour of them\n");
    write_text(folder_path(*state, "x.yaml"), EXPERIMENT);
    if (!model_synth(folder_path(*state, "tiny"), &(SynthOptions){.shape = "tiny"}, &e)) return -1;
    return setenv("OUTPACE", path, 1);
}

// Of its errors, the lines that are neither warnings nor notes.
static const char *last_words(const Child *c, int *lines) {
    const char *said = "";
    *lines = 0;
    for (const char *p = text_get(&c->err); *p; p += strcspn(p, "\n"), p += *p == '\n')
        if (strncmp(p, "warning: ", 9) != 0 && strncmp(p, "note: ", 6) != 0) said = p, ++*lines;
    return said;
}

// The device fails after so much work. False: the command came to its end before.
static bool meets_fault(void *folder, int work, const char *const *words) {
    Child c;
    int lines;
    char text[16];
    const char *argv[24] = {getenv("OUTPACE")};
    for (int i = 0; words[i]; i++) argv[i + 1] = words[i];
    snprintf(text, sizeof text, "%d", work);
    setenv("OUTPACE_FAKE_FAULT", text, 1);
    child_run(&c, folder, NULL, argv);
    unsetenv("OUTPACE_FAKE_FAULT");
    const char *said = last_words(&c, &lines);
    bool named = strstr(said, "cuda:0: ") || (getenv("OUTPACE_FAKE_GPUS") && strstr(said, "cuda:1: "));
    bool told = lines == 1 && named && strstr(said, "an illegal memory access was");
    if (c.code != 0 && (c.code != 1 || !told))
        fail_msg("%s, a fault after %d: exit code %d:\n%s", words[0], work, c.code, text_get(&c.err));
    bool met = c.code != 0;
    child_release(&c);
    return met;
}

// While weights are loaded, and while steps are run.
static void commands_end(void **state) {
    enum { WORDS = 16 };
    static const char *const generate[WORDS] = {"generate", "tiny", "--ids",    "1,2",
                                                "-n",       "30",   "--device", "cuda"};
    static const char *const bench[WORDS] = {"bench",     "tiny", "--device", "cuda",
                                             "--context", "20",   "--tokens", "1,4"};
    static const char *const surface[WORDS] = {"bench",     "--store", "tiny", "--device", "cuda",
                                               "--context", "20",      "--k",  "1,2",      "--w",
                                               "1",         "--rows",  "0"};
    static const char *const tune[WORDS] = {"tune",    "tiny",     "--device",  "cuda",   "--path",
                                            "own.txt", "--method", "lookahead", "--axis", "W=1,2"};
    static const struct {
        const char *const *words;
        int work;
    } all[] = {
        {generate, 200},
        {bench, 400},
        {surface, 400},
        {tune, 1500},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all;
         i += (size_t)test_some(3, 1)) // generate and tune, or all
        if (!meets_fault(*state, 40, all[i].words) || !meets_fault(*state, all[i].work, all[i].words))
            fail_msg("%s met no fault", all[i].words[0]);
}

// The next start has everything an earlier one stored: nothing is measured twice, nothing counts as failed.
static void a_run_goes_on(void **state) {
    static const char *const words[] = {"run", "x.yaml", "--db", "r.db", NULL};
    int work = 128, failures = 0;
    for (; meets_fault(*state, work, words); work *= 2) failures++;
    assert_true(failures > 1);
    assert_int_equal(stores_ask(*state, "r.db", "SELECT count(*) FROM sample"), 8);
    assert_int_equal(stores_ask(*state, "r.db", "SELECT count(DISTINCT attempt_id) > 1 FROM sample"), 1);
}

// The same with its layers on two cards and the draft on the first of them: the store names both.
static void and_on_two_cards(void **state) {
    static const char *const words[] = {"run",  "two.yaml", "--device", "cuda:0,cuda:1",
                                        "--db", "two.db",   NULL};
    write_text(folder_path(*state, "two.yaml"), ON_TWO);
    setenv("OUTPACE_FAKE_GPUS", "90,90", 1);
    assert_true(meets_fault(*state, 1000, words));
    assert_false(meets_fault(*state, 1 << 30, words));
    unsetenv("OUTPACE_FAKE_GPUS");
    assert_int_equal(stores_ask(*state, "two.db", "SELECT count(*) FROM sample"), 8);
    assert_int_equal(stores_ask(*state, "two.db", "SELECT count(DISTINCT run_id) FROM attempt"), 1);
    assert_int_equal(
        stores_ask(*state, "two.db", "SELECT count(DISTINCT device) FROM reading WHERE device LIKE 'cuda:_'"),
        2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(commands_end), cmocka_unit_test(a_run_goes_on),
                                       cmocka_unit_test(and_on_two_cards)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
