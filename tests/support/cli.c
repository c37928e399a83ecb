// See cli.h.
#include "tests/support/cli.h"

#include "engine/base/memory.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

void cli_split(const Cli *cli, char *line, const char **argv) {
    int n = 0;
    argv[n++] = cli->program;
    for (char *p = line; *p && n < MOST_ARGUMENTS - 1;) {
        char end = *p == '\'' ? '\'' : ' ';
        if (end == '\'') p++;
        argv[n++] = p;
        p += strcspn(p, end == ' ' ? " " : "'");
        if (*p) *p++ = 0;
        while (*p == ' ') p++;
    }
    argv[n] = NULL;
}

const Child *cli_run_with(Cli *cli, const char *input, int code, const char *line) {
    const char *argv[MOST_ARGUMENTS];
    char *copy = mem_text(line, strlen(line));
    cli_split(cli, copy, argv);
    child_release(&cli->last);
    child_run(&cli->last, cli->folder, input, argv);
    mem_free(copy);
    if (cli->last.code != code)
        fail_msg("outpace %s: wanted exit code %d, got %d; it said '%s'", line, code, cli->last.code,
                 text_get(&cli->last.err));
    return &cli->last;
}

const Child *cli_run(Cli *cli, int code, const char *line) { return cli_run_with(cli, NULL, code, line); }

const char *cli_out(Cli *cli, const char *line) { return text_get(&cli_run(cli, 0, line)->out); }

json_t *cli_json(Cli *cli, const char *line) {
    json_error_t error;
    json_t *j = json_loads(cli_out(cli, line), JSON_ALLOW_NUL, &error);
    if (!j) fail_msg("outpace %s: not JSON: %s", line, error.text);
    return j;
}

void cli_expect_error(Cli *cli, int code, const char *line, const char *want) {
    const Child *c = cli_run(cli, code, line);
    if (strcmp(text_get(&c->err), want))
        fail_msg("outpace %s: wanted '%s', got '%s'", line, want, text_get(&c->err));
    assert_int_equal(c->out.length, 0);
}

int cli_set_up(void **state) {
    Cli *cli = mem_new(1, sizeof *cli);
    const char *program = getenv("OUTPACE");
    *state = cli;
    cli->program = realpath(program ? program : "./outpace", NULL);
    if (!cli->program) return -1;
    folder_make(cli->folder);
    cli_run(cli, 0, "model synth tiny tiny --seed 3");
    cli_run(cli, 0, "model synth tiny long --set max_position_embeddings=1048576");
    return 0;
}

int cli_tear_down(void **state) {
    Cli *cli = *state;
    child_release(&cli->last);
    folder_remove(cli->folder);
    free(cli->program);
    mem_free(cli);
    return 0;
}
