// outpace datasets, the real program: the list, a set's prompts, a user's file, and refusals.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void expect(const Child *c, const char *want) {
    if (!strstr(text_get(&c->out), want)) fail_msg("wanted '%s', got '%s'", want, text_get(&c->out));
}

static void refuse(const char *folder, const char *want, const char *const *words) {
    Child c = {0};
    child_outpace(&c, folder, 2, words);
    if (!strstr(text_get(&c.err), want)) fail_msg("wanted '%s', got '%s'", want, text_get(&c.err));
    const char *line = strchr(text_get(&c.err), '\n');
    assert_true(line && !line[1]);
    child_release(&c);
}
#define REFUSE(folder, want, ...) refuse(folder, want, (const char *const[]){"datasets", __VA_ARGS__, NULL})

static void lists(void **state) {
    Child c = {0};
    unsetenv("OUTPACE_DATA");
    CHILD_OUTPACE(&c, *state, 0, "datasets");
    expect(&c, "\nmathematics");
    expect(&c, "built in");
    expect(&c, "OUTPACE_DATA is not set");
    child_release(&c);
    c = (Child){0};
    CHILD_OUTPACE(&c, *state, 0, "datasets", "--formats");
    expect(&c, "\ngsm8k");
    expect(&c, "\n  :qa ");
    child_release(&c);
}

// A file of the folder: found, but not the published one.
static void found(void **state) {
    static const char ROWS[] = "{\"question\": \"How many?\", \"answer\": \"#### 7\"}\n";
    Child c = {0};
    assert_true(file_make_directory(folder_path(*state, "gsm8k"), NULL));
    scratch_write(folder_path(*state, "gsm8k"), "test.jsonl", ROWS, sizeof ROWS - 1);
    setenv("OUTPACE_DATA", *state, 1);
    CHILD_OUTPACE(&c, *state, 0, "datasets");
    expect(&c, "not as published");
    expect(&c, "gsm8k/test.jsonl; licence: MIT");
    child_release(&c);
    c = (Child){0};
    CHILD_OUTPACE(&c, *state, 0, "datasets", "gsm8k:qa");
    expect(&c, "1 prompts, 0 of them of several turns, 1 with a reference");
    expect(&c, "  1> Question: How many?\n  1> Answer:\n  1= #### 7\n");
    child_release(&c);
    REFUSE(*state, "has no split 'dev'", "gsm8k", "--split", "dev");
    REFUSE(*state, "gsm8k/train.jsonl", "gsm8k", "--split", "train");
    unsetenv("OUTPACE_DATA");
}

// A file's bytes cannot move the terminal's cursor.
static void own_file(void **state) {
    static const char ROWS[] = "{\"turns\": [\"a\\u001b[2J\\u009bb\", \"c\"], \"id\": \"x\\u0007\"}\n";
    Child c = {0};
    scratch_write(*state, "own.jsonl", ROWS, sizeof ROWS - 1);
    CHILD_OUTPACE(&c, *state, 0, "datasets", "--path", "own.jsonl", "-n", "1");
    expect(&c, "x?\n  1> a?[2J?b\n  2> c\n");
    child_release(&c);
    c = (Child){0};
    CHILD_OUTPACE(&c, *state, 0, "datasets", "chat", "-n", "0");
    assert_null(strstr(text_get(&c.out), "1>"));
    child_release(&c);
}

static void refused(void **state) {
    REFUSE(*state, "did you mean 'chat'", "chatt");
    REFUSE(*state, "OUTPACE_DATA", "humaneval");
    REFUSE(*state, "'nothing.jsonl'", "--path", "nothing.jsonl");
    REFUSE(*state, "give its --path", "chat", "--format", "jsonl");
    REFUSE(*state, "usage", "chat", "code");
    scratch_write(*state, "bad.jsonl", "{\"prompt\": \"1\"}\n{\"prompt\": 5}\n", 31);
    REFUSE(*state, "'bad.jsonl', line 2: field 'prompt'", "--path", "bad.jsonl");
}

// A changed published file is reported wherever it's read.
static void changed(void **state) {
    static const char ROWS
        [] = "{\"question\": \"a\", \"answer\": \"b\"}\n",
    CONFIG[] =
        "name: x\nmodels: [{name: t, target: tiny}]\ndatasets: [{name: gsm8k}]\ngeneration: {max_tokens: 4}\n"
        "hardware: {device: null}\nmethods: [autoregressive]\n";
    Child c = {0};
    assert_int_equal(mkdir(folder_path(*state, "gsm8k"), 0777), 0);
    scratch_write(*state, "gsm8k/test.jsonl", ROWS, sizeof ROWS - 1);
    scratch_write(*state, "x.yaml", CONFIG, sizeof CONFIG - 1);
    setenv("OUTPACE_DATA", ".", 1);
    CHILD_OUTPACE(&c, *state, 0, "datasets", "gsm8k");
    expect(&c, "NOT AS PUBLISHED");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    static const char *const COMMANDS[] = {"plan", "run"};
    for (int i = 0; i < 2; i++) {
        CHILD_OUTPACE(&c, *state, 0, COMMANDS[i], "x.yaml", "--db", "x.db");
        if (!strstr(text_get(&c.err), "warning: the dataset 'gsm8k' is not as published"))
            fail_msg("%s: '%s'", COMMANDS[i], text_get(&c.err));
        child_release(&c);
    }
    unsetenv("OUTPACE_DATA");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(found, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(own_file, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refused, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(changed, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
