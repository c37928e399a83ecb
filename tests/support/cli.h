// The real program ($OUTPACE), run by whole command lines in a folder of its own.
#pragma once
#include "tests/support/child.h"
#include "tests/support/folder.h"

#include <jansson.h>

// The fixture: the program's whole path, and a folder that holds two synthetic models: "tiny", and "long",
// whose context is so long that nothing fills it.
typedef struct {
    char *program;
    char folder[FOLDER_PATH_SIZE];
    Child last;
} Cli;

int cli_set_up(void **state);
int cli_tear_down(void **state);

enum { MOST_ARGUMENTS = 32 };

// "generate tiny 'two words' --json": words between spaces, quotes keep spaces. Fills argv, from the program
// on, out of `line`, which it cuts up.
void cli_split(const Cli *cli, char *line, const char **argv);

// Runs a command line, with `input` on standard input; the test fails unless it ends with `code`. What it
// printed is cli->last, until the next.
const Child *cli_run(Cli *cli, int code, const char *line);
const Child *cli_run_with(Cli *cli, const char *input, int code, const char *line);

// The same, with code 0: its output, as text or parsed, for json_decref.
const char *cli_out(Cli *cli, const char *line);
json_t *cli_json(Cli *cli, const char *line);

// It prints this error and nothing else.
void cli_expect_error(Cli *cli, int code, const char *line, const char *want);
