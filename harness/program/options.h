// Command lines, from one table per command: parsing, --help and "did you mean" all read its rows.
//
// Options and positionals come in any order; --key value and --key=value are the same; -- ends options; a
// lone "-" is a positional (standard input).
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    OPTION_FLAG, // bool; set when given
    OPTION_INT,  // int
    OPTION_REAL, // double
    OPTION_SEED, // uint64_t, below 2^63
    OPTION_TEXT, // const char *
    OPTION_LIST, // OptionList: may be given several times
} OptionType;

enum { OPTION_LIST_MAX = 64, POSITIONALS_MAX = 64 };

typedef struct OptionList {
    const char *items[OPTION_LIST_MAX];
    int count;
} OptionList;

typedef struct Option {
    const char *name; // without the dashes
    char letter;      // one-letter form, or 0
    OptionType type;
    size_t offset;        // of the value in the command's struct of options
    double low, high;     // INT, REAL: inclusive
    const char *value;    // what the value is called in --help ("N"); NULL for a flag
    const char *help;     // one line
    const char *fallback; // shown in --help; the struct holds the value itself
} Option;

// The row of every command that writes files (engine/base/output.h): `at` is a bool.
#define OPTION_FORCE(at) \
    { "force", 0, OPTION_FLAG, at, 0, 0, NULL, "replace what is there, whoever wrote it", NULL }

typedef struct Positionals {
    const char *items[POSITIONALS_MAX];
    int count;
} Positionals;

// Fills values and positionals from argv[1..]. `help` becomes true, and the rest is not looked at, for --help
// or -h.
bool options_parse(const Option *options, size_t count, int argc, char **argv, void *values,
                   Positionals *rest, bool *help, Error *e);

// Sets one option by its name, as --name text would: for values that come from the environment.
bool options_set(const Option *options, size_t count, const char *name, const char *text, void *values,
                 Error *e);

// One line per option.
void options_describe(const Option *options, size_t count, Text *out);
