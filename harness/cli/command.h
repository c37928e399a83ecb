// The subcommands: a row each, a file each (harness/commands). Main finds the row, runs it, prints its error
// and exits.
#pragma once
#include "engine/base/args.h"
#include "harness/cli/signals.h"
#include "harness/cli/terminal.h"

#include <string.h>

// The program's exit codes.
typedef enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_PARTIAL = 3,
    EXIT_AGAIN = 75,       // asked to end, with work left: the same command continues (EX_TEMPFAIL)
    EXIT_INTERRUPTED = 130 // of ERROR_INTERRUPTED
} ExitCode;

typedef struct Command Command;

// A command's line without the options: as many words as its row allows.
typedef struct CommandLine {
    const Command *command;
    Words words;
    int argc;
    char **argv; // the whole line; argv[0] is the command's name
    int code;    // to exit with, where it succeeds
} CommandLine;

struct Command {
    const char *name;          // of a part: "store export"
    const char *usage;         // after the name; an argument MODEL is a path, or a name (shipped.h)
    const char *summary;       // one line
    int arguments[2];          // at least and at most how many it takes, options not counted
    const Arg *options;        // those whose value is MODEL, likewise
    size_t option_count, size; // size: of the struct that they fill, zeros and the rows' defaults at first
    ArgSet shared;             // options that other commands have, too: MODEL_SET (engine/options.h)
    const char *kept;          // left by an interruption (signals.h)
    bool bulk;                 // it may print millions of lines: a write each would take longer than they do
    bool (*begin)(void *options, Error *e); // before the line is read: from the environment; or NULL
    bool (*run)(void *options, CommandLine *line, Error *e); // NULL: it has only parts
    const Command *const *parts;                             // chosen by their second word; ends in NULL
    const struct TableForm *const *tables; // that it prints (table.h); ends in NULL; NULL: none
};

extern const Command command_bench, command_compare, command_completions, command_datasets, command_doctor,
    command_fit, command_generate, command_methods, command_model, command_plan, command_plot,
    command_quality, command_replay, command_report, command_run, command_schema, command_show,
    command_simulate, command_sql, command_status, command_store, command_table, command_tokenizer,
    command_train, command_tune, command_verify;

extern const Command *const commands[]; // all of them, in the order of --help, NULL last
const char *command_group(size_t i);    // the heading above commands[i] in --help; NULL: none

// Parts of other commands, which live in files of their own.
extern const Command command_bench_store, command_datasets_index, command_plan_slurm, command_store_export,
    command_store_import, command_tokenizer_encode, command_tokenizer_decode;

// `outpace store import acceptance`: replays what a file recorded at every position of its texts, as a point
// for each of the lists and numbers of tokens tried ("1,3,5").
typedef struct AcceptanceOptions {
    const char *db, *name, *model, *drafts; // name: of the run; NULL: acceptance
    Words lists;                            // none: the usual ones
} AcceptanceOptions;
bool replay_acceptance(const char *file, const AcceptanceOptions *o, CommandLine *line, Error *e);

// Appends what --help has above a command's options: its section of harness/commands/lessons.txt, if it has
// one; of "outpace", the program's.
void command_lesson(const char *name, Text *out);

// The options of a command: its own, and those that it shares.
enum { COMMAND_SETS = 2 };
void command_sets(const Command *c, ArgSet out[COMMAND_SETS]);

// The row of --db: `at` is of a path (results/store.h).
#define STORE_OPTION(at) \
    { "db", ARG_WORD, at, .help = "the store", .value = "FILE", .fallback = STORE_DEFAULT, .literal = true }

#define COMMAND_OPTIONS(rows, type) \
    .options = rows, .option_count = sizeof rows / sizeof *rows, .size = sizeof(type)

// Parses the line by the command's table, and runs the command; on --help prints that.
bool command_execute(const Command *c, int argc, char **argv, int *code, Error *e);

// The second word of a part's name: "export", "--store".
static inline const char *command_part(const Command *part) { return strchr(part->name, ' ') + 1; }

// The error for arguments that do not go together: how the command is used. Returns false.
bool command_misused(const Command *c, Error *e);

// Names that complete an argument or an option's value, by its word in the usage: MODEL, RUN, DATASET, ...
typedef struct WordKind {
    const char *name;                           // as usages have it: "RUN", "CONFIG.yaml|RUN"
    bool files;                                 // a path is accepted instead
    void (*list)(const char *token, Text *out); // as words_list does; NULL: none but
    const char *folder;                         // those that ship in this folder of configs; NULL: none
} WordKind;

const WordKind *words_kind(const char *usage); // that a usage or a value begins with; NULL: none
// Writes the names, a line each; `token` is what has been typed.
void words_list(const WordKind *k, const char *token, Text *out);
