// All sources of a prompt give the same ids; invalid ones are refused with their places.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/model/make/synth.h"
#include "harness/inputs/prompts.h"
#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char PROMPT[] = "two lines\nof text, \xC3\xA9\n";

typedef struct {
    char folder[FOLDER_PATH_SIZE], file[FOLDER_PATH_SIZE + 16];
    Tokenizer *tokenizer;
} Fixture;

static int set_up(void **state) {
    Fixture *f = mem_new(1, sizeof *f);
    char *json = synth_tokenizer(512);
    f->tokenizer = tokenizer_parse(json, strlen(json), "synthetic", NULL);
    mem_free(json);
    folder_make(f->folder);
    snprintf(f->file, sizeof f->file, "%s/prompt", f->folder);
    FILE *file = fopen(f->file, "w");
    fputs(PROMPT, file);
    fclose(file);
    *state = f;
    return f->tokenizer ? 0 : -1;
}

static int tear_down(void **state) {
    Fixture *f = *state;
    tokenizer_close(f->tokenizer);
    folder_remove(f->folder);
    mem_free(f);
    return 0;
}

static void expect_ids(const Fixture *f, const PromptSource *source, const IdList *want) {
    IdList got = {0};
    Error e = {0};
    if (!prompt_read(source, f->tokenizer, &got, &e)) fail_msg("wanted ids, got '%s'", e.text);
    assert_int_equal(got.count, want->count);
    assert_memory_equal(got.ids, want->ids, want->count * sizeof *want->ids);
    ids_release(&got);
}

static void sources_agree(void **state) {
    Fixture *f = *state;
    IdList want = {0};
    assert_true(tokenizer_encode(f->tokenizer, PROMPT, strlen(PROMPT), true, &want, NULL));
    expect_ids(f, &(PromptSource){.text = PROMPT}, &want);
    expect_ids(f, &(PromptSource){.file = f->file}, &want);
    int ends[2];
    char pipe_path[32];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], PROMPT, strlen(PROMPT)), strlen(PROMPT));
    close(ends[1]);
    snprintf(pipe_path, sizeof pipe_path, "/dev/fd/%d", ends[0]);
    expect_ids(f, &(PromptSource){.file = pipe_path}, &want);
    close(ends[0]);
    assert_non_null(freopen(f->file, "r", stdin));
    expect_ids(f, &(PromptSource){.text = "-"}, &want);
    ids_release(&want);
}

static void ids_as_written(void **state) {
    (void)state;
    static const int want[] = {1, 0, 15043, 2147483647};
    IdList got = {0};
    assert_true(prompt_read(&(PromptSource){.ids = "1,0, 15043,2147483647"}, NULL, &got, NULL));
    assert_int_equal(got.count, 4);
    assert_memory_equal(got.ids, want, sizeof want);
    ids_release(&got);
}

static void ids_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"", "''"},       {"1,", "''"},   {"1,,2", "',2'"}, {",1", "',1'"},
        {"1;2", "'1;2'"}, {"1,x", "'x'"}, {"3,-1", "'-1'"}, {"2147483648", "'2147483648'"},
        {"1.5", "'1.5'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        IdList got = {0};
        Error e = {0};
        char want[128];
        snprintf(want, sizeof want, "--ids must be numbers with commas between them, at %s", rows[i][1]);
        bool ok = prompt_read(&(PromptSource){.ids = rows[i][0]}, NULL, &got, &e);
        if (ok || e.kind != ERROR_INPUT || strcmp(e.text, want))
            fail_msg("'%s': wanted '%s', got '%s'", rows[i][0], want, e.text);
        ids_release(&got);
    }
}

static void expect_refusal(const PromptSource *source, const Tokenizer *t, const char *want) {
    IdList got = {0};
    Error e = {0};
    if (prompt_read(source, t, &got, &e) || e.kind != ERROR_INPUT || !strstr(e.text, want))
        fail_msg("wanted '%s', got '%s'", want, e.text);
    ids_release(&got);
}

static void refused(void **state) {
    Fixture *f = *state;
    char big[sizeof f->file + 8];
    snprintf(big, sizeof big, "%s/big", f->folder);
    FILE *file = fopen(big, "w");
    fclose(file);
    assert_int_equal(truncate(big, (64 << 20) + 1), 0); // a hole: takes no space
    expect_refusal(&(PromptSource){0}, f->tokenizer, "there is no prompt: give a text");
    expect_refusal(&(PromptSource){.text = "x"}, NULL, "nor tokenizer.model: give the prompt as --ids");
    expect_refusal(&(PromptSource){.file = "/no/such"}, f->tokenizer, "'/no/such'");
    expect_refusal(&(PromptSource){.file = f->folder}, f->tokenizer, f->folder);
    expect_refusal(&(PromptSource){.file = big}, f->tokenizer, big);
    assert_non_null(freopen(big, "r", stdin));
    expect_refusal(&(PromptSource){.text = "-"}, f->tokenizer, "standard input has more than 67108864 bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources_agree),
        cmocka_unit_test(ids_as_written),
        cmocka_unit_test(ids_refused),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
