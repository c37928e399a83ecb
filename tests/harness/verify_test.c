// outpace verify, run as a user would.
#include "tests/check.h"

#include "tests/child.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 24 };

typedef struct {
    char *program;
    char folder[FOLDER_PATH_SIZE];
} Fixture;

static void run(const Fixture *f, Child *c, int code, const char *const *arguments) {
    const char *argv[MOST] = {f->program};
    for (int i = 0; arguments[i]; i++) argv[i + 1] = arguments[i];
    *c = (Child){.code = 0};
    child_run(c, f->folder, NULL, argv);
    if (c->code != code)
        fail_msg("wanted exit code %d, got %d: %s%s", code, c->code, text_get(&c->out), text_get(&c->err));
}

#define RUN(f, c, code, ...) run(f, c, code, (const char *const[]){__VA_ARGS__, NULL})

static int set_up(void **state) {
    static Fixture f;
    Child c;
    const char *program = getenv("OUTPACE");
    f.program = realpath(program ? program : "./outpace", NULL);
    if (!f.program) return -1;
    folder_make(f.folder);
    RUN(&f, &c, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    Fixture *f = *state;
    folder_remove(f->folder);
    free(f->program);
    return 0;
}

static void expect(const Child *c, const char *want) {
    if (!strstr(text_get(&c->out), want)) fail_msg("wanted '%s' in:\n%s", want, text_get(&c->out));
}

static void all_methods(void **state) {
    Child c;
    RUN(*state, &c, 0, "verify", "tiny", "-n", "2", "--max-tokens", "24", "--cache", "");
    expect(&c, "ok    autoregressive: greedy, 2 prompts, 48 tokens identical, S 1.000\n");
    expect(&c, "ok    lookahead: greedy, 2 prompts, 48 tokens identical");
    expect(&c, "-     speculative: left out, ");
    expect(&c, " 0 failed, ");
    child_release(&c);
}

static void chosen_ones_with_sampling(void **state) {
    const Fixture *f = *state;
    char path[FOLDER_PATH_SIZE + 16];
    Child c;
    snprintf(path, sizeof path, "%s/prompts", f->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("one line of text\n\n{\"prompt\": \"and one of JSON\"}\n", file);
    fclose(file);
    RUN(f, &c, 0, "verify", "tiny", "--device", "null", "--sampling", "--prompts", "prompts", "--methods",
        "prompt-lookup:draft=4,allow_short=on", "--methods", "jacobi");
    expect(&c, "ok    prompt-lookup:draft=4,allow_short=on: greedy, 2 prompts");
    expect(&c, "ok    jacobi: sampling, ");
    expect(&c, "4 checks, 0 failed, 0 methods left out\n");
    child_release(&c);
}

static void mistakes(void **state) {
    static const struct {
        const char *option, *value, *want;
    } rows[] = {
        {"--methods", "jacoby",      "did you mean 'jacobi'"},
        {"--methods", "speculative", "draft"                },
        {"--prompts", "nothing",     "cannot open 'nothing'"},
        {"--count",   "0",           "--count is '0'"       },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Child c;
        RUN(*state, &c, 2, "verify", "tiny", rows[i].option, rows[i].value);
        if (!strstr(text_get(&c.err), rows[i].want))
            fail_msg("wanted '%s', got '%s'", rows[i].want, text_get(&c.err));
        child_release(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_methods),
                                       cmocka_unit_test(chosen_ones_with_sampling),
                                       cmocka_unit_test(mistakes)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
