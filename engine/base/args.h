// Everything that a user can set, one row each: a method's parameters, a command's options and a config's
// keys are all tables of Arg. Parsing, help, "did you mean", canonical text and the docs read these rows.
//
// A value is `at` bytes from the start of the caller's struct.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stdint.h>

typedef enum {
    ARG_FLAG,    // bool: on or off; on a command line just --name
    ARG_NOT,     // bool: true when off, so that zero is the default; on a command line --name on|off
    ARG_INT,     // int, low..high
    ARG_REAL,    // double, low..high
    ARG_SEED,    // uint64_t below 2^63, which JSON and SQLite can store
    ARG_CHOICE,  // int: the index of one of `choices`
    ARG_TEXT,    // char[ARG_TEXT_SIZE]: a copy
    ARG_METHODS, // the same: names of methods, each with parameters in parentheses; the key is optional
    ARG_WORD,    // const char *: belongs to argv or to the config
    ARG_WORDS,   // Words: may be given several times
    ARG_NODE,    // configs only: a part with its own reader
    ARG_MAP,     // configs only: a struct with its own table
    ARG_EACH,    // configs only: an array of such structs
} ArgType;

enum { ARG_TEXT_SIZE = 256, ARGS_MAX = 64, WORDS_MAX = 64 };

typedef struct Words {
    const char *items[WORDS_MAX];
    int count;
} Words;

struct ArgTable;

typedef struct Arg {
    const char *name; // its '_' is '-' on a command line: max_rows, --max-rows
    ArgType type;
    size_t at;                    // of the value in the struct
    double low, high;             // INT, REAL: inclusive. EACH: high is the most items allowed
    const char *fallback;         // the default as a user would write it, or --help's text for it
    const char *const *choices;   // CHOICE: names, ending in NULL
    const char *help;             // one line
    const char *value;            // what --help calls the value ("N"); NULL: the choices, or a flag
    char letter;                  // the one-letter form of an option, or 0
    bool literal;                 // of a WORD: its fallback is the default itself
    bool required;                // of a config
    bool added;                   // args_write omits its default: older texts, and their hashes, lack the row
    const struct ArgTable *table; // MAP, EACH
    size_t count_at;              // EACH: of the int that counts the items
} Arg;

const Arg *arg_find(const Arg *rows, size_t count, const char *name); // NULL: there is none

// Sets one value. `shown` is its name in messages: --gamma, 'gamma'.
bool arg_set(const Arg *row, const char *shown, void *value, const char *text, Error *e);

// --- "key=value,key=value": the parameters of a method

void args_defaults(const Arg *rows, size_t count, void *values);

// Sets one value by its key; the error for an unknown key names the nearest one.
bool args_set(const Arg *rows, size_t count, void *values, const char *key, const char *text, Error *e);

// Sets all values of a list ("" sets none). Commas inside parentheses belong to the value. A repeated key is
// an error.
bool args_parse(const Arg *rows, size_t count, void *values, const char *text, Error *e);

// Bytes of text before the first `end` outside parentheses.
size_t args_span(const char *text, char end);

// Writes one value; every value as key=value in the order of the rows, which args_parse reads back and hashes
// are made of; the values that differ from their defaults as options: " --threads 4 --merge off".
void arg_write(const Arg *row, const void *values, Text *out);
void args_write(const Arg *rows, size_t count, const void *values, Text *out);
void args_write_options(const Arg *rows, size_t count, const void *values, Text *out);

// One line per row: name, range, default, help.
void args_describe(const Arg *rows, size_t count, Text *out);

// --- a command line: sets of rows, which several commands may share

typedef struct ArgSet {
    const Arg *rows;
    size_t count;
    size_t at;           // where the shared part begins in the command's struct
    const char *without; // rows that this command lacks, names separated by blanks; NULL: none
} ArgSet;

// An option as it is written, without "--".
typedef struct ArgOption {
    const ArgSet *set;
    const Arg *row;
    char name[40];
} ArgOption;

// Sets the defaults: fallbacks that the row takes, of a WORD if it is literal.
void args_start(const ArgSet *sets, int n, void *values);

// Fills values from argv[1..], and words with the arguments that aren't options or their values. Options and
// arguments may be in any order; --key value equals --key=value; -- ends the options; a single "-" is an
// argument (standard input). At --help or -h, *help becomes true and the rest is ignored.
bool args_parse_line(const ArgSet *sets, int n, int argc, char **argv, void *values, Words *words, bool *help,
                     Error *e);

// The same line word by word. Begins as {.sets, .n, .argc, .argv, .at = 1}.
typedef struct ArgLine {
    const ArgSet *sets;
    int n, argc;
    char **argv;
    int at; // of the next word
    bool options_ended, help;
} ArgLine;

// The next option and its value ("on" of a flag), or an argument (row NULL). False: the line has ended, or
// asks for help, or e is filled.
bool args_next(ArgLine *line, ArgOption *option, const char **value, Error *e);

// Sets one option by its name, for values that come from elsewhere.
bool args_set_option(const ArgSet *sets, int n, void *values, const char *name, const char *text, Error *e);

// All options; and what --help calls a value: "N", "on|off", "" of a flag.
size_t args_options(const ArgSet *sets, int n, ArgOption out[ARGS_MAX]);
void args_value(const Arg *row, Text *out);

// One line per option.
void args_help(const ArgSet *sets, int n, Text *out);

// The row of every command that writes files (output.h): `at` is a bool.
#define ARG_FORCE(at_)                                                                 \
    {                                                                                  \
        .name = "force", .type = ARG_FLAG, .at = at_,                                  \
        .help = "replace what is there, whoever wrote it, unless the command reads it" \
    }
